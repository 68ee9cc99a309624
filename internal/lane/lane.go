// Package lane bounds what a drive that hangs can cost.
package lane

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// A Lane is the one way to a drive. A question to a drive may never come back:
// the kernel holds the thread and no context ends it. The lane lets one question
// in at a time, lets its asker go when his time is up, and stays occupied until
// the kernel returns, so that a dead drive costs one thread and slows nobody.
type Lane struct {
	token chan struct{}
	since atomic.Int64 // unix nanoseconds when the drive last left us waiting; 0 when nobody waits
}

// ErrHeld: somebody else's question was inside for as long as we would wait.
var ErrHeld = fmt.Errorf("%w: an earlier question to the drive has no answer yet", drivebay.ErrBusy)

// New makes a lane that nobody is in.
func New() *Lane { return &Lane{token: make(chan struct{}, 1)} }

// Occupied says for how long the question now inside has been waiting. A look is
// many questions: each answer begins the time anew, so that a drive which takes
// three seconds for each of ten pages is slow and not silent.
func (l *Lane) Occupied(now time.Time) time.Duration {
	since := l.since.Load()
	if since == 0 {
		return 0
	}
	return max(now.Sub(time.Unix(0, since)), 0)
}

// Idle says that nothing is inside and nothing waits for it to come out.
func (l *Lane) Idle() bool { return len(l.token) == 0 }

// Heard says that the drive has just answered a part of the question inside.
func (l *Lane) Heard(now time.Time) { l.since.Store(now.UnixNano()) }

// Through runs ask in the lane and waits for it until ctx ends. When it gives up
// waiting the answer is thrown away, whenever it comes.
func Through[T any](ctx context.Context, l *Lane, clock host.Clock, ask func(context.Context) (T, error)) (T, error) {
	var zero T
	select {
	case l.token <- struct{}{}:
	case <-ctx.Done():
		return zero, ErrHeld
	}
	l.since.Store(clock.Now().UnixNano())
	type answer struct {
		value T
		err   error
	}
	came := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("question to the drive: panic: %v", p)
			}
			l.since.Store(0)
			<-l.token
			came <- a
		}()
		a.value, a.err = ask(ctx)
	}()
	select {
	case a := <-came:
		return a.value, a.err
	case <-ctx.Done():
		return zero, fmt.Errorf("%w: the drive holds the question", drivebay.ErrTimeout)
	}
}
