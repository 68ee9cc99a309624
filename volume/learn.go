package volume

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// madeOf returns the device that a publication was made from.
func madeOf(p drivebay.Publication) device {
	num, name, _ := strings.Cut(p.Device, " ")
	return device{num: num, name: name}
}

// takeProbe records the result of a probe. It drops the result if the probed filesystem is gone by now:
// another filesystem has answered then.
func (e *Engine) takeProbe(ctx context.Context, v *drivebay.Volume, staged *stagedFS, g *ioCounters, usage host.FSUsage, err error) {
	// The same size again means the same filesystem: no mount table is read for that.
	last := g.read()
	there := err == nil && last.measured && last.usage.Bytes == usage.Bytes
	if !there {
		if t, err := e.tableAfter(ctx, e.machine.Now()); err == nil {
			_, there = staged.in(t)
		}
	}
	e.viewMu.Lock()
	for _, id := range v.Location.Drives {
		if seen := e.seenDrives[id]; seen != nil && seen.drive != nil {
			seen.ours = e.completed(seen.drive)
		}
	}
	e.viewMu.Unlock()
	news := true
	g.write(func(m *probeResult) {
		m.probing = false
		switch {
		case !there || errors.Is(err, drivebay.ErrTimeout) || errors.Is(err, context.Canceled):
		case err != nil:
			m.readError = err.Error()
		default:
			news = m.readError != "" || !m.measured
			m.readError, m.measured, m.usage = "", true, usage
		}
	})
	if news { // other numbers can wait for the next tick
		e.changedNow()
	}
}

// changedNow makes the engine publish at once.
func (e *Engine) changedNow() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// kernelLog returns the kernel's log from now on, if it can be read. Earlier lines are not read.
func (e *Engine) kernelLog(ctx context.Context) <-chan host.LogLine {
	log, err := e.machine.KernelLog(ctx)
	if e.kernelLogClosed.Store(err != nil); err != nil {
		return nil // the engine of the drives reports it already
	}
	return log
}

// lastWords are errors of a filesystem that the kernel reports only in its log: that an XFS has shut
// itself down (fs/xfs/xfs_fsops.c, xfs_do_force_shutdown), and that an ext4 accepts no writes any more.
// For that ext4 the mount table once showed "ro", and shows "emergency_ro" since Linux 6.15. In between,
// and in the stable series that took over "ext4: don't set SB_RDONLY after filesystem errors", it shows
// rw, and a remount succeeds and changes nothing (tried, Debian's 6.1.0-56). A daemon that starts later
// learns it from the next write that fails.
var lastWords = []struct {
	kind, says string
	learn      func(*probeResult)
}{
	{"XFS (", "Shutting down filesystem", func(m *probeResult) { m.shutdown = true }},
	{"XFS (", "Filesystem has been shut down", func(m *probeResult) { m.shutdown = true }},
	{"EXT4-fs (", "Remounting filesystem read-only", func(m *probeResult) { m.gaveUp = true }},
}

// followKernelLog records the lastWords in a line of the kernel's log.
func (e *Engine) followKernelLog(l host.LogLine) bool {
	e.followCopyErrors(l)
	for _, w := range lastWords {
		rest, ok := strings.CutPrefix(l.Text, w.kind)
		name, says, ok2 := strings.Cut(rest, "): ")
		if !ok || !ok2 || !strings.Contains(says, w.says) {
			continue
		}
		for _, id := range e.volumesOnDevice(path.Base(name)) {
			e.counters.of(id).write(w.learn)
		}
		return true
	}
	return false
}

// volumesOnDevice returns the volumes whose filesystem the kernel means by the name of a device: those
// that are on it now. The name may be in the record of a volume whose drive has gone, too; that volume is
// returned only if no other has the name.
func (e *Engine) volumesOnDevice(name string) []string {
	var now, before []string
	for _, r := range e.all() {
		p := stagedAt(&r.Volume)
		if p == nil || madeOf(*p).name != name {
			continue
		}
		before = append(before, r.Volume.ID)
		if d, err := e.plain(&r.Volume); err == nil && d.name == name && d.num == madeOf(*p).num {
			now = append(now, r.Volume.ID)
		}
	}
	if len(now) > 0 {
		return now
	}
	return before
}
