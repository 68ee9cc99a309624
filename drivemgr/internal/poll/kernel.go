package poll

import (
	"reflect"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/kernel"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
)

// ReadKernel updates the kernel's evidence of all drives. It starts no process and
// touches no disk.
func (m *Poller) ReadKernel() {
	now := m.State.Machine.Now()
	for _, t := range m.State.Drives {
		if !t.Present {
			continue
		}
		// Where a drive has findings or may get one, the passing of time alone may change the verdict.
		if m.RefreshKernel(t, now) || len(t.Rec.Memory.Findings) > 0 || len(t.Rec.Memory.Seen) > 0 {
			m.Assess(t)
		}
		m.State.KeepLogged(t, now)
	}
}

// RefreshKernel reads the kernel's evidence of one drive and reports whether it changed.
func (m *Poller) RefreshKernel(t *state.Tracked, now time.Time) bool {
	k := m.kernelOf(t, now)
	if sameKernel(t.Drive.Kernel, k) {
		return false
	}
	switch was := t.Drive.Kernel; {
	case k.GivenUp():
		t.Kernlog.MarkLeft(now)
	case was != nil && was.GivenUp():
		t.Kernlog.AddReturn(now)
	}
	t.Drive.Kernel = k
	return true
}

// kernelOf reads the kernel's evidence of one drive and adds the manager's own: how
// long the lane is held, the errors of the kernel log, the error of the last open.
func (m *Poller) kernelOf(t *state.Tracked, now time.Time) *drivebay.Kernel {
	prev := t.Drive.Kernel
	k := kernel.Read(m.State.Machine, &t.Drive, prev, now)
	if prev != nil && !t.FSErrorLogged && now.Sub(t.FSErrorsRead) < kernel.FSEvery {
		k.Filesystems = prev.Filesystems
	} else {
		k.Filesystems = kernel.FSErrors(m.State.Machine, &t.Drive)
		t.FSErrorsRead, t.FSErrorLogged = now, false
	}
	if held := t.Lane.Occupied(now); held >= m.stuckAfter(t) {
		k.LaneStuck = held.Truncate(time.Second)
	}
	t.Kernlog.Count(k, now)
	k.OpenError = t.OpenError
	t.OurErrors = subtractOurs(k.IOErrors, t.OurErrors)
	t.OurTimeouts = subtractOurs(k.IOTimeouts, t.OurTimeouts)
	return k
}

// firstReadTime is how long the first reads of a drive may take before the drive counts as one that does not
// answer. Readiness waits no longer for it (budget: 5 s from the start with five hung drives).
const firstReadTime = 2 * time.Second

// stuckAfter returns the age from which a command of a drive counts as stuck: old enough for a rule to judge it.
// Before the content of a drive was read, the engine of volumes needs to know earlier; no rule judges that age.
func (m *Poller) stuckAfter(t *state.Tracked) time.Duration {
	after := min(m.State.Opt.ReadTimeout/3, m.State.Opt.Thresholds.SilentSuspect)
	if t.Drive.Content.Kind == drivebay.ContentUnknown {
		return min(after, firstReadTime)
	}
	return after
}

// subtractOurs subtracts what our own commands added to a counter, and returns what it has subtracted:
// where a driver does not count such commands, the surplus would hide later errors of the drive.
func subtractOurs(counter *uint64, ours uint64) uint64 {
	if counter == nil {
		return 0
	}
	ours = min(*counter, ours)
	*counter -= ours
	return ours
}

// sameKernel reports whether two readings differ in their time only.
func sameKernel(a, b *drivebay.Kernel) bool {
	if a == nil || b == nil {
		return a == b
	}
	at := b.At
	defer func() { b.At = at }()
	b.At = a.At // a copy would be garbage, for each drive and second
	return reflect.DeepEqual(a, b)
}
