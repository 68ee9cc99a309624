package watch

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
)

// takeProbe records the result of a probe. It drops the result if the probed filesystem is gone by now:
// another filesystem has answered then.
func (e *Watcher) takeProbe(ctx context.Context, v *drivebay.Volume, staged *StagedFS, g *mounts.IOCounters, usage host.FSUsage, read bool, err error) {
	// The same size again means the same filesystem: no mount table is read for that.
	last := g.Read()
	there := err == nil && last.Measured && last.Usage.Bytes == usage.Bytes
	if !there {
		if t, err := e.MountTable.TableAfter(ctx, e.Machine.Now()); err == nil {
			_, there = staged.in(t)
		}
	}
	e.Inventory.ViewMu.Lock()
	for _, id := range v.Location.Drives {
		if seen := e.seenDrives[id]; seen != nil && seen.drive != nil {
			seen.ours = e.completed(seen.drive)
		}
	}
	e.Inventory.ViewMu.Unlock()
	news := true
	g.Write(func(m *mounts.ProbeResult) {
		m.Probing = false
		switch {
		case !there || errors.Is(err, drivebay.ErrTimeout) || errors.Is(err, context.Canceled):
		case err != nil:
			m.ReadError = err.Error()
		default:
			healed := read && m.ReadError != ""
			news = healed || !m.Measured
			m.Measured, m.Usage = true, usage
			if healed {
				m.ReadError = ""
			}
		}
	})
	if news { // other numbers can wait for the next tick
		e.Inventory.ChangedNow()
	}
}

// lastWords are errors of a filesystem that the kernel reports only in its log: that an XFS has shut
// itself down (fs/xfs/xfs_fsops.c, xfs_do_force_shutdown), and that an ext4 accepts no writes any more.
// For that ext4 the mount table once showed "ro", and shows "emergency_ro" since Linux 6.15. In between,
// and in the stable series that took over "ext4: don't set SB_RDONLY after filesystem errors", it shows
// rw, and a remount succeeds and changes nothing (tried, Debian's 6.1.0-56). A daemon that starts later
// learns it from the next write that fails.
var lastWords = []struct {
	kind, says string
	learn      func(*mounts.ProbeResult)
}{
	{"XFS (", "Shutting down filesystem", func(m *mounts.ProbeResult) { m.Shutdown = true }},
	{"XFS (", "Filesystem has been shut down", func(m *mounts.ProbeResult) { m.Shutdown = true }},
	{"EXT4-fs (", "Remounting filesystem read-only", func(m *mounts.ProbeResult) { m.GaveUp = true }},
}

// FollowKernelLog records the lastWords in a line of the kernel's log.
func (e *Watcher) FollowKernelLog(l host.LogLine) bool {
	e.Moves.FollowCopyErrors(l)
	for _, w := range lastWords {
		rest, ok := strings.CutPrefix(l.Text, w.kind)
		name, says, ok2 := strings.Cut(rest, "): ")
		if !ok || !ok2 || !strings.Contains(says, w.says) {
			continue
		}
		for _, id := range e.volumesOnDevice(path.Base(name)) {
			e.Mounts.Counters.Of(id).Write(w.learn)
		}
		return true
	}
	return false
}

// volumesOnDevice returns the volumes whose filesystem the kernel means by the name of a device: those
// that are on it now. The name may be in the record of a volume whose drive has gone, too; that volume is
// returned only if no other has the name.
func (e *Watcher) volumesOnDevice(name string) []string {
	var now, before []string
	for _, r := range e.Ledger.All() {
		p := mirror.StagedAt(&r.Volume)
		if p == nil || inventory.MadeOf(*p).Name != name {
			continue
		}
		before = append(before, r.Volume.ID)
		if d, err := e.Device.Stack(&r.Volume).State(); err == nil && d.Name == name && d.Num == inventory.MadeOf(*p).Num {
			now = append(now, r.Volume.ID)
		}
	}
	if len(now) > 0 {
		return now
	}
	return before
}
