// Package lane limits the resources that a drive which hangs can occupy.
package lane

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// A Lane serializes the requests to one drive. A request to a drive may never return: the
// kernel holds the thread, and the end of a context does not release it. The lane admits one
// request at a time, returns to the caller when its context ends, and stays occupied until
// the kernel returns. So a dead drive costs one thread and delays no other work.
type Lane struct {
	token chan struct{}
	// since when the drive has not answered; nil without a request. It has a monotonic reading: the clock may be set meanwhile.
	since atomic.Pointer[time.Time]
}

// ErrHeld is the error of a request whose context ended while an earlier request occupied the lane.
var ErrHeld = fmt.Errorf("%w: the drive has not answered an earlier request", drivebay.ErrBusy)

// New returns an idle lane.
func New() *Lane { return &Lane{token: make(chan struct{}, 1)} }

// Occupied returns for how long the present request has waited for the drive. One request
// may read many pages: Heard restarts the time after each answer, so that a drive which
// takes three seconds for each of ten pages counts as slow and not as silent.
func (l *Lane) Occupied(now time.Time) time.Duration {
	since := l.since.Load()
	if since == nil {
		return 0
	}
	return max(now.Sub(*since), 0)
}

// Idle reports whether no request is running.
func (l *Lane) Idle() bool { return len(l.token) == 0 }

// Heard records that the drive has just answered a part of the present request.
func (l *Lane) Heard(now time.Time) { l.since.Store(&now) }

// Through runs ask in the lane and waits for it until ctx ends. An answer that comes
// later is discarded: a device that it opened is closed.
func Through[T any](ctx context.Context, l *Lane, clock host.Clock, ask func(context.Context) (T, error)) (T, error) {
	var zero T
	if ctx.Err() != nil { // a select would choose between a free lane and the ended context at random
		return zero, fmt.Errorf("%w: the context ended before the request: %w", drivebay.ErrTimeout, ctx.Err())
	}
	select {
	case l.token <- struct{}{}:
	case <-ctx.Done():
		return zero, ErrHeld
	}
	l.Heard(clock.Now())
	type answer struct {
		value T
		err   error
	}
	came := make(chan answer, 1)
	var settled atomic.Bool // whether the caller gets the answer
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("request to the drive: panic: %v", p)
			}
			if opened, ok := any(a.value).(io.Closer); !settled.CompareAndSwap(false, true) && ok && a.err == nil {
				opened.Close()
			}
			l.since.Store(nil)
			<-l.token
			came <- a
		}()
		a.value, a.err = ask(ctx)
	}()
	select {
	case a := <-came:
		return a.value, a.err
	case <-ctx.Done():
		if settled.CompareAndSwap(false, true) {
			return zero, fmt.Errorf("%w: the drive has not answered", drivebay.ErrTimeout)
		}
		a := <-came
		return a.value, a.err
	}
}
