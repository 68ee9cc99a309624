package write

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// LVMStep returns a plan of LVM as one step. The step is done when LVM's own report shows all of it.
func (e *Writer) LVMStep(name string, l drivebay.Location, wrote *atomic.Bool, plan func(*lvm.Report) ([]lvm.Step, error)) steps.Step {
	return steps.Step{
		Name: name,
		Done: func(ctx context.Context) (bool, error) {
			r, err := e.reportForChange(ctx, l)
			if err != nil {
				return false, err
			}
			steps, err := plan(r)
			return !slices.ContainsFunc(steps, func(s lvm.Step) bool { return !s.Done(r) }), err
		},
		Do: func(ctx context.Context) error {
			r, err := e.reportForChange(ctx, l)
			if err != nil {
				return err
			}
			steps, err := plan(r)
			if err != nil {
				return err
			}
			wrote.Store(true)
			return e.LVMRun(ctx, l, steps)
		},
	}
}

// reportForChange returns the report of a location before a change. It refuses a logical volume that only
// has the name of the recorded one.
func (e *Writer) reportForChange(ctx context.Context, l drivebay.Location) (*lvm.Report, error) {
	r, err := e.Groups.ReportOf(ctx, l)
	if err != nil {
		return nil, err
	}
	return r, instances.RefuseOther(r, l)
}

// When skips a step unless there returns true.
func When(there func(context.Context) (bool, error), s steps.Step) steps.Step {
	done := s.Done
	s.Done = func(ctx context.Context) (bool, error) {
		if is, err := there(ctx); err != nil || !is {
			return !is, err
		}
		return done(ctx)
	}
	return s
}

// LVMRun changes the volume group of a location. It refuses if a drive is not claimed, if LVM
// does not report all volumes that the records have in the group, if a volume would get
// extents with data that another one left and that is not wiped yet, or if the plan removes the
// label of a physical volume whose partition may not be removed after that.
func (e *Writer) LVMRun(ctx context.Context, l drivebay.Location, steps []lvm.Step) error {
	guarded := make([]lvm.Step, len(steps))
	for i, s := range steps {
		may := s.May
		s.May = func(r *lvm.Report) error {
			if err := e.Inventory.Intact(l, r); err != nil {
				return err
			}
			if s.Allocates {
				if err := e.Erase.Unwiped(l, r); err != nil {
					return err
				}
			}
			if may == nil {
				return nil
			}
			return may(r)
		}
		guarded[i] = s
	}
	if !ledger.IsMoving(l) && slices.ContainsFunc(steps, func(s lvm.Step) bool { return s.Allocates }) {
		if err := e.Erase.WipeFree(ctx, l); err != nil {
			return err
		}
	}
	if err := e.mayRemovePartitions(ctx, l, steps); err != nil {
		return err
	}
	return e.Device.LVMWithoutLost(ctx, l, guarded)
}

// mayRemovePartitions refuses a plan that removes the label of a physical volume on a drive whose
// partition table may not change now. The partition would stay without a label: what is in it is
// unknown then, and no volume is made on the machine while a drive is unknown.
func (e *Writer) mayRemovePartitions(ctx context.Context, l drivebay.Location, plan []lvm.Step) error {
	if !slices.ContainsFunc(plan, func(s lvm.Step) bool { return s.Unlabels != "" }) {
		return nil
	}
	r, err := e.Groups.ReportOf(ctx, l)
	if err != nil {
		return err
	}
	for _, id := range l.Drives {
		p, there := e.Groups.PVPart(id)
		pv, _ := r.On(p.Dev)
		if !there || pv == nil || !slices.ContainsFunc(plan, func(s lvm.Step) bool { return s.Unlabels == pv.UUID }) {
			continue
		}
		if err := e.WithTable(ctx, id, func(context.Context, host.Disk, *gpt.Table) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}
