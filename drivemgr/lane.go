package drivemgr

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// A lane is the one way to a drive. A question to a drive may never come back:
// the kernel holds the thread and no context ends it. The lane lets one question
// in at a time, lets its asker go when his time is up, and stays occupied until
// the kernel returns, so that a dead drive costs one thread and slows nobody.
type lane struct {
	token chan struct{}
	since atomic.Int64 // unix nanoseconds when the drive last left us waiting; 0 when nobody waits
}

func newLane() *lane { return &lane{token: make(chan struct{}, 1)} }

// occupied says for how long the question now inside has been waiting. A look is
// many questions: each answer begins the time anew, so that a drive which takes
// three seconds for each of ten pages is slow and not silent.
func (l *lane) occupied(now time.Time) time.Duration {
	since := l.since.Load()
	if since == 0 {
		return 0
	}
	return max(now.Sub(time.Unix(0, since)), 0)
}

// hearing is the machine as a look through the lane sees it: what the drive
// answers is heard by the lane.
func (l *lane) hearing(m host.Machine) host.Machine { return hearing{m, l} }

type hearing struct {
	host.Machine
	lane *lane
}

func (h hearing) OpenDrive(ctx context.Context, dev string) (host.Drive, error) {
	d, err := h.Machine.OpenDrive(ctx, dev)
	if err != nil {
		return nil, err
	}
	h.lane.since.Store(h.Now().UnixNano())
	return heard{d, h}, nil
}

type heard struct {
	host.Drive
	by hearing
}

// Page: a refusal is an answer, too. That the time is up, or that there is no
// drive, the kernel says and not the drive.
func (d heard) Page(ctx context.Context, p host.Page) ([]byte, error) {
	b, err := d.Drive.Page(ctx, p)
	if !errors.Is(err, host.ErrTimeout) && !errors.Is(err, host.ErrGone) {
		d.by.lane.since.Store(d.by.Now().UnixNano())
	}
	return b, err
}

func (d heard) ReadAt(b []byte, at int64) (int, error) {
	n, err := d.Drive.ReadAt(b, at)
	if err == nil || n > 0 {
		d.by.lane.since.Store(d.by.Now().UnixNano())
	}
	return n, err
}

// through runs ask in the lane and waits for it until ctx ends. When it gives up
// waiting the answer is thrown away, whenever it comes.
func through[T any](ctx context.Context, l *lane, clock host.Clock, ask func(context.Context) (T, error)) (T, error) {
	var zero T
	select {
	case l.token <- struct{}{}:
	case <-ctx.Done():
		return zero, fmt.Errorf("%w: an earlier question to the drive has no answer yet", drivebay.ErrBusy)
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
