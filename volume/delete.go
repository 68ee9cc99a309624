package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// DeleteVolume wipes and removes a volume; one that is not there is removed.
func (e *Engine) DeleteVolume(ctx context.Context, id string) error {
	if err := e.takeInUnknown(ctx, id); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	switch _, err := e.record(id); {
	case errors.Is(err, drivebay.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("delete: %w", err)
	}
	var v drivebay.Volume
	err := e.work(ctx, id, func(ctx context.Context) error {
		if r, err := e.record(id); err == nil {
			v = r.Volume
		}
		return e.delete(ctx, id)
	})
	if err == nil && len(e.othersOf(id)) > 0 { // the record was of another one, from before
		err = e.sole(id)
	}
	if err != nil {
		return fmt.Errorf("delete volume %s: %w", id, e.retriable(&v, err))
	}
	return nil
}

// plainErrors say by themselves what a caller can do about a removal.
var plainErrors = []error{drivebay.ErrUnavailable, drivebay.ErrBusy, drivebay.ErrPending, drivebay.ErrNoSupport, drivebay.ErrPermission, drivebay.ErrTimeout,
	context.DeadlineExceeded, context.Canceled, errPanic}

// retriable makes an error of a removal that says nothing of the call one that is
// retried: the drive has gone, or answers with errors.
func (e *Engine) retriable(v *drivebay.Volume, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	broken := is(drivebay.ErrNotFound) || is(fs.ErrNotExist) || is(host.ErrUnreadable) || is(host.ErrGone) || is(errLacking) || e.wentAway(v)
	if err == nil || slices.ContainsFunc(plainErrors, is) || is(drivebay.ErrRefused) && !broken {
		return err
	}
	return fmt.Errorf("%w: %w", drivebay.ErrUnavailable, err)
}

// delete removes a volume that somebody has begun.
func (e *Engine) delete(ctx context.Context, id string) error {
	r, err := e.record(id)
	if errors.Is(err, drivebay.ErrNotFound) {
		return nil
	}
	if err := e.mayChange(id); err != nil {
		return err
	}
	if r.Volume.Mode == drivebay.ModeFS { // who has a block device open, the kernel does not say
		if err := e.dropLost(ctx, r.Volume); err != nil {
			return err
		}
		if r, err = e.record(id); err != nil {
			return err
		}
	}
	if err := e.mayRemove(ctx, &r.Volume); err != nil {
		return err
	}
	if err := errors.Join(e.supersede(&r), e.unmove(ctx, id)); err != nil {
		return err
	}
	_, err = e.change(id, func(r *drivebay.VolumeRecord) (err error) {
		never := r.Work != nil && r.Work.Op == drivebay.WorkCreate
		if r.Volume.CSIStatus != drivebay.CSIRemoving {
			if r.Volume, err = r.Volume.Moved(drivebay.CSIRemove); err != nil {
				return err
			}
		}
		if r.Work == nil || r.Work.Op != drivebay.WorkRemove {
			r.Work = &drivebay.Work{Op: drivebay.WorkRemove, Since: e.machine.Now()}
		}
		if never {
			r.Work.Made = append(r.Work.Made, neverWhole)
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.stopScrub(ctx, id) // and no other begins while there is work
	return e.remove(ctx, id)
}

func isHalfMade(v *drivebay.Volume) bool {
	state := v.State()
	return state.Status == drivebay.CSICreating || state.Status == drivebay.CSIFailed && state.Before == drivebay.CSICreating
}

// lostForGood says that a volume can neither be wiped nor come back: its drives were
// taken out for good, or are forgotten. While two drives cannot be told apart, one of
// them may be the drive of the volume under another id.
func lostForGood(s *drivebay.Snapshot, l drivebay.Location) bool {
	conflict := slices.ContainsFunc(s.Drives, func(d drivebay.Drive) bool { return d.IdentityIssue != "" && d.Status == drivebay.StatusOnline })
	return s.Seq > 0 && adrift(s, l) && !conflict
}

// mayRemove: nobody may have it mounted, whatever the record says.
func (e *Engine) mayRemove(ctx context.Context, v *drivebay.Volume) error {
	if v.Rest() != drivebay.CSICreated {
		return fmt.Errorf("%w: it is %s", drivebay.ErrBusy, cmp.Or(usedAt(v), "staged or published"))
	}
	mounts, err := e.mounted(ctx, v)
	switch {
	case err != nil && !errors.Is(err, drivebay.ErrNotFound):
		return err
	case len(mounts) > 0:
		return fmt.Errorf("%w: it is mounted at %s", drivebay.ErrBusy, mounts[0].Target)
	}
	return nil
}

// remove brings a removal to its end, and forgets the volume.
func (e *Engine) remove(ctx context.Context, id string) error {
	rec, err := e.record(id)
	if err != nil {
		return err
	}
	is, plan, err := e.planRemoval(&rec)
	if err == nil {
		err = e.run(ctx, id, plan)
	}
	if err != nil {
		return e.failed(ctx, id, err)
	}
	v := rec.Volume
	if v.CSIStatus == drivebay.CSIRemoving {
		v, _ = v.Moved(drivebay.CSIDone)
	}
	was := drivebay.ForgottenVolume{ID: id, Instance: instanceOf(v.Location), Replaced: true}
	if len(is.Location.Drives) < width(is.Location.Kind) { // its other leg may return
		err = e.bury(was)
	} else {
		err = e.unbury(was.Key())
	}
	if err := errors.Join(err, e.forget(id)); err != nil {
		return err
	}
	e.note(drivebay.EventVolumeDeleted, &v, fmt.Sprintf("volume %q was removed", v.Name))
	return nil
}

// planRemoval is how a volume is removed, and as what: a mirror maybe without its other drive.
func (e *Engine) planRemoval(rec *drivebay.VolumeRecord) (is drivebay.Volume, plan []step, err error) {
	is, _, _ = e.lone(rec)
	switch {
	case lostForGood(e.drives.Snapshot(), rec.Volume.Location):
		if is.LUKSUUID != "" {
			err = e.dropHeader(&is)
		}
	case is.Location.VG == "":
		plan = e.removePartition(rec)
	default:
		if is, err = e.aloneOrWhole(rec); err == nil {
			plan, err = e.removeLogical(&is)
		}
	}
	return is, plan, err
}

// removePartition marks the partition as nobody's first: one that is found half
// wiped, its record lost, is not taken for sound.
func (e *Engine) removePartition(rec *drivebay.VolumeRecord) []step {
	v := &rec.Volume
	n := ofVolume(rec)
	there := e.inTable(n, func(*gpt.Table) (bool, error) { return true, nil })
	shown := e.shown(n) // it may never have come to that
	plan := []step{e.retype("mark", n, typeMaking), when(e.unlessMade(v.ID, "wipe", there), shown)}
	plan = append(append(plan, e.erased(v, there)...), e.wiped(v, there))
	return append(plan, e.dropEntry(n)...)
}

// wiped does to a volume's data what its class has promised, where there still is
// a volume.
func (e *Engine) wiped(v *drivebay.Volume, there func(context.Context) (bool, error)) step {
	return e.made(v.ID, "wipe", func(ctx context.Context) error {
		if is, err := there(ctx); err != nil || !is {
			return err
		}
		v := below(v)
		do := rangeWipe(wipeOf(v))
		if do != nil {
			d, err := e.activate(ctx, v)
			if err == nil {
				err = e.overwrite(ctx, v, "wipe", 0, d.size, do)
			}
			if err == nil {
				err = e.leavesLegs(ctx, v)
			}
			if err != nil {
				return err
			}
		}
		return e.onDevice(ctx, v, true, clearMarks)
	})
}

// wentAway says whether the kernel does not have a drive of a volume: it may be ahead of
// the snapshot.
func (e *Engine) wentAway(v *drivebay.Volume) bool {
	s := e.drives.Snapshot()
	return slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		d, known := driveOf(s, id)
		if !known || d.Status != drivebay.StatusOnline {
			return true
		}
		_, err := e.machine.ReadDir("sys/block/" + d.Name)
		return errors.Is(err, fs.ErrNotExist)
	})
}
