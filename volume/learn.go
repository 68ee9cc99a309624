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
	news := true
	g.write(func(m *measured) {
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

// changedNow has the round look again.
func (e *Engine) changedNow() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// kernelLog is the kernel's log from now on, where it can be read. What was said before
// nobody has heard.
func (e *Engine) kernelLog(ctx context.Context) <-chan host.LogLine {
	log, err := e.machine.KernelLog(ctx)
	if e.deaf.Store(err != nil); err != nil {
		return nil // the engine of the drives says so already
	}
	return log
}

// lastWords are what the kernel tells of a filesystem in its log only: that an XFS
// has shut itself down (fs/xfs/xfs_fsops.c, xfs_do_force_shutdown), and that an ext4
// takes no writes any more. Of that the mount table said "ro" once and says
// "emergency_ro" since Linux 6.15. In between, and in the stable series that took
// "ext4: don't set SB_RDONLY after filesystem errors" over, it says nothing: rw it
// is, and a remount says yes and changes nothing (tried, Debian's 6.1.0-56). Who
// comes later hears it with the next write that fails.
var lastWords = []struct {
	kind, says string
	learn      func(*measured)
}{
	{"XFS (", "Shutting down filesystem", func(m *measured) { m.shutdown = true }},
	{"XFS (", "Filesystem has been shut down", func(m *measured) { m.shutdown = true }},
	{"EXT4-fs (", "Remounting filesystem read-only", func(m *measured) { m.gaveUp = true }},
}

// hear looks for them in the kernel's log.
func (e *Engine) hear(l host.LogLine) bool {
	e.hearCopy(l)
	for _, w := range lastWords {
		rest, ok := strings.CutPrefix(l.Text, w.kind)
		name, says, ok2 := strings.Cut(rest, "): ")
		if !ok || !ok2 || !strings.Contains(says, w.says) {
			continue
		}
		for _, id := range e.holders(path.Base(name)) {
			e.gauges.of(id).write(w.learn)
		}
		return true
	}
	return false
}

// holders are the volumes whose filesystem the kernel means by the name of a device: those
// that are on it now. A name may be in the record of a volume whose drive has gone, too;
// that one is meant only where no other has the name.
func (e *Engine) holders(name string) []string {
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
