package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
)

// How long one access to a drive may take. A mkfs of a large hard disk writes for a
// minute; a piece of zeros is a second on the slowest.
const (
	tableTime   = 60 * time.Second
	programTime = 10 * time.Minute
	pieceTime   = 2 * time.Minute
)

// step is a piece of destructive work that can be repeated: after an interruption
// anywhere it starts again.
type step struct {
	name string
	done func(context.Context) (bool, error) // reads only
	do   func(context.Context) error
	// compound marks a step that runs other steps. Those are reported, it is not.
	compound bool
}

// errStopped ends work as a crash would: nothing of it is recorded.
var errStopped = errors.New("stopped")

// run executes a plan. It skips the steps that are done already, and fails if a step is
// not done after it ran.
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
			return fmt.Errorf("%s: it reported success, but its effect is missing", s.name)
		}
		if s.compound {
			continue
		}
		if err := e.opt.After(id, s.name); err != nil {
			return fmt.Errorf("%s: %w: %w", s.name, errStopped, err)
		}
	}
	return nil
}

// made returns a step whose result cannot be seen on the drive: it is noted in the record's present
// work. It fails if the record has other work by then: a wipe of one partition would count for another.
func (e *Engine) made(id, name string, do func(context.Context) error) step {
	planned, _ := e.record(id)
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
				if planned.Work == nil || !sameWork(r.Work, planned.Work) {
					return fmt.Errorf("volume %s: %w: other work has started; retry later", id, drivebay.ErrPending)
				}
				r.Work.Made = append(r.Work.Made, name)
				return nil
			})
			return err
		},
	}
}

// unlessMade returns a question whose answer is no once a step is noted in the record.
func (e *Engine) unlessMade(id, name string, ask func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if r, err := e.record(id); err != nil || r.Work != nil && contains(r.Work.Made, name) {
			return false, err
		}
		return ask(ctx)
	}
}

// through calls do in the lane of that name, for a limited time. Making volumes has
// lanes of its own: a mount does not wait for the mkfs of another volume.
func through[T any](ctx context.Context, e *Engine, key string, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := lane.Through(ctx, e.lanes.of(key), e.machine, do)
	return v, inOurWords(err)
}
