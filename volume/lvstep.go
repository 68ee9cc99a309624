package volume

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// lvmStep is a plan of LVM as one step: done when LVM's own report says so of all
// of it.
func (e *Engine) lvmStep(name string, l drivebay.Location, wrote *atomic.Bool, plan func(*lvm.Report) ([]lvm.Step, error)) step {
	return step{
		name: name,
		done: func(ctx context.Context) (bool, error) {
			r, err := e.reportOf(ctx, l)
			if err = errors.Join(err, refuseOther(r, l)); err != nil {
				return false, err
			}
			steps, err := plan(r)
			return !slices.ContainsFunc(steps, func(s lvm.Step) bool { return !s.Done(r) }), err
		},
		do: func(ctx context.Context) error {
			r, err := e.reportOf(ctx, l)
			if err = errors.Join(err, refuseOther(r, l)); err != nil {
				return err
			}
			steps, err := plan(r)
			if err != nil {
				return err
			}
			wrote.Store(true)
			return e.lvmRun(ctx, l, steps)
		},
	}
}

// when skips a step while there is nothing that it could be done to.
func when(there func(context.Context) (bool, error), s step) step {
	done := s.done
	s.done = func(ctx context.Context) (bool, error) {
		if is, err := there(ctx); err != nil || !is {
			return !is, err
		}
		return done(ctx)
	}
	return s
}
