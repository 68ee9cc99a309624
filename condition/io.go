package condition

import (
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// ioSlow is longer than a request takes on a sound disk under load. ioStalled is
// longer than on a disk that was asleep: its spin-up takes about 15 s.
const (
	ioSlow    = 3 * time.Second
	ioStalled = 20 * time.Second
)

const evacuate = "Stop the pod, save what can be read, and restore from a copy if the drive is at fault: `drivebay drive show {drive}`."

var ioRules = []Rule{
	{
		Section: OnIO, Reason: "RWIOError", Severity: drivebay.SeverityInaccessible,
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
		Section: OnIO, Reason: "RWIOError", Severity: drivebay.SeverityDataLoss,
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
		Section: OnIO, Reason: "RWIOError", Severity: drivebay.SeverityDegraded,
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
		Section: OnIO, Reason: "IOStalled", Severity: drivebay.SeverityInaccessible,
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
		Section: OnIO, Reason: "HighLatency", Severity: drivebay.SeverityDegraded,
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

// unreadableSectors returns the drives that cannot read sectors of the volume.
func (l *look) unreadableSectors() []leg {
	if l.IO == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.on), func(g leg) bool { return !slices.Contains(l.IO.UnreadableOn, g.id) })
}
