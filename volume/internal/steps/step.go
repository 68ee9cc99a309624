package steps

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// How long one access to a drive may take. A mkfs of a large hard disk writes for a
// minute; a piece of zeros is a second on the slowest.
const (
	TableTime   = 60 * time.Second
	ProgramTime = 10 * time.Minute
	PieceTime   = 2 * time.Minute
)

// Step is a piece of destructive work that can be repeated: after an interruption
// anywhere it starts again.
type Step struct {
	Name string
	Done func(context.Context) (bool, error) // reads only
	Do   func(context.Context) error
	// compound marks a step that runs other steps. Those are reported, it is not.
	Compound bool
}

// Run executes a plan. It skips the steps that are done already, and fails if a step is
// not done after it ran.
func (e *Runner) Run(ctx context.Context, id string, plan []Step) error {
	for _, s := range plan {
		done, err := s.Done(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if done {
			continue
		}
		e.Log.Info("step", "op", s.Name, "volume", id)
		if err := s.Do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		switch done, err := s.Done(ctx); {
		case err != nil:
			return fmt.Errorf("%s: %w", s.Name, err)
		case !done:
			return fmt.Errorf("%s: it reported success, but its effect is missing", s.Name)
		}
		if s.Compound {
			continue
		}
		if err := e.Opt.After(id, s.Name); err != nil {
			return fmt.Errorf("%s: %w: %w", s.Name, ledger.ErrStopped, err)
		}
	}
	return nil
}

// Made returns a step whose result cannot be seen on the drive: it is noted in the record's present
// work. It fails if the record has other work by then: a wipe of one partition would count for another.
func (e *Runner) Made(id, name string, do func(context.Context) error) Step {
	planned, _ := e.Ledger.Record(id)
	return Step{Name: name,
		Done: func(context.Context) (bool, error) {
			r, err := e.Ledger.Record(id)
			return err == nil && r.Work != nil && slices.Contains(r.Work.Made, name), err
		},
		Do: func(ctx context.Context) error {
			if err := do(ctx); err != nil {
				return err
			}
			_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
				if planned.Work == nil || !SameWork(r.Work, planned.Work) {
					return fmt.Errorf("volume %s: %w: other work has started; retry later", id, drivebay.ErrPending)
				}
				r.Work.Made = append(r.Work.Made, name)
				return nil
			})
			return err
		},
	}
}

// UnlessMade returns a question whose answer is no once a step is noted in the record.
func (e *Runner) UnlessMade(id, name string, ask func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if r, err := e.Ledger.Record(id); err != nil || r.Work != nil && slices.Contains(r.Work.Made, name) {
			return false, err
		}
		return ask(ctx)
	}
}

// Through calls do in the lane of that name, for a limited time. Making volumes has
// lanes of its own: a mount does not wait for the mkfs of another volume.
func Through[T any](ctx context.Context, e *Runner, key string, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := lane.Through(ctx, e.Lanes.Of(key), e.Machine, do)
	return v, InOurWords(err)
}
