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

const evacuate = "Stop the pod and copy the data that can be read. `drivebay drive show {drive}` shows whether the drive has failed; if so, replace it and restore the volume from a copy."

var ioRules = []Rule{
	{
		Section: OnIO, Reason: "RWIOError", Severity: drivebay.SeverityInaccessible,
		When: "a small read of the volume by the daemon fails",
		Says: "the error of the kernel", Next: evacuate,
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
		When: "a drive cannot read sectors of the volume, and no other drive has them",
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
		When: "requests to the device of the volume failed within the last 24 h, and it is not proved that the cause is gone, or its filesystem has lost writes",
		Says: "how many", Next: "Check the kernel log and `drivebay drive show {drive}`. Check the filesystem with `drivebay scrub {volume}`.",
		Source: kepCodes + "; kernel log, ioerr_cnt; fs/ext4/page-io.c, ext4_end_bio; fs/iomap, writeback error",
		check: func(l *look) *hit {
			if l.IO == nil {
				return nil
			}
			n := max(l.IO.Errors, l.IO.Unreadable)
			if n == 0 || n == l.IO.Unreadable && l.lost(l.unreadableSectors()) {
				return nil
			}
			return say(nil, "%d requests to the volume failed within the last 24 h", n)
		},
	},
	{
		Section: OnIO, Reason: "IOStalled", Severity: drivebay.SeverityInaccessible,
		When: fmt.Sprintf("requests have waited for %d s and none has completed", ioStalled/time.Second),
		Says: "that the drive hangs", Next: "Programs that use the volume hang. Do not access its mounts. Check the kernel log; if the drive does not recover, pull it.",
		Source: "/sys/block/*/inflight and stat show a hung disk and send it no request; csi-baremetal volume health proposal, use cases",
		check: func(l *look) *hit {
			if l.IO == nil || l.IO.Frozen < ioStalled {
				return nil
			}
			return say(nil, "requests have waited for more than %d s and none has completed", ioStalled/time.Second)
		},
	},
	{
		Section: OnIO, Reason: "HighLatency", Severity: drivebay.SeverityDegraded,
		When: fmt.Sprintf("requests take %d s, or have waited that long and none has completed", ioSlow/time.Second),
		Says: "that the drive is slow", Next: "Check which other programs use the drive. `drivebay drive show {drive}` shows whether it is failing.",
		Source: "KEP-1432: a degrading disk affects performance; /sys/block/*/stat",
		check: func(l *look) *hit {
			if l.IO == nil || l.IO.Frozen >= ioStalled || l.IO.Frozen < ioSlow && l.IO.Await < ioSlow {
				return nil
			}
			return say(nil, "requests take more than %d s", ioSlow/time.Second)
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
