// Package follow waits for news of a daemon, also while the daemon restarts, and reads its events, each
// once and in order.
package follow

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
)

// Source is the daemon.
type Source interface {
	Events(ctx context.Context, after uint64, limit int) ([]drivebay.Event, error)
	WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error)
}

const (
	page     = 1000             // events in one call
	maxSeen  = 20_000           // events that are remembered: twice as many as a daemon keeps
	pause    = time.Second      // between two calls while the daemon does not answer
	pollTime = 30 * time.Second // after which a wait without an event checks the numbers
)

// Follower reads events. The number of the last event is its cursor. After a gap it reads all events
// that the daemon keeps, and returns those that it has not returned before: a daemon with another
// record store gives them other numbers.
type Follower struct {
	src   Source
	after uint64
	last  drivebay.Event
	seen  map[uint64]bool // hashes of events that were read
	order []uint64        // the same, oldest first
	seed  maphash.Seed
}

// New returns a follower that has read nothing.
func New(src Source) *Follower {
	return &Follower{src: src, seen: map[uint64]bool{}, seed: maphash.MakeSeed()}
}

// Kept returns all events that the daemon keeps and that were not returned before.
func (f *Follower) Kept(ctx context.Context) ([]drivebay.Event, error) {
	var all []drivebay.Event
	for after := uint64(0); ; {
		list, err := f.src.Events(ctx, after, page)
		if err != nil {
			return all, err
		}
		if len(list) == 0 {
			f.after = after
			return all, nil
		}
		after = list[len(list)-1].Seq
		all = append(all, f.unread(list)...)
	}
}

// unread returns the events that were not read before, and remembers them. The number of an event does
// not tell it apart from others: it can change while a daemon that has started reads its records.
func (f *Follower) unread(list []drivebay.Event) []drivebay.Event {
	var out []drivebay.Event
	for _, e := range list {
		f.last = e
		e.At, e.Seq = e.At.UTC().Round(0), 0
		h := maphash.Comparable(f.seed, e)
		if !f.seen[h] {
			f.seen[h] = true
			f.order = append(f.order, h)
			out = append(out, f.last)
		}
	}
	if over := len(f.order) - maxSeen; over > 0 {
		for _, h := range f.order[:over] {
			delete(f.seen, h)
		}
		f.order = slices.Clone(f.order[over:])
	}
	return out
}

// Follow calls each with new events until ctx ends or each fails.
func (f *Follower) Follow(ctx context.Context, away Away, each func([]drivebay.Event) error) error {
	for {
		list, err := Next(ctx, away, func() ([]drivebay.Event, error) { return f.next(ctx) }, func() ([]drivebay.Event, error) { return f.Kept(ctx) })
		if err != nil || ctx.Err() != nil {
			return err
		}
		if len(list) > 0 {
			if err := each(list); err != nil {
				return err
			}
		}
	}
}

// Away says what is done when the daemon does not answer, once, and when it answers again.
type Away struct {
	Lost func(error)
	Back func()
}

// Next returns what next brings. While the daemon does not answer it tries again, with fresh: what was
// known of the daemon does not count for another one. It returns the zero value once ctx ends, and an
// error that another try cannot end.
func Next[T any](ctx context.Context, away Away, next, fresh func() (T, error)) (T, error) {
	var zero T
	for gone := false; ; {
		got, err := next()
		switch {
		case ctx.Err() != nil:
			return zero, nil
		case err == nil:
			if gone {
				away.Back()
			}
			return got, nil
		case final(err):
			return zero, err
		case !gone:
			gone, next = true, fresh
			away.Lost(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return zero, nil
		}
	}
}

// final reports whether trying again cannot help.
func final(err error) bool {
	return errors.Is(err, drivebay.ErrInvalid) || errors.Is(err, drivebay.ErrNoSupport) || errors.Is(err, drivebay.ErrPermission)
}

// next waits for events that were not read.
func (f *Follower) next(ctx context.Context) ([]drivebay.Event, error) {
	soon, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	list, err := f.src.WaitEvents(soon, f.after)
	switch {
	case err == nil && len(list) > 0:
		f.after = list[len(list)-1].Seq
		return f.unread(list), nil
	case err != nil && soon.Err() == nil:
		return nil, err
	}
	return f.checked(ctx)
}

// checked reads everything again if the last event has another number now: the daemon was restarted
// between two calls.
func (f *Follower) checked(ctx context.Context) ([]drivebay.Event, error) {
	if f.after == 0 {
		return nil, nil
	}
	list, err := f.src.Events(ctx, f.after-1, 1)
	if err != nil {
		return nil, err
	}
	if len(list) == 1 && list[0].Seq == f.last.Seq && list[0].At.Equal(f.last.At) {
		return nil, nil
	}
	return f.Kept(ctx)
}
