package condition

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

const tryAgain = "`drivebay volume show {volume}` shows the operation and its cause; `drivebay volume retry {volume}` tries again now."

// recordRules come last: several of them report a status only if no rule before them
// explains it.
var recordRules = []Rule{
	{
		Section: OnRecord, Reason: "VolumeConflict", Severity: drivebay.SeverityInaccessible,
		When:   "two complete volumes on the drives have the same ID, and it is unknown which one is newer",
		Says:   "where the other volume is",
		Next:   "To keep this volume, run `drivebay volume clear {volume}`. To use the other one, pull the drive of this one and run `drivebay volume forget {volume} --yes`.",
		Source: "records that are older than the drives, or an interrupted move, leave two volumes; one of them has old data",
		check: func(l *look) *hit {
			if l.Volume.Undecided() == "" {
				return nil
			}
			return say(nil, "%s", l.Volume.Undecided())
		},
	},
	{
		Section: OnRecord, Reason: "OperationFailed", Severity: drivebay.SeverityInaccessible,
		When: "CSIStatus is FAILED, and the volume is created or removed only in part, or the failed operation is unknown",
		Says: "what failed, the cause, and when it is tried again", Next: tryAgain,
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
		When: "CSIStatus is FAILED, and the volume is complete",
		Says: "what failed, the cause, and when it is tried again", Next: tryAgain + " `drivebay volume clear {volume}` clears the failure.",
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
		When: "Usage is FAILED: the volume could not be moved off a drive that is leaving",
		Says: "the cause, and when it is tried again", Next: "Do not pull the drive. " + tryAgain,
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
		When: "the volume was found in the middle of a move, and the drive that it was leaving is unknown",
		Says: "which drives the volume is on", Next: "The volume can be used. Choose the drive that the volume leaves: `drivebay release DRIVE`. Until then drivebay moves nothing.",
		Source: "the decision is lost with the records, and both drives are equally healthy",
		check: func(l *look) *hit {
			at := l.Volume.Location
			leaving := l.those(func(d *drivebay.Drive) bool { return d.Usage != drivebay.UsageInUse })
			if copies := map[bool]int{true: 2, false: 1}[at.Kind == drivebay.LocationMirror]; !at.Found || len(at.Drives) <= copies || len(leaving) == 1 || len(l.bad) == 1 {
				return nil
			}
			return say(nil, "the volume group is on %d drives because a move was interrupted", len(at.Drives))
		},
	},
	{
		Section: OnRecord, Reason: "MoveBlocked", Severity: drivebay.SeverityDegraded,
		When: "the volume is to move off a drive, and at least three attempts in a row have failed",
		Says: "why the last attempt failed", Next: "Do not pull the drive that the volume leaves. Remove the cause; drivebay tries again by itself, at the latest after 5 min.",
		Source: "a move that fails again and again needs an operator",
		check: func(l *look) *hit {
			if l.MoveBlocked == "" || l.Volume.Usage == drivebay.VolumeUsageFailed {
				return nil
			}
			return say(nil, "the volume does not move off its drive: %s", drivebay.PlainText(l.MoveBlocked, drivebay.MaxConditionText/2))
		},
	},
	{
		Section: OnRecord, Reason: "DataLost", Severity: drivebay.SeverityDataLoss,
		When: "an operator accepted the loss of data that could not be read while the volume moved off a drive, or of the newest data of a mirror",
		Says: "how many bytes, and where; of a mirror: which drive had them", Next: "Restore the lost data from a copy: it reads as zeros or is outdated. Check the filesystem with `drivebay scrub {volume}`. To end this finding, run `drivebay volume clear {volume}`.",
		Source: kepCodes + "; the drive answered the reads of this data with an error",
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
		When: "a complete listing lacks the partition or logical volume or shows it smaller than before, or OperationalStatus is MISSING, and no absent drive explains it",
		Says: "which partition or logical volume is missing or smaller", Next: "Another program removed, cut or hid it: check the drive. The space stays reserved until you restore it, or give up the volume with `drivebay volume forget {volume} --yes`.",
		Source: kepCodes + "; " + seedCtl + ".3, OperationalStatus == MISSING",
		check: func(l *look) *hit {
			missing := l.Gone && l.made() || l.Volume.OperationalStatus == drivebay.Missing
			if !missing || l.lost(l.dead) {
				return nil
			}
			what := fmt.Sprintf("%v %s", l.Volume.Location.Kind, placeName(&l.Volume.Location))
			if l.Smaller != "" {
				return say(nil, "the volume is not whole on its drive: %s: %s", l.Smaller, what)
			}
			return say(nil, "the volume is missing on its drive: %s", what)
		},
	},
	{
		Section: OnRecord, Reason: "VolumeInoperative", Severity: drivebay.SeverityInaccessible,
		When: "OperationalStatus is INOPERATIVE, and no finding above explains it",
		Says: "the node that knows the cause", Next: "On that node, run `drivebay explain {volume}`.",
		Source: "for a volume of another node only the last status that it sent is known",
		check: func(l *look) *hit {
			if l.Volume.OperationalStatus != drivebay.Inoperative || l.worst >= drivebay.SeverityInaccessible {
				return nil
			}
			return say(nil, "the volume is inoperative; only node %s knows the cause", l.Volume.Node)
		},
	},
	{
		Section: OnRecord, Reason: "HealthNotGood", Severity: drivebay.SeverityDegraded,
		When: "Health is not GOOD, and no known fault of a drive explains it",
		Says: "the health", Next: "On the node of the volume, run `drivebay explain {volume}`.",
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
		Says: "all three", Next: "The volume may have faults that are not shown. On its node, check that the daemon is running, and run `drivebay volume show {volume}`.",
		Source: "an unknown state is reported as unknown, not as healthy",
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
		return say(nil, "an operation failed; its cause is not recorded")
	}
	again := "waits for `drivebay volume retry`"
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
