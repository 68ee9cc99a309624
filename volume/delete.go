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

// DeleteVolume wipes and removes a volume. A missing volume counts as removed.
func (e *Engine) DeleteVolume(ctx context.Context, id string) error {
	if err := e.takeInUnknown(ctx, id); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	switch _, err := e.record(id); {
	case errors.Is(err, drivebay.ErrNotFound):
		return e.recordDeletion(id)
	case err != nil:
		return fmt.Errorf("delete: %w", err)
	}
	err := e.work(ctx, id, func(ctx context.Context) error {
		r, _ := e.record(id) // without a record there is nothing to delete
		return e.retriable(&r.Volume, e.delete(ctx, id))
	})
	switch {
	case err != nil:
	case len(e.othersOf(id)) > 0: // the record named another, older volume
		err = e.retriable(&drivebay.Volume{}, e.refuseSecond(id))
	default:
		err = e.retriable(&drivebay.Volume{}, e.recordDeletion(id))
	}
	if err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	return nil
}

// plainErrors are the errors of a removal that show the caller what to do.
var plainErrors = []error{drivebay.ErrUnavailable, drivebay.ErrBusy, drivebay.ErrPending, drivebay.ErrNoSupport, drivebay.ErrPermission, drivebay.ErrTimeout,
	context.DeadlineExceeded, context.Canceled, errPanic}

// retriable makes an error of a removal that is not the caller's fault one that is retried: the
// drive is gone, or answers with errors.
func (e *Engine) retriable(v *drivebay.Volume, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	broken := is(drivebay.ErrNotFound) || is(fs.ErrNotExist) || is(host.ErrUnreadable) || is(host.ErrGone) || is(errLacking) || e.wentAway(v)
	if err == nil || slices.ContainsFunc(plainErrors, is) || is(drivebay.ErrRefused) && !broken {
		return err
	}
	return fmt.Errorf("%w: %w", drivebay.ErrUnavailable, err)
}

// delete removes a volume that the caller holds.
func (e *Engine) delete(ctx context.Context, id string) error {
	r, err := e.record(id)
	if errors.Is(err, drivebay.ErrNotFound) {
		return nil
	}
	if err := e.mayChange(id); err != nil {
		return err
	}
	if r.Volume.Mode == drivebay.ModeFS { // the kernel does not show what has a block device open
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
	if err := e.detectConflict(&r); err != nil {
		return err
	}
	if r, err = e.record(id); err != nil {
		return err
	}
	if err := errors.Join(undecided(&r.Volume), e.supersede(&r), e.endMoveFirst(ctx, id, true)); err != nil {
		return err
	}
	if err := e.wipeCopies(ctx, id); err != nil {
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
	e.stopScrub(ctx, id) // none begins while there is work
	return e.remove(ctx, id)
}

func isHalfMade(v *drivebay.Volume) bool {
	state := v.State()
	return state.Status == drivebay.CSICreating || state.Status == drivebay.CSIFailed && state.Before == drivebay.CSICreating
}

// lostForGood reports whether a volume can neither be wiped nor come back: its drives were
// taken out for good, or are forgotten. While two drives cannot be distinguished, one of them
// may be the drive of the volume under another id.
func lostForGood(s *drivebay.Snapshot, l drivebay.Location) bool {
	conflict := slices.ContainsFunc(s.Drives, func(d drivebay.Drive) bool { return d.IdentityIssue != "" && d.Status == drivebay.StatusOnline })
	return s.Seq > 0 && allTakenOut(s, l) && !conflict
}

// mayRemove refuses a volume that the record or the kernel shows as in use.
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

// remove completes a removal, and forgets the volume.
func (e *Engine) remove(ctx context.Context, id string) error {
	rec, err := e.record(id)
	if err != nil {
		return err
	}
	if rec.Work == nil || rec.Work.Op != drivebay.WorkRemove { // only a recorded removal permits a wipe
		return fmt.Errorf("volume %s: %w: it is not being removed", id, drivebay.ErrRefused)
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
	if len(is.Location.Drives) < drivesPerGroup(is.Location.Kind) { // its other leg may return
		err = e.markForgotten(was)
	} else {
		err = e.unmarkForgotten(was.Key())
	}
	if err := errors.Join(err, e.forget(id)); err != nil {
		return err
	}
	e.note(drivebay.EventVolumeDeleted, &v, fmt.Sprintf("volume %q was removed", v.Name))
	return nil
}

// planRemoval returns the plan that removes a volume, and what it removes: a mirror may lack
// its other drive.
func (e *Engine) planRemoval(rec *drivebay.VolumeRecord) (is drivebay.Volume, plan []step, err error) {
	is, _, _ = e.survivingMirror(rec)
	switch {
	case lostForGood(e.drives.Snapshot(), rec.Volume.Location):
		if is.LUKSUUID != "" {
			err = e.dropHeader(&is)
		}
	case is.Location.VG == "":
		plan = e.removePartition(rec)
	default:
		if is, err = e.asRemoved(rec); err == nil {
			plan, err = e.removeLogical(&is)
		}
	}
	return is, plan, err
}

// removePartition plans to mark the partition as unfinished first: if the record is lost, a
// half-wiped partition is not adopted as sound.
func (e *Engine) removePartition(rec *drivebay.VolumeRecord) []step {
	v := &rec.Volume
	n := ofVolume(rec)
	there := e.inTable(n, func(*gpt.Table) (bool, error) { return true, nil })
	shown := e.addKernelPartition(n) // it may never have been added
	plan := []step{e.retype("mark", n, typeMaking), when(e.unlessMade(v.ID, "wipe", there), shown)}
	plan = append(append(plan, e.erased(v, there)...), e.wiped(v, there))
	return append(plan, e.dropEntry(n)...)
}

// wiped returns the step that wipes a volume as its class requires, while the volume still
// exists.
func (e *Engine) wiped(v *drivebay.Volume, there func(context.Context) (bool, error)) step {
	return e.made(v.ID, "wipe", func(ctx context.Context) error {
		if is, err := there(ctx); err != nil || !is {
			return err
		}
		v := backingPiece(v)
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

// wentAway reports whether the kernel lacks a drive of a volume: the kernel may be ahead of the
// snapshot.
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
