package machine

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// PowerCut ends the machine in the middle of whatever it does. What it had
// written to its drives stays as far as it left the guest: a drive's own
// volatile cache, which real ones lose, is not lost here.
func (m *Machine) PowerCut() { m.kill() }

// Boot starts the machine again after a power cut, with the drives that were in
// it. It boots for real: the state in memory is gone.
func (m *Machine) Boot(ctx context.Context) error {
	select {
	case <-m.exited:
	default:
		return fmt.Errorf("boot: the machine is running")
	}
	m.spec.Drives = slices.DeleteFunc(m.spec.Drives, func(d Drive) bool { return !m.drives[d.ID].plugged })
	err := twice(ctx, bootTime, m.log, func(ctx context.Context) error {
		m.kill()
		return m.boot(ctx)
	})
	if err != nil {
		return fmt.Errorf("boot: %w%s", err, m.lastWords())
	}
	m.guard()
	return nil
}

func (m *Machine) boot(ctx context.Context) error {
	for _, d := range m.drives {
		d.fault, d.plugged = "", false
	}
	return m.up(ctx, "")
}

// Clock is the time in the guest.
func (m *Machine) Clock(ctx context.Context) (time.Time, error) {
	out, err := m.Guest.Output(ctx, "date", "+%s %N")
	if err != nil {
		return time.Time{}, err
	}
	var s, ns int64
	if _, err := fmt.Sscan(out, &s, &ns); err != nil {
		return time.Time{}, fmt.Errorf("read the guest's clock: %w", err)
	}
	return time.Unix(s, ns), nil
}

// JumpClock moves the guest's clock, as a wrong time server does.
func (m *Machine) JumpClock(ctx context.Context, by time.Duration) error {
	now, err := m.Clock(ctx)
	if err != nil {
		return err
	}
	return m.Guest.SetClock(ctx, now.Add(by))
}
