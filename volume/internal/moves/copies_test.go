package moves

import (
	"errors"
	"testing"
	"time"
)

// TestCopyBacksOff: a copy that ends with the same error again and again is tried less and less often.
func TestCopyBacksOff(t *testing.T) {
	var m copyMoves
	now := time.Unix(1000000, 0)
	for i, c := range []struct {
		err     string
		want    time.Duration
		blocked bool
	}{
		{"refused", time.Minute, false}, {"refused", 2 * time.Minute, false}, {"refused", 4 * time.Minute, true}, {"refused", 5 * time.Minute, true},
		{"the drive is gone", time.Minute, false},
	} {
		m.Enter("v", &CopyMove{})
		m.Leave("v", errors.New(c.err), now)
		if last := m.Last("v"); last.Again.Sub(now) != c.want || last.Tries != i+1 || (m.Blocked("v") != "") != c.blocked {
			t.Errorf("attempt %d: %+v, blocked by %q", i+1, last, m.Blocked("v"))
		}
	}
	m.Enter("v", &CopyMove{})
	if m.Leave("v", nil, now); m.Last("v").Tries != 0 || m.Blocked("v") != "" {
		t.Errorf("it has moved: %+v", m.Last("v"))
	}
}
