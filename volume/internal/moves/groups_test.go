package moves

import (
	"testing"
	"time"
)

// TestGroupMoveBacksOff: a move that fails again and again is tried less and less often, and says why
// after the third attempt. A step, other drives or other records end that.
func TestGroupMoveBacksOff(t *testing.T) {
	now := time.Unix(1000000, 0)
	fails := func(m *GroupMove, stepped bool) time.Duration {
		m.Ended(Attempt{Wait: "refused", Failed: true, Stepped: stepped}, now)
		return m.Next.Sub(now)
	}
	m := &GroupMove{Seen: "a"}
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		if got, why := fails(m, false), m.BlockedBy(); got != want || (why != "") != (i >= 2) {
			t.Errorf("attempt %d: the next one after %v, not %v; blocked by %q", i+1, got, want, why)
		}
	}
	m.Changed("a")
	if got := m.Next.Sub(now); got != 5*time.Minute {
		t.Errorf("nothing has changed: the next attempt after %v", got)
	}
	m.Changed("b")
	if got := m.Next.Sub(now); got != 10*time.Second || m.BlockedBy() != "" {
		t.Errorf("a drive has changed: the next attempt after %v, blocked by %q", got, m.BlockedBy())
	}
	fails(m, false)
	if fails(m, true) != 10*time.Second {
		t.Error("a step was done, and it waits as if none was")
	}
	for range 5 {
		m.Ended(Attempt{Wait: "another call has the volume", Failed: true, Passes: true}, now)
	}
	if got := m.Next.Sub(now); got != 10*time.Second || m.BlockedBy() != "" {
		t.Errorf("it waits for another call: the next attempt after %v, blocked by %q", got, m.BlockedBy())
	}
	for range 5 {
		m.Ended(Attempt{Wait: "no drive has room", Failed: true, NoSpace: true}, now)
	}
	if got := m.Next.Sub(now); got != 160*time.Second || m.BlockedBy() != "" {
		t.Errorf("no drive has room: the next attempt after %v, blocked by %q", got, m.BlockedBy())
	}
	if (*GroupMove)(nil).BlockedBy() != "" {
		t.Error("a group that does not move is blocked")
	}
}
