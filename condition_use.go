package drivebay

import (
	"fmt"
	"slices"
	"time"
)

const (
	// scrubsAgree is how many checks of a mounted filesystem in a row must find it
	// corrupted: a single check may have read a half-done write.
	scrubsAgree = 3
	// ioSlow is longer than a request takes on a sound disk under load. ioStalled is
	// longer than on a disk that was asleep: its spin-up takes about 15 s.
	ioSlow    = 3 * time.Second
	ioStalled = 20 * time.Second
)

const evacuate = "Stop the pod, save what can be read, and restore from a copy if the drive is at fault: `drivebay drive show {drive}`."

var fsConditions = []ConditionRule{
	{
		Section: OnFS, Reason: "FilesystemCorruption", Severity: SeverityDataLoss,
		When: fmt.Sprintf("read-only checks call the filesystem corrupted: %d in a row, or one while it was not mounted", scrubsAgree),
		Says: "how many agree, when the newest ran and what it found", Next: "Stop the pod, take a copy of the volume, then repair the filesystem unmounted or restore it.",
		Source: kepCodes + "; " + seedNode + " step 6",
		check: func(l *look) *hit {
			s := l.scrub()
			if s == nil || s.Corrupt < scrubsAgree && (s.Mounted || s.Corrupt < 1) {
				return nil
			}
			return say(nil, "%d checks in a row, the newest %s, call the filesystem corrupted: %s", s.Corrupt, s.when(), s.Text)
		},
	},
	{
		Section: OnFS, Reason: "FilesystemCorruption", Severity: SeverityDegraded,
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
		Section: OnFS, Reason: "FilesystemShutdown", Severity: SeverityInaccessible,
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
		Section: OnFS, Reason: "ReadOnlyFilesystem", Severity: SeverityDegraded,
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
		Section: OnFS, Reason: "OutOfCapacity", Severity: SeverityDegraded,
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

var ioConditions = []ConditionRule{
	{
		Section: OnIO, Reason: "RWIOError", Severity: SeverityInaccessible,
		When: "a small read of the volume by us fails",
		Says: "the kernel's error", Next: evacuate,
		Source: kepCodes + "; a disk that returns errors looks healthy to statfs",
		check: func(l *look) *hit {
			if l.IO == nil || l.IO.ReadError == "" {
				return nil
			}
			return say(nil, "the volume cannot be read: %s", l.IO.ReadError)
		},
	},
	{
		Section: OnIO, Reason: "RWIOError", Severity: SeverityDataLoss,
		When: "a drive cannot read sectors of the volume; of a mirror, no other drive has them",
		Says: "how many", Next: evacuate,
		Source: kepCodes + ", bad blocks; kernel log, critical medium error; csi.proto 1.13, DATA_LOSS: permanent data loss is known or strongly suspected",
		check: func(l *look) *hit {
			if legs := l.unreadableSectors(); l.lost(legs) {
				return say(legs, "the drive cannot read %d sectors of the volume", l.IO.Unreadable)
			}
			return nil
		},
	},
	{
		Section: OnIO, Reason: "RWIOError", Severity: SeverityDegraded,
		When: "requests to the volume's device failed within a day, and it is not proved that the cause is gone",
		Says: "how many", Next: "See the kernel log and `drivebay drive show {drive}`; check the filesystem with `drivebay scrub {volume}`.",
		Source: kepCodes + "; kernel log, ioerr_cnt",
		check: func(l *look) *hit {
			if l.IO == nil {
				return nil
			}
			n := max(l.IO.Errors, l.IO.Unreadable)
			if n == 0 || n == l.IO.Unreadable && l.lost(l.unreadableSectors()) {
				return nil
			}
			return say(nil, "%d requests to the volume failed within a day", n)
		},
	},
	{
		Section: OnIO, Reason: "IOStalled", Severity: SeverityInaccessible,
		When: fmt.Sprintf("requests wait for %v and none comes back", ioStalled),
		Says: "that the drive hangs", Next: "Do not touch the mount; see the kernel log and be ready to pull the drive.",
		Source: "/sys/block/*/inflight and stat: visible on a hung disk with no touch; csi-baremetal volume health proposal, use cases",
		check: func(l *look) *hit {
			if l.IO == nil || l.IO.Frozen < ioStalled {
				return nil
			}
			return say(nil, "requests have been waiting for more than %v and none came back", ioStalled)
		},
	},
	{
		Section: OnIO, Reason: "HighLatency", Severity: SeverityDegraded,
		When: fmt.Sprintf("requests take %v, or wait so long and none comes back", ioSlow),
		Says: "that the drive is slow", Next: "See what else the drive does; `drivebay drive show {drive}` says if it is failing.",
		Source: "KEP-1432: a degrading disk affects performance; /sys/block/*/stat",
		check: func(l *look) *hit {
			if l.IO == nil || l.IO.Frozen >= ioStalled || l.IO.Frozen < ioSlow && l.IO.Await < ioSlow {
				return nil
			}
			return say(nil, "requests take more than %v", ioSlow)
		},
	},
}

var mountConditions = []ConditionRule{
	{
		Section: OnMount, Reason: "VolumeUnmounted", Severity: SeverityInaccessible,
		When: "a path at which the volume is published is not a mount of it, is hidden by another mount, or shows a device that is gone",
		Says: "which path, and what is mounted there instead", Next: "`drivebay heal {volume}` mounts it again; a container sees that after its next start. What was written there meanwhile is not on the volume.",
		Source: kepCodes + "; " + seedNode + " step 4",
		check: func(l *look) *hit {
			return unmounted(l.Mount, "target", func(m *MountFacts) *PathFacts { return m.Target })
		},
	},
	{
		Section: OnMount, Reason: "VolumeUnmounted", Severity: SeverityDegraded,
		When: "the staging path is not a mount of the volume, is hidden by another mount, or shows a device that is gone",
		Says: "which path, and what is mounted there instead", Next: "`drivebay heal {volume}` stages it again. Pods that have the volume keep it; no other can get it before.",
		Source: kepCodes + "; " + seedNode + " step 3",
		check: func(l *look) *hit {
			return unmounted(l.Mount, "staging", func(m *MountFacts) *PathFacts { return m.Staging })
		},
	},
	{
		Section: OnMount, Reason: "PathUnreadable", Severity: SeverityInaccessible,
		When: "reading the path at which the volume is published fails",
		Says: "which path, and the kernel's error", Next: evacuate,
		Source: seedNode + " step 5",
		check: func(l *look) *hit {
			if l.Mount == nil || l.Mount.Target == nil || l.Mount.Target.ReadError == "" {
				return nil
			}
			t := l.Mount.Target
			return say(nil, "reading %s fails: %s", plain(t.Path, maxConditionText/2), t.ReadError)
		},
	},
}

// unreadableSectors returns the drives that cannot read sectors of the volume.
func (l *look) unreadableSectors() []leg {
	if l.IO == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.on), func(g leg) bool { return !slices.Contains(l.IO.UnreadableOn, g.id) })
}

func unmounted(m *MountFacts, what string, which func(*MountFacts) *PathFacts) *hit {
	if m == nil {
		return nil
	}
	p := which(m)
	switch {
	case p == nil || p.Mounted:
		return nil
	case p.Dead:
		return say(nil, "the %s path %s shows a device that is gone", what, plain(p.Path, maxConditionText/2))
	case p.Other != "":
		return say(nil, "the %s path %s has something else mounted: %s", what, plain(p.Path, maxConditionText/2), p.Other)
	}
	return say(nil, "the %s path %s is not mounted", what, plain(p.Path, maxConditionText/2))
}

// scrub returns the newest check result; nil for block volumes: their content is not ours.
func (l *look) scrub() *Scrub {
	if l.FS == nil {
		return nil
	}
	return l.FS.Scrub
}

func (s *Scrub) when() string {
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
