package volume

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// madeOf is the device that a publication was made from.
func madeOf(p drivebay.Publication) device {
	num, name, _ := strings.Cut(p.Device, " ")
	return device{num: num, name: name}
}

// learn takes what a probe brought. What was asked may not be there any more, and
// then it was another filesystem that answered.
func (e *Engine) learn(ctx context.Context, v *drivebay.Volume, staged *stagedFS, g *gauge, usage host.FSUsage, err error) {
	defer e.changedNow()
	// The same size again is the same filesystem: no table is read for that.
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
	g.write(func(m *measured) {
		m.probing = false
		switch {
		case !there || errors.Is(err, drivebay.ErrTimeout) || errors.Is(err, context.Canceled):
		case err != nil:
			m.readError = err.Error()
		default:
			m.readError, m.measured, m.usage = "", true, usage
		}
	})
}

// changedNow has the round look again.
func (e *Engine) changedNow() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// kernelLog is the kernel's log from now on, where it can be read.
func (e *Engine) kernelLog(ctx context.Context) <-chan host.LogLine {
	log, err := e.machine.KernelLog(ctx)
	if e.deaf.Store(err != nil); err != nil {
		return nil // the engine of the drives says so already
	}
	return log
}

// hear looks for an XFS that has shut itself down: of all that can go wrong with
// a filesystem, this the kernel tells in its log only (fs/xfs/xfs_fsops.c,
// xfs_do_force_shutdown).
func (e *Engine) hear(l host.LogLine) bool {
	e.hearCopy(l)
	rest, ok := strings.CutPrefix(l.Text, "XFS (")
	name, says, ok2 := strings.Cut(rest, "): ")
	if !ok || !ok2 || !strings.Contains(says, "Shutting down filesystem") && !strings.Contains(says, "Filesystem has been shut down") {
		return false
	}
	for _, r := range e.all() {
		if p := stagedAt(&r.Volume); p != nil && madeOf(*p).name == path.Base(name) {
			e.gauges.of(r.Volume.ID).write(func(m *measured) { m.shutdown = true })
			return true
		}
	}
	return false
}
