package moves

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// A goroutine does a move and holds the volume. A call that needs the volume cancels the copy:
// data can be copied again, and a pod does not wait.

const (
	roomAgain = 10 * time.Minute // after a failed attempt to make room, in which it was taken back
	RoomTries = 3                // attempts that fail for a passing reason before the volume stays
	yieldTime = 10 * time.Second // for a canceled copy to end
)

// copyAgain is the wait after attempts to move a volume that ended with the same error: after another
// error the move has got further, for example to another drive.
var copyAgain = backoff.Backoff{First: time.Minute, Most: 5 * time.Minute}

// CopyMove is the current work on the move of a volume.
type CopyMove struct {
	Cancel context.CancelFunc
	Over   chan struct{} // closed when it has ended
	Firm   atomic.Bool   // it is near its end: a call for the volume waits for that
	Accept chan struct{} // an operator has accepted the loss

	Beside bool          // it does not hold the volume
	Total  atomic.Uint64 // bytes
	Copied atomic.Uint64 // bytes, written and then read back
	pace   Pace          // of copied; only follow reads it

	shownMu sync.Mutex
	shown   Pace // the same for those who see the volume
}

// copyMoves holds the current moves, and how the last attempts ended.
type copyMoves struct {
	mu       sync.Mutex
	by       map[string]*CopyMove
	Outcomes map[string]lastAttempt
	Reported sync.Map             // leftovers that were reported
	unwiped  map[string]time.Time // when the copies that a volume has left could not be wiped
}

type lastAttempt struct {
	Text  string
	Tries int // failed attempts in a row
	same  int // those of them that ended with this error
	Left  int // those of them that could not remove a copy
	at    time.Time
	Again time.Time
	stays bool // it was to make room, and was taken back
	Never bool // until a restart
}

// Of returns the move of a volume; nil if it does not move.
func (m *copyMoves) Of(id string) *CopyMove {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[id]
}

// Last returns the last attempt.
func (m *copyMoves) Last(id string) lastAttempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Outcomes[id]
}

// Blocked returns why the move of a volume has failed again and again; "" if it has not.
func (m *copyMoves) Blocked(id string) string {
	if last := m.Last(id); last.same >= blockedAfter && !last.stays {
		return last.Text
	}
	return ""
}

// ErrStays is the error for a volume that could not be moved to make room.
var ErrStays = errors.New("it stays where it is")

// notRemoved is the error of an attempt that could not remove a copy.
type notRemoved struct{ error }

func (e notRemoved) Unwrap() error { return e.error }

// NotRemoved marks the error of an attempt to move a volume that could not remove a copy: failed copies do not count as such.
func NotRemoved(err error) error { return notRemoved{err} }

// Unmoved returns the volumes that recently could not be moved to make room, and why.
func (m *copyMoves) Unmoved(now time.Time) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for id, last := range m.Outcomes {
		if last.stays && now.Before(last.at.Add(roomAgain)) {
			out[id] = last.Text
		}
	}
	return out
}

// Keep drops the last attempts of volumes that are gone.
func (m *copyMoves) Keep(is func(id string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.Outcomes, func(id string, _ lastAttempt) bool { return !is(id) })
	maps.DeleteFunc(m.unwiped, func(id string, _ time.Time) bool { return !is(id) })
}

// Unwiped records that a copy which a volume has left could not be wiped, and reports whether that is new.
func (m *copyMoves) Unwiped(id string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.unwiped[id]
	if m.unwiped == nil {
		m.unwiped = map[string]time.Time{}
	}
	m.unwiped[id] = now
	return !known
}

// WasUnwiped reports whether a copy that a volume has left could not be wiped since then.
func (m *copyMoves) WasUnwiped(id string, since time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unwiped[id].After(since)
}

// Forget makes the next attempt due at once.
func (m *copyMoves) Forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.Outcomes, id)
}

// Enter records that a volume moves; false: it does already.
func (m *copyMoves) Enter(id string, way *CopyMove) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by, m.Outcomes = map[string]*CopyMove{}, map[string]lastAttempt{}
	}
	if m.by[id] != nil {
		return false
	}
	m.by[id] = way
	return true
}

// Leave records the end of a move, and its outcome.
func (m *copyMoves) Leave(id string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, id)
	switch {
	case errors.Is(err, ledger.ErrStopped):
		m.Outcomes[id] = lastAttempt{Never: true}
	case err != nil && !errors.Is(err, context.Canceled):
		was := m.Outcomes[id]
		is := lastAttempt{Text: err.Error(), Tries: was.Tries + 1, Left: was.Left, same: 1, at: now, stays: errors.Is(err, ErrStays)}
		if is.Text == was.Text {
			is.same = was.same + 1
		}
		if _, left := errors.AsType[notRemoved](err); left {
			is.Left++
		}
		is.Again = now.Add(copyAgain.Wait(is.same))
		m.Outcomes[id] = is
	default:
		delete(m.Outcomes, id)
	}
}

// CancelMoveFor makes a move release the volume, and reports whether it has.
func (e *Tracker) CancelMoveFor(ctx context.Context, id string) bool {
	m := e.Moves.Of(id)
	if m == nil || m.Beside {
		return false
	}
	if !m.Firm.Load() {
		m.Cancel()
	}
	select {
	case <-m.Over:
		return true
	case <-e.Machine.After(yieldTime):
	case <-ctx.Done():
	}
	return false
}

// CopyPace returns the progress of the copy of a volume; zero if none runs.
func (e *Tracker) CopyPace(id string) Pace {
	m := e.Moves.Of(id)
	if m == nil || m.Total.Load() == 0 {
		return Pace{}
	}
	m.pace.Goes(m.Copied.Load()/2, m.Total.Load(), e.Machine.Now()) // each byte is written, and read back
	return m.pace
}
