package hosttest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay/internal/host/hosttest"
)

// TestClock: a clock that is set shows another wall time, and measures durations as before.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &hosttest.Clock{}
		for _, by := range []time.Duration{0, 365 * 24 * time.Hour, -2 * 365 * 24 * time.Hour} {
			began, wall := c.Now(), c.Now().Unix()
			time.Sleep(1500 * time.Millisecond)
			c.Set(by)
			if took := c.Now().Sub(began); took != 1500*time.Millisecond {
				t.Errorf("set by %v, 1.5 s took %v", by, took)
			}
			if moved := c.Now().Unix() - wall; moved != int64(by/time.Second)+1 && moved != int64(by/time.Second)+2 {
				t.Errorf("set by %v, the wall time moved by %d s", by, moved)
			}
		}
	})
}
