package condition

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

const tryAgain = "`drivebay volume retry {volume}` tries again now; `drivebay volume show {volume}` tells what was done."

// recordRules come last: several of them report a status only if no rule before them
// explains it.
var recordRules = []Rule{
	{
		Section: OnRecord, Reason: "VolumeConflict", Severity: drivebay.SeverityInaccessible,
		When:   "the drives have two complete volumes with its id, and which one is newer is unknown",
		Says:   "where the other one is",
		Next:   "`drivebay volume clear {volume}` keeps this one. To use the other one, pull the drive of this one and run `drivebay volume forget {volume}`.",
		Source: "records older than the drives, or a move that was cut short, leave two; the wrong one has old data",
		check: func(l *look) *hit {
			if l.Volume.Undecided() == "" {
				return nil
			}
			return say(nil, "%s", l.Volume.Undecided())
		},
	},
	{
		Section: OnRecord, Reason: "OperationFailed", Severity: drivebay.SeverityInaccessible,
		When: "CSIStatus is FAILED, and the volume is half made or half removed, or it is not known what failed",
		Says: "what failed, its cause, and who tries again", Next: tryAgain,
		Source: seedCtl + ".2, CSIStatus == FAILED",
		check: func(l *look) *hit {
			if l.Volume.CSIStatus != drivebay.CSIFailed || l.Volume.NeedsOperator() || l.made() && l.doing() != drivebay.CSIUnknown {
				return nil
			}
			return failed(l.Volume.Failure)
		},
	},
	{
		Section: OnRecord, Reason: "OperationFailed", Severity: drivebay.SeverityDegraded,
		When: "CSIStatus is FAILED, and the volume is whole",
		Says: "what failed, its cause, and who tries again", Next: tryAgain + " `drivebay volume clear {volume}` clears the failure.",
		Source: seedCtl + ".2, CSIStatus == FAILED",
		check: func(l *look) *hit {
			if l.Volume.CSIStatus != drivebay.CSIFailed || l.Volume.NeedsOperator() || !l.made() || l.doing() == drivebay.CSIUnknown {
				return nil
			}
			return failed(l.Volume.Failure)
		},
	},
	{
		Section: OnRecord, Reason: "ReleaseFailed", Severity: drivebay.SeverityDegraded,
		When: "Usage is FAILED: the volume could not be moved off a drive that has to leave",
		Says: "the cause, and who tries again", Next: "Do not pull the drive. " + tryAgain,
		Source: seedCtl + ".4, Usage == FAILED",
		check: func(l *look) *hit {
			if l.Volume.Usage != drivebay.VolumeUsageFailed {
				return nil
			}
			return failed(l.Volume.UsageFailure)
		},
	},
	{
		Section: OnRecord, Reason: "MoveUndecided", Severity: drivebay.SeverityDegraded,
		When: "the volume was found again in the middle of a move, and nothing says which drive was to be left",
		Says: "which drives the volume is on", Next: "Name the drive that is to be left: `drivebay release DRIVE`. Nothing is moved before that.",
		Source: "what had been decided is lost with the records; both drives are as healthy",
		check: func(l *look) *hit {
			at := l.Volume.Location
			leaving := l.those(func(d *drivebay.Drive) bool { return d.Usage != drivebay.UsageInUse })
			if copies := map[bool]int{true: 2, false: 1}[at.Kind == drivebay.LocationMirror]; !at.Found || len(at.Drives) <= copies || len(leaving) == 1 || len(l.bad) == 1 {
				return nil
			}
			return say(nil, "the volume group is on %d drives, because a move was cut short", len(at.Drives))
		},
	},
	{
		Section: OnRecord, Reason: "DataLost", Severity: drivebay.SeverityDataLoss,
		When: "some of the volume could not be read when it was copied off a drive, or the newest data of a mirror were given up, and an operator had it go on without",
		Says: "how many bytes, and where; of a mirror, which drive had them", Next: "Restore what was there from a copy: what could not be read reads as zeros. `drivebay scrub {volume}` checks the filesystem; `drivebay volume clear {volume}` clears this record of the loss.",
		Source: kepCodes + "; the drive has answered those reads with an error",
		check: func(l *look) *hit {
			lost := l.Volume.Lost
			if lost == nil {
				return nil
			}
			if lost.Newer {
				return say(nil, "an operator gave up %s", lost)
			}
			return say(nil, "drive %s could not read %s", drivebay.PlainText(lost.Drive, maxWord), lost)
		},
	},
	{
		Section: OnRecord, Reason: "VolumeNotFound", Severity: drivebay.SeverityInaccessible, First: true,
		When: "a complete listing lacks its partition or logical volume, or OperationalStatus is MISSING, and its drives do not explain it",
		Says: "what is not there", Next: "Look at its drive: it was removed or hidden outside of drivebay. Its place stays reserved until it is restored or given up: `drivebay volume forget {volume}`.",
		Source: kepCodes + "; " + seedCtl + ".3, OperationalStatus == MISSING",
		check: func(l *look) *hit {
			missing := l.Gone && l.made() || l.Volume.OperationalStatus == drivebay.Missing
			if !missing || l.lost(l.dead) {
				return nil
			}
			return say(nil, "the volume is not where it was made: %v %s", l.Volume.Location.Kind, placeName(&l.Volume.Location))
		},
	},
	{
		Section: OnRecord, Reason: "VolumeInoperative", Severity: drivebay.SeverityInaccessible,
		When: "OperationalStatus is INOPERATIVE, and nothing above says why",
		Says: "that the reason is not known here", Next: "Ask on its node: `drivebay explain {volume}`.",
		Source: "an answer about a volume of another node is no better than the last status that it sent",
		check: func(l *look) *hit {
			if l.Volume.OperationalStatus != drivebay.Inoperative || l.worst >= drivebay.SeverityInaccessible {
				return nil
			}
			return say(nil, "the volume does not serve; why is known on node %s only", l.Volume.Node)
		},
	},
	{
		Section: OnRecord, Reason: "HealthNotGood", Severity: drivebay.SeverityDegraded,
		When: "Health is not GOOD, and nothing is known of the drives that says why",
		Says: "the health", Next: "Ask on its node: `drivebay explain {volume}`.",
		Source: seedCtl + ".1, Health != GOOD",
		check: func(l *look) *hit {
			health := l.Volume.Health.Worse(HealthOf(l.Facts))
			if health == drivebay.HealthGood || l.ailing() {
				return nil
			}
			return say(nil, "the health of the volume is %v", health)
		},
	},
	{
		Section: OnRecord, Reason: "StatusUnknown", Severity: drivebay.SeverityDegraded,
		When: "CSIStatus, OperationalStatus or Usage is UNKNOWN",
		Says: "which of them", Next: "Silence is not health: see that the daemon of its node runs, and `drivebay volume show {volume}`.",
		Source: "what is unknown is reported as unknown",
		check: func(l *look) *hit {
			v := &l.Volume
			if v.CSIStatus != drivebay.CSIUnknown && v.OperationalStatus != drivebay.OperationalUnknown && v.Usage != drivebay.VolumeUsageUnknown {
				return nil
			}
			return say(nil, "CSIStatus is %v, OperationalStatus %v, Usage %v", v.CSIStatus, v.OperationalStatus, v.Usage)
		},
	},
}

// failed describes a failure: in which state, why, and what tries again.
func failed[S ~uint8](f *drivebay.Failure[S]) *hit {
	if f == nil {
		return say(nil, "something failed and its cause was not kept")
	}
	again := "not tried again before an operator says so"
	switch f.Retry {
	case drivebay.RetryOnCall:
		again = "the next call tries again"
	case drivebay.RetryTimed:
		again = "tried again at " + f.Next.UTC().Format(time.RFC3339)
	}
	tries := ""
	if f.Tries > 1 {
		tries = fmt.Sprintf("%d times, ", f.Tries)
	}
	return say(nil, "%v failed: %s (%s%s)", f.Before, drivebay.PlainText(f.Cause, drivebay.MaxConditionText/2), tries, again)
}

// placeName returns the partition GUID, or "group/logical volume"; "" for a whole drive.
func placeName(l *drivebay.Location) string {
	switch l.Kind {
	case drivebay.LocationPartition:
		return l.Partition
	case drivebay.LocationLVM, drivebay.LocationThin, drivebay.LocationMirror:
		return l.VG + "/" + l.LV
	}
	return ""
}
