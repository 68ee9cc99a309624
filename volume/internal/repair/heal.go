package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mountoptions"
)

// Heal repairs a volume where it is used. It goes through the table of repairs in order, and does each one
// only if a diagnosis right before shows that it is needed. It finishes a repair that it has started, and
// starts none after the caller's time is over. Called again, it finds nothing to do, or continues.
func (e *Repairer) Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error) {
	report := drivebay.HealReport{Volume: r.Volume, Steps: []drivebay.HealStep{}, DryRun: r.DryRun}
	came, caller := report, ctx
	err := e.Ledger.OnVolume(ctx, "heal", r.Volume, func(ctx context.Context, v drivebay.Volume) error {
		if err := e.mayHeal(ctx, &v, r); err != nil {
			return err
		}
		h := &healing{e: e, id: v.ID, r: r, report: &came, over: caller.Err}
		return h.run(ctx)
	})
	switch {
	case ctx.Err() != nil: // the work may continue, and still change came
		return report, err
	case errors.Is(err, errUnhealed):
		err = nil
	}
	err = errors.Join(err, e.publishSoon(ctx))
	if v, ok := e.Ledger.Volumes().Get(r.Volume); ok && !(r.DryRun && len(came.Steps) > 0) {
		came.Remaining = v.Condition
	}
	return came, err
}

// publishSoon publishes at once what was done: the next tick may be two seconds away, and the caller looks
// now.
func (e *Repairer) publishSoon(ctx context.Context) error {
	if err := e.LookAtMounts(ctx); err != nil {
		return err
	}
	e.Ledger.Publish()
	return nil
}

// LookAtMounts reads the mount table that the next sets are made from.
func (e *Repairer) LookAtMounts(ctx context.Context) error {
	t, err := e.MountTable.FreshTable(ctx)
	if err != nil {
		return err
	}
	e.Inventory.ViewMu.Lock()
	defer e.Inventory.ViewMu.Unlock()
	e.Watch.LastMounts = t
	return nil
}

// mayHeal returns an error if the request does not fit the volume, or the volume must not be healed now.
func (e *Repairer) mayHeal(ctx context.Context, v *drivebay.Volume, r drivebay.HealRequest) error {
	switch {
	case e.Inventory.Untrusted(v.Location.Drives): // what is unmounted there stays unmounted
		return e.Partitions.Trusted(v.Location.Drives)
	case r.Block != nil && *r.Block == v.HasFilesystem():
		return fmt.Errorf("%w: it is a volume of mode %v", drivebay.ErrInvalid, v.Mode)
	case r.Safe && moves(v, e.Drives.Snapshot()):
		return fmt.Errorf("%w: it is moving to another drive; retry later", drivebay.ErrPending)
	}
	if err := errors.Join(instances.Undecided(v), mountoptions.Check(v.FSType, r.Options)); err != nil {
		return err
	}
	return e.Mounts.HasPaths(ctx, v, r.Path, r.Staging)
}

// healing is one call of Heal.
type healing struct {
	e      *Repairer
	id     string
	r      drivebay.HealRequest
	report *drivebay.HealReport
	over   func() error // an error once the caller's time is over
}

func (h *healing) run(ctx context.Context) error {
	for i := range repairs {
		if err := h.over(); err != nil {
			return fmt.Errorf("before %q: %w", repairs[i].Name, err)
		}
		p, err := h.e.diagnose(ctx, h.id, h.r, i == 0)
		if err != nil {
			return err
		}
		if err := h.repair(ctx, &repairs[i], p); err != nil {
			return err
		}
	}
	return nil
}

// repair does one row of the table. A failure ends the healing: the rows that follow depend on it. A
// repair that the engine cannot do is reported, and skipped.
func (h *healing) repair(ctx context.Context, row *Repair, p *diagnosis) error {
	why, cannot := row.need(&p.signs)
	if why == "" {
		return nil
	}
	step := drivebay.HealStep{Repair: row.Name, Why: why}
	switch {
	case cannot != nil:
		step.Failed = cannot.Error()
	case h.r.Safe && !row.Safe:
		step.Failed = errNotAlone.Error()
		h.report.Steps = append(h.report.Steps, step)
		return errUnhealed
	case h.r.DryRun:
	default:
		err := h.do(ctx, row, p)
		if step.Done = row.Does; err != nil {
			step.Done, step.Failed = "", err.Error()
		}
		h.report.Steps = append(h.report.Steps, step)
		h.note(p, step)
		return h.stops(err)
	}
	h.report.Steps = append(h.report.Steps, step)
	return nil
}

// do runs a repair, and proves that it worked.
func (h *healing) do(ctx context.Context, row *Repair, p *diagnosis) error {
	h.e.Log.Info("repair", "op", "heal", "volume", h.id, "repair", row.Name)
	if err := row.do(ctx, p); err != nil {
		return err
	}
	after, err := h.e.diagnose(ctx, h.id, h.r, false)
	if err != nil {
		return err
	}
	if !row.done(&p.signs, &after.signs) {
		return errors.New("it reported success, but its effect is missing")
	}
	if err := h.e.Opt.After(h.id, row.Name); err != nil {
		return fmt.Errorf("%s: %w: %w", row.Name, ledger.ErrStopped, err)
	}
	return nil
}

// errUnhealed ends a healing whose report says why.
var errUnhealed = errors.New("not healed")

func (h *healing) stops(err error) error {
	if err == nil || errors.Is(err, drivebay.ErrSecret) || errors.Is(err, ledger.ErrStopped) {
		return err
	}
	return errUnhealed
}

func (h *healing) note(p *diagnosis, step drivebay.HealStep) {
	if step.Failed != "" {
		h.e.Log.Warn("repair failed", "op", "heal", "volume", h.id, "repair", step.Repair, "err", step.Failed)
		return
	}
	cause := fmt.Sprintf("volume %q: %s: %s: %s", p.V.Name, step.Repair, step.Why, step.Done)
	if h.r.Safe {
		cause += " (by itself)"
	}
	h.e.Ledger.Note(drivebay.EventVolumeHealed, &p.V, cause)
}
