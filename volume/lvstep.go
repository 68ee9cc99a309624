package volume

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// lvmStep returns a plan of LVM as one step. The step is done when LVM's own report shows all of it.
func (e *Engine) lvmStep(name string, l drivebay.Location, wrote *atomic.Bool, plan func(*lvm.Report) ([]lvm.Step, error)) step {
	return step{
		name: name,
		done: func(ctx context.Context) (bool, error) {
			r, err := e.reportForChange(ctx, l)
			if err != nil {
				return false, err
			}
			steps, err := plan(r)
			return !slices.ContainsFunc(steps, func(s lvm.Step) bool { return !s.Done(r) }), err
		},
		do: func(ctx context.Context) error {
			r, err := e.reportForChange(ctx, l)
			if err != nil {
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

// reportForChange returns the report of a location before a change. It refuses a logical volume that only
// has the name of the recorded one.
func (e *Engine) reportForChange(ctx context.Context, l drivebay.Location) (*lvm.Report, error) {
	r, err := e.reportOf(ctx, l)
	if err != nil {
		return nil, err
	}
	return r, refuseOther(r, l)
}

// when skips a step unless there returns true.
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
