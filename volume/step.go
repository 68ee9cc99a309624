package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
)

// How long one touch of a drive may take. A mkfs of a large hard disk writes for a
// minute; a piece of zeros is a second on the slowest.
const (
	tableTime   = 60 * time.Second
	programTime = 10 * time.Minute
	pieceTime   = 2 * time.Minute
)

// step is a piece of destructive work that can be done again: interrupted anywhere,
// it is begun anew.
type step struct {
	name string
	done func(context.Context) (bool, error) // reads only
	do   func(context.Context) error
}

// errStopped ends work as a crash would: nothing is written down of it.
var errStopped = errors.New("stopped")

// run carries out a plan: what is done already is skipped, and what was done has
// to show.
func (e *Engine) run(ctx context.Context, id string, plan []step) error {
	for _, s := range plan {
		done, err := s.done(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if done {
			continue
		}
		e.log.Info("step", "op", s.name, "volume", id)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		switch done, err := s.done(ctx); {
		case err != nil:
			return fmt.Errorf("%s: %w", s.name, err)
		case !done:
			return fmt.Errorf("%s: it was done without an error, and does not show", s.name)
		}
		if err := e.opt.After(id, s.name); err != nil {
			return fmt.Errorf("%s: %w: %w", s.name, errStopped, err)
		}
	}
	return nil
}

// made is a step whose work cannot be seen afterwards: it is written down.
func (e *Engine) made(id, name string, do func(context.Context) error) step {
	return step{name: name,
		done: func(context.Context) (bool, error) {
			r, err := e.record(id)
			return err == nil && r.Work != nil && contains(r.Work.Made, name), err
		},
		do: func(ctx context.Context) error {
			if err := do(ctx); err != nil {
				return err
			}
			_, err := e.change(id, func(r *drivebay.VolumeRecord) error {
				if r.Work != nil {
					r.Work.Made = append(r.Work.Made, name)
				}
				return nil
			})
			return err
		},
	}
}

// unlessMade is a question whose answer is no once a step is written down.
func (e *Engine) unlessMade(id, name string, ask func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if r, err := e.record(id); err != nil || r.Work != nil && contains(r.Work.Made, name) {
			return false, err
		}
		return ask(ctx)
	}
}

// through does something in a lane of that name, for a limited time. Making has
// lanes of its own: whoever mounts does not wait for a mkfs of another volume.
func through[T any](ctx context.Context, e *Engine, key string, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := lane.Through(ctx, e.lanes.of(key), e.machine, do)
	return v, inOurWords(err)
}
