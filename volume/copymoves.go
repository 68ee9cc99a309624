package volume

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
)

// A goroutine does a move and holds the volume. A call that needs the volume cancels the copy:
// data can be copied again, and a pod does not wait.

const (
	moveAgain = time.Minute      // after a failed attempt
	roomAgain = 10 * time.Minute // after a failed one to make room
	roomTries = 3                // attempts that fail for a passing reason before the volume stays
	yieldTime = 10 * time.Second // for a canceled copy to end
)

// copyMove is the current work on the move of a volume.
type copyMove struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when it has ended
	firm   atomic.Bool   // it is near its end: a call for the volume waits for that
	accept chan struct{} // an operator has accepted the loss

	beside bool          // it does not hold the volume
	total  atomic.Uint64 // bytes
	copied atomic.Uint64 // bytes, written and then read back
	pace   pace          // of copied; only follow reads it
}

// copyMoves holds the current moves, and how the last attempts ended.
type copyMoves struct {
	mu       sync.Mutex
	by       map[string]*copyMove
	outcomes map[string]lastAttempt
	reported sync.Map // leftovers that were reported
}

type lastAttempt struct {
	text  string
	tries int
	again time.Time
	stays bool // it was to make room, and was taken back
	never bool // until a restart
}

func (m *copyMoves) of(id string) *copyMove {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[id]
}

// last returns the last attempt.
func (m *copyMoves) last(id string) lastAttempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outcomes[id]
}

// errStays is the error for a volume that could not be moved to make room.
var errStays = errors.New("it stays where it is")

// unmoved returns the volumes that recently could not be moved to make room, and why.
func (m *copyMoves) unmoved(now time.Time) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for id, last := range m.outcomes {
		if last.stays && now.Before(last.again.Add(roomAgain-moveAgain)) {
			out[id] = last.text
		}
	}
	return out
}

// keep drops the last attempts of volumes that are gone.
func (m *copyMoves) keep(is func(id string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.outcomes, func(id string, _ lastAttempt) bool { return !is(id) })
}

// forget makes the next attempt due at once.
func (m *copyMoves) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.outcomes, id)
}

func (m *copyMoves) enter(id string, way *copyMove) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by, m.outcomes = map[string]*copyMove{}, map[string]lastAttempt{}
	}
	if m.by[id] != nil {
		return false
	}
	m.by[id] = way
	return true
}

func (m *copyMoves) leave(id string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, id)
	switch {
	case errors.Is(err, errStopped):
		m.outcomes[id] = lastAttempt{never: true}
	case err != nil && !errors.Is(err, context.Canceled):
		m.outcomes[id] = lastAttempt{text: err.Error(), tries: m.outcomes[id].tries + 1, again: now.Add(moveAgain), stays: errors.Is(err, errStays)}
	default:
		delete(m.outcomes, id)
	}
}

// beginMove starts work on the move of a volume, if it is due and no call holds the volume.
// With beside, the volume may be used meanwhile.
func (e *Engine) beginMove(id, op string, beside bool, do func(context.Context, *copyMove) error) {
	if last := e.moves.last(id); last.never || e.machine.Now().Before(last.again) {
		return
	}
	end := func() {}
	if !beside {
		var err error
		if end, err = e.begin(id); err != nil {
			return
		}
	}
	ctx, cancel := context.WithCancel(e.ctx)
	m := &copyMove{cancel: cancel, over: make(chan struct{}), accept: make(chan struct{}, 1), beside: beside}
	if !e.moves.enter(id, m) {
		cancel()
		end()
		return
	}
	e.running.Go(func() {
		defer close(m.over) // a call that waits for this can begin at once
		err := safely(ctx, "volume "+id, func(ctx context.Context) error { return do(ctx, m) })
		if ctx.Err() != nil && !errors.Is(err, errStopped) {
			err = ctx.Err()
		}
		cancel()
		was := e.moves.last(id)
		e.moves.leave(id, err, e.machine.Now())
		end()
		if err != nil && !errors.Is(err, context.Canceled) && err.Error() != was.text {
			e.log.Warn("volume not moved", "op", op, "volume", id, "err", err)
		}
		e.changedNow()
	})
}

// beginFirst takes a volume, if need be from a move.
func (e *Engine) beginFirst(ctx context.Context, id string) (end func(), err error) {
	if end, err = e.begin(id); errors.Is(err, drivebay.ErrPending) && e.cancelMoveFor(ctx, id) {
		end, err = e.begin(id)
	}
	if err == nil {
		if err = e.unsettled(id); err != nil {
			end()
		}
	}
	return end, err
}

// cancelMoveFor makes a move release the volume, and reports whether it has.
func (e *Engine) cancelMoveFor(ctx context.Context, id string) bool {
	m := e.moves.of(id)
	if m == nil || m.beside {
		return false
	}
	if !m.firm.Load() {
		m.cancel()
	}
	select {
	case <-m.over:
		return true
	case <-e.machine.After(yieldTime):
	case <-ctx.Done():
	}
	return false
}

// copyPace returns the progress of the copy of a volume; zero if none runs.
func (e *Engine) copyPace(id string) pace {
	m := e.moves.of(id)
	if m == nil || m.total.Load() == 0 {
		return pace{}
	}
	m.pace.goes(m.copied.Load()/2, m.total.Load(), e.machine.Now()) // each byte is written, and read back
	return m.pace
}
