package hosttest

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Clock is a clock as the kernel's: its wall time can be set, and its monotonic time goes on. Inside a testing/synctest bubble
// both follow the clock of the bubble, whose times have no monotonic reading of their own.
type Clock struct{ ahead atomic.Int64 }

// Set moves the wall time, by whole seconds. The monotonic time stays: this is a step of NTP, or the end of a suspend.
func (c *Clock) Set(by time.Duration) { c.ahead.Add(int64(by / time.Second)) }

// Now implements host.Clock.
func (c *Clock) Now() time.Time {
	t := time.Now().Round(0)
	monotonic := t.UnixNano()
	t = t.Add(time.Duration(c.ahead.Load()) * time.Second)
	const since1885, hasMonotonic = 2682288000, 1 << 63 // time.Time: 33 bits of seconds since 1885 and 30 bits of nanoseconds, then the monotonic reading
	parts := (*struct {
		wall uint64
		ext  int64
	})(unsafe.Pointer(&t))
	parts.wall = hasMonotonic | uint64(t.Unix()+since1885)<<30 | uint64(t.Nanosecond())
	parts.ext = monotonic
	return t
}

// After implements host.Clock.
func (c *Clock) After(d time.Duration) <-chan time.Time { return time.After(d) }
