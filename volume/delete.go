package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// DeleteVolume wipes and removes a volume; one that is not there is removed.
func (e *Engine) DeleteVolume(ctx context.Context, id string) error {
	if err := e.takeInUnknown(ctx, id); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	if _, err := e.record(id); errors.Is(err, drivebay.ErrNotFound) {
		return cmp.Or(e.unadopted(id), e.sole(id))
	}
	err := e.work(ctx, id, func(ctx context.Context) error { return e.delete(ctx, id) })
	if err == nil && len(e.othersOf(id)) > 0 { // the record was of another one, from before
		err = e.sole(id)
	}
	if err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	return nil
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

// sure says why a volume in no record may be on a drive all the same: some have not
// been listed yet since we began.
func (e *Engine) sure() error {
	s := e.drives.Snapshot()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range s.Drives {
		d := &s.Drives[i]
		if _, listed := e.index.parts[d.ID]; !listed && d.Status == drivebay.StatusOnline {
			return fmt.Errorf("%w: drive %s (%s) has not been listed yet", drivebay.ErrBusy, d.ID, d.Name)
		}
	}
	if s.Seq == 0 || !e.adopted {
		return fmt.Errorf("%w: the drives have not been listed yet", drivebay.ErrBusy)
	}
	return nil
}

// mayRemove: nobody may have it mounted, whatever the record says.
func (e *Engine) mayRemove(ctx context.Context, v *drivebay.Volume) error {
	if v.Rest() != drivebay.CSICreated {
		return fmt.Errorf("%w: it is staged or published", drivebay.ErrBusy)
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
	var plan []step
	if rec.Volume.Location.VG == "" {
		plan = e.removePartition(&rec)
	} else if plan, err = e.removeLogical(ctx, &rec); err != nil {
		return e.failed(ctx, id, err)
	}
	if err := e.run(ctx, id, plan); err != nil {
		return e.failed(ctx, id, err)
	}
	v := rec.Volume
	if v.CSIStatus == drivebay.CSIRemoving {
		v, _ = v.Moved(drivebay.CSIDone)
	}
	if err := errors.Join(e.unbury(drivebay.ForgottenVolume{ID: id, Instance: instanceOf(v.Location)}.Key()), e.forget(id)); err != nil {
		return err
	}
	e.note(drivebay.EventVolumeDeleted, &v, fmt.Sprintf("volume %q was removed", v.Name))
	return nil
}

// removePartition marks the partition as nobody's first: one that is found half
// wiped, its record lost, is not taken for sound.
func (e *Engine) removePartition(rec *drivebay.VolumeRecord) []step {
	v := &rec.Volume
	n := ofVolume(rec)
	there := e.inTable(n, func(*gpt.Table) (bool, error) { return true, nil })
	shown := e.addEntry(n, new(bool))[1] // it may never have come to that
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
		do := map[drivebay.Wipe]func(context.Context, host.Disk, uint64, uint64) error{drivebay.WipeDiscard: discardRange, drivebay.WipeZero: zeroRange}[wipeOf(v)]
		if do != nil {
			d, err := e.activate(ctx, v)
			if err == nil {
				err = e.overwrite(ctx, v, "wipe", 0, d.size, do)
			}
			if err != nil {
				return err
			}
		}
		return e.onDevice(ctx, v, true, clearMarks)
	})
}
