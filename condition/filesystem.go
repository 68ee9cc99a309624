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
		When: fmt.Sprintf("read-only checks found the filesystem corrupted: %d in a row, or one while it was not mounted", ScrubsAgree),
		Says: "how many checks agree, and when the newest ran and what it found", Next: "Stop the pod and copy the volume. Then repair the unmounted filesystem with `drivebay heal {volume} --fsck`, or restore it from a copy.",
		Source: kepCodes + "; " + seedNode + " step 6",
		check: func(l *look) *hit {
			s := l.scrub()
			if s == nil || s.Corrupt < ScrubsAgree && (s.Mounted || s.Corrupt < 1) {
				return nil
			}
			return say(nil, "%d checks in a row, the newest %s, found the filesystem corrupted: %s", s.Corrupt, scrubTime(s), s.Text)
		},
	},
	{
		Section: OnFS, Reason: "FilesystemCorruption", Severity: drivebay.SeverityDegraded,
		When: "the kernel has counted errors in the filesystem (ext4), or has logged that it found corruption (XFS, btrfs)",
		Says: "how many", Next: "Files may be damaged. Check the filesystem with `drivebay scrub {volume}`. To repair it, stop the pod and run `drivebay heal {volume} --fsck`.",
		Source: kepCodes + "; fs/ext4/sysfs.c: errors_count; fs/xfs/xfs_error.c, xfs_verifier_error; fs/btrfs/tree-checker.c",
		check: func(l *look) *hit {
			if l.FS == nil || l.FS.Errors == 0 {
				return nil
			}
			return say(nil, "the kernel has counted %d errors in the filesystem", l.FS.Errors)
		},
	},
	{
		Section: OnFS, Reason: "ContentOverwritten", Severity: drivebay.SeverityInaccessible,
		When: "the partition of the volume, which is not staged, does not have the filesystem or header that was made for it",
		Says: "what it has instead", Next: "Do not format it. Find out what has written there, and restore the filesystem or header with its own tools, or the volume from a copy.",
		Source: "a stage refuses such a partition; wipefs(8), dd(1)",
		check: func(l *look) *hit {
			if l.Overwritten == "" {
				return nil
			}
			return say(nil, "another program has overwritten its filesystem or header: the partition has %s", l.Overwritten)
		},
	},
	{
		Section: OnFS, Reason: "FilesystemShutdown", Severity: drivebay.SeverityInaccessible,
		When: "the filesystem has shut itself down, or was shut down",
		Says: "that every access fails", Next: "Repair the drive or its connection first. Then stop the pod and run `drivebay heal {volume}`: it mounts the filesystem again, which replays the journal.",
		Source: "KEP-1432, read/write I/O errors; XFS shuts down when it cannot write its log; fs/ext4/ioctl.c, ext4_force_shutdown",
		check: func(l *look) *hit {
			if l.FS == nil || !l.FS.Shutdown {
				return nil
			}
			return say(nil, "the filesystem has shut itself down: every access fails")
		},
	},
	{
		Section: OnFS, Reason: "ReadOnlyFilesystem", Severity: drivebay.SeverityDegraded,
		When: "the kernel or a mount command has made the filesystem read-only, and no call requested that",
		Says: "that writes fail and reads work", Next: "Repair the drive or its connection first. Then stop the pod and run `drivebay heal {volume}`: it mounts the filesystem again and has it checked.",
		Source: "KEP-1432, read/write I/O errors; ext4(5): errors=remount-ro; csi.proto 1.13, DEGRADED: usable but not operating optimally",
		check: func(l *look) *hit {
			if l.FS == nil || !l.FS.ReadOnly {
				return nil
			}
			return say(nil, "the filesystem has become read-only: every write fails, reads work")
		},
	},
	{
		Section: OnFS, Reason: "OutOfCapacity", Severity: drivebay.SeverityDegraded,
		When: "the used share of the bytes or inodes of the filesystem has reached `volumes.fullPercent` of the configuration (off by default). Space that is reserved for root does not count as free",
		Says: "whether space or inodes, and how much is used", Next: "Expand the volume, or delete files.",
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
					return say(nil, "the filesystem has used %d %% of its %s", int(used), of.what)
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
