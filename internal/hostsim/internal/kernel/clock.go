package kernel

import (
	"sync"
	"time"
)

// WallClock is the real clock, or the bubble's clock inside a testing/synctest bubble.
type WallClock struct{}

func (WallClock) Now() time.Time                         { return time.Now() }
func (WallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// ManualClock is a clock that only Advance moves.
type ManualClock struct {
	mu    sync.Mutex
	now   time.Time
	waits []wait
}

type wait struct {
	at time.Time
	ch chan time.Time
}

// NewManualClock returns a clock set to t.
func NewManualClock(t time.Time) *ManualClock { return &ManualClock{now: t} }

// Now implements host.Clock.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After implements host.Clock.
func (c *ManualClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := wait{c.now.Add(d), make(chan time.Time, 1)}
	c.waits = append(c.waits, w)
	c.ring()
	return w.ch
}

// Advance moves the clock and wakes every waiter whose time has come.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.ring()
}

func (c *ManualClock) ring() {
	left := c.waits[:0]
	for _, w := range c.waits {
		if w.at.After(c.now) {
			left = append(left, w)
		} else {
			w.ch <- c.now
		}
	}
	c.waits = left
}
