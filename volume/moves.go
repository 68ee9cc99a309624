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

// A move is done in a goroutine of its own, which has the volume. Who wants to use
// the volume gets it: what is copied can be copied again, a pod does not wait.

const (
	moveAgain = time.Minute      // after a try that failed
	roomAgain = 10 * time.Minute // after one to make room for a growth
	roomTries = 3                // of those that failed for what passes, before the volume stays
	yieldTime = 10 * time.Second // for a copy to end that was told to
)

// mover is what is being done about the move of a volume.
type mover struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when it has ended
	firm   atomic.Bool   // it is short of its end: who wants the volume waits for that
	accept chan struct{} // an operator has accepted what is lost

	beside bool          // it does not have the volume
	total  atomic.Uint64 // bytes
	copied atomic.Uint64 // bytes, written and then read back
	pace   pace          // of that; only follow looks at it
}

// movers are those under way, and how the last tries ended.
type movers struct {
	mu   sync.Mutex
	by   map[string]*mover
	said map[string]ending
	told sync.Map // partitions that are nobody's
}

type ending struct {
	text  string
	tries int
	again time.Time
	stays bool // it was to make room, and was taken back
	never bool // in this life
}

func (m *movers) of(id string) *mover {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[id]
}

// last is how the last try ended.
func (m *movers) last(id string) ending {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said[id]
}

// errStays is the error for a volume that could not be moved to make room.
var errStays = errors.New("it stays where it is")

// unmoved are the volumes that could not be moved to make room a short time ago, and why.
func (m *movers) unmoved(now time.Time) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for id, last := range m.said {
		if last.stays && now.Before(last.again.Add(roomAgain-moveAgain)) {
			out[id] = last.text
		}
	}
	return out
}

// keep drops how the moves of volumes ended that are gone.
func (m *movers) keep(is func(id string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.said, func(id string, _ ending) bool { return !is(id) })
}

// forget makes the next try one that is due.
func (m *movers) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.said, id)
}

func (m *movers) enter(id string, way *mover) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by, m.said = map[string]*mover{}, map[string]ending{}
	}
	if m.by[id] != nil {
		return false
	}
	m.by[id] = way
	return true
}

func (m *movers) leave(id string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, id)
	switch {
	case errors.Is(err, errStopped):
		m.said[id] = ending{never: true}
	case err != nil && !errors.Is(err, context.Canceled):
		m.said[id] = ending{text: err.Error(), tries: m.said[id].tries + 1, again: now.Add(moveAgain), stays: errors.Is(err, errStays)}
	default:
		delete(m.said, id)
	}
}

// beginMove does something about the move of a volume, if it is due and nobody has
// the volume. Beside says that the volume may be used meanwhile.
func (e *Engine) beginMove(id, op string, beside bool, do func(context.Context, *mover) error) {
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
	m := &mover{cancel: cancel, over: make(chan struct{}), accept: make(chan struct{}, 1), beside: beside}
	if !e.moves.enter(id, m) {
		cancel()
		end()
		return
	}
	e.running.Go(func() {
		defer close(m.over) // whoever waits for that can begin at once
		err := safely(ctx, id, func(ctx context.Context) error { return do(ctx, m) })
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

// beginFirst takes a volume also from a move.
func (e *Engine) beginFirst(ctx context.Context, id string) (end func(), err error) {
	if end, err = e.begin(id); errors.Is(err, drivebay.ErrPending) && e.yielded(ctx, id) {
		end, err = e.begin(id)
	}
	if err == nil {
		if err = e.unsettled(id); err != nil {
			end()
		}
	}
	return end, err
}

// yielded has a move give the volume up, and says whether it has.
func (e *Engine) yielded(ctx context.Context, id string) bool {
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

// copyPace is how far the copy of a volume is; of nothing where none is under way.
func (e *Engine) copyPace(id string) pace {
	m := e.moves.of(id)
	if m == nil || m.total.Load() == 0 {
		return pace{}
	}
	m.pace.goes(m.copied.Load()/2, m.total.Load(), e.machine.Now()) // each byte is written, and read back
	return m.pace
}
