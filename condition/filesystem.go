package condition

import (
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

// ScrubsAgree is how many checks of a mounted filesystem in a row must find it
// corrupted: a single check may have read a half-done write.
const ScrubsAgree = 3

var filesystemRules = []Rule{
	{
		Section: OnFS, Reason: "FilesystemCorruption", Severity: drivebay.SeverityDataLoss,
		When: fmt.Sprintf("read-only checks call the filesystem corrupted: %d in a row, or one while it was not mounted", ScrubsAgree),
		Says: "how many agree, when the newest ran and what it found", Next: "Stop the pod, take a copy of the volume, then repair the filesystem unmounted or restore it.",
		Source: kepCodes + "; " + seedNode + " step 6",
		check: func(l *look) *hit {
			s := l.scrub()
			if s == nil || s.Corrupt < ScrubsAgree && (s.Mounted || s.Corrupt < 1) {
				return nil
			}
			return say(nil, "%d checks in a row, the newest %s, call the filesystem corrupted: %s", s.Corrupt, scrubTime(s), s.Text)
		},
	},
	{
		Section: OnFS, Reason: "FilesystemCorruption", Severity: drivebay.SeverityDegraded,
		When: "the kernel counts errors in the filesystem",
		Says: "how many", Next: "Check it with `drivebay scrub {volume}`; repair it unmounted.",
		Source: kepCodes + "; fs/ext4/sysfs.c: errors_count",
		check: func(l *look) *hit {
			if l.FS == nil || l.FS.Errors == 0 {
				return nil
			}
			return say(nil, "the kernel has met %d errors in the filesystem", l.FS.Errors)
		},
	},
	{
		Section: OnFS, Reason: "FilesystemShutdown", Severity: drivebay.SeverityInaccessible,
		When: "the filesystem has shut itself down",
		Says: "that every access fails", Next: "Once the drive is sound stop the pod and run `drivebay heal {volume}`: mounted anew it replays its log.",
		Source: "KEP-1432, read/write I/O errors; XFS shuts down when it cannot write its log",
		check: func(l *look) *hit {
			if l.FS == nil || !l.FS.Shutdown {
				return nil
			}
			return say(nil, "the filesystem has shut itself down: every access fails")
		},
	},
	{
		Section: OnFS, Reason: "ReadOnlyFilesystem", Severity: drivebay.SeverityDegraded,
		When: "the filesystem is read-only, by the kernel or by a mount command, and not because a call asked for it",
		Says: "that every write fails and reads go on", Next: "Once the drive is sound stop the pod and run `drivebay heal {volume}`, which mounts it anew and has it checked.",
		Source: "KEP-1432, read/write I/O errors; ext4(5): errors=remount-ro; csi.proto 1.13, DEGRADED: usable but not operating optimally",
		check: func(l *look) *hit {
			if l.FS == nil || !l.FS.ReadOnly {
				return nil
			}
			return say(nil, "the kernel has turned the filesystem read-only: every write fails, reads go on")
		},
	},
	{
		Section: OnFS, Reason: "OutOfCapacity", Severity: drivebay.SeverityDegraded,
		When: "the filesystem's bytes or inodes are used to `volumes.fullPercent` of the configuration (off by default: how full a volume is is no fault); what is reserved for root does not count as free",
		Says: "what has run out, and how full it is", Next: "Expand the volume, or delete what it need not hold.",
		Source: kepCodes,
		check: func(l *look) *hit {
			if l.FS == nil {
				return nil
			}
			for _, of := range []struct {
				what      string
				free, all *uint64
				reserved  uint64
			}{{"space", l.FS.Free, l.FS.Bytes, l.FS.Reserved}, {"inodes", l.FS.FreeInodes, l.FS.Inodes, 0}} {
				if used, known := usedPercent(of.free, of.all, of.reserved); known && l.FS.Full > 0 && used >= float64(l.FS.Full) {
					return say(nil, "%d %% of the filesystem's %s are used", int(used), of.what)
				}
			}
			return nil
		},
	},
}

// scrub returns the newest check result; nil for block volumes: their content is not ours.
func (l *look) scrub() *drivebay.Scrub {
	if l.FS == nil {
		return nil
	}
	return l.FS.Scrub
}

// scrubTime says when a check was made.
func scrubTime(s *drivebay.Scrub) string {
	if s.At.IsZero() {
		return "at an unknown time"
	}
	return fmt.Sprintf("at %s", s.At.UTC().Format(time.RFC3339))
}

// usedPercent returns the used percentage of what users other than root can use, as df(1)
// does. It needs both numbers; a filesystem without a fixed number of inodes has neither.
func usedPercent(free, all *uint64, reserved uint64) (float64, bool) {
	if free == nil || all == nil || *all <= reserved {
		return 0, false
	}
	usable := float64(*all - reserved)
	return 100 * (usable - min(float64(*free), usable)) / usable, true
}
