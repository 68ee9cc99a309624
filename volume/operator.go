package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
)

// RetryVolume retries failed work of the engine now: creation, growth and removal. It continues where
// the work stopped. Only the caller of a mount can repeat it, because it needs the paths and options.
func (e *Engine) RetryVolume(ctx context.Context, id string) error {
	return e.onVolume(ctx, "retry", id, func(ctx context.Context, v drivebay.Volume) error {
		if v.CSIStatus != drivebay.CSIFailed {
			if v.Usage == drivebay.VolumeUsageFailed {
				return e.readAgain(id)
			}
			if lost, err := e.mountLost(ctx, v); lost || err != nil {
				return err
			}
			return fmt.Errorf("%w: no failure to retry, its status is %v", drivebay.ErrInvalid, v.CSIStatus)
		}
		if err := undecided(&v); err != nil {
			return err
		}
		switch before := v.State().Before; before {
		case drivebay.CSICreating:
			return e.retry(ctx, id, drivebay.WorkCreate, drivebay.CSICreate, e.makeKeyless)
		case drivebay.CSIResizing:
			return e.retry(ctx, id, drivebay.WorkExpand, drivebay.CSIResize, e.enlarge)
		case drivebay.CSIRemoving:
			return e.delete(ctx, id)
		case drivebay.CSIResized:
			return e.growAgain(ctx, v)
		default:
			return fmt.Errorf("%w: the mount failed; the kubelet retries it while a pod needs the volume", drivebay.ErrInvalid)
		}
	})
}

// retry continues recorded work.
func (e *Engine) retry(ctx context.Context, id string, op drivebay.WorkOp, event drivebay.CSIEvent, again func(context.Context, string) error) error {
	_, err := e.change(id, func(r *drivebay.VolumeRecord) (err error) {
		if r.Work == nil || r.Work.Op != op || r.Volume.Mode == drivebay.ModeUnknown {
			return fmt.Errorf("%w: the request is not known any more; create the volume again with the same name", drivebay.ErrInvalid)
		}
		r.Volume, err = r.Volume.Moved(event)
		return err
	})
	if err != nil {
		return err
	}
	return again(ctx, id)
}

// growAgain grows the filesystem where it is staged.
func (e *Engine) growAgain(ctx context.Context, v drivebay.Volume) error {
	s, err := e.mountState(ctx, v)
	if err != nil {
		return err
	}
	staged := s.staging()
	if staged == nil {
		return fmt.Errorf("%w: its filesystem grows when it is mounted the next time", drivebay.ErrInvalid)
	}
	at, err := e.checkPath(staged.Path)
	if err == nil {
		_, err = s.expand(ctx, at, drivebay.SizeRange{}, nil)
	}
	return err
}

// ClearVolume clears a failure if the volume is whole. It gives up a growth; a new request for it
// starts again. It also acknowledges what was lost on another drive, and drops mounts that are gone
// from the record.
func (e *Engine) ClearVolume(ctx context.Context, id string) error {
	return e.onVolume(ctx, "clear", id, func(ctx context.Context, v drivebay.Volume) error {
		was := len(v.Publications)
		if err := e.dropLost(ctx, v); err != nil {
			return err
		}
		f, forgotten := e.wasForgotten(id, v.Location)
		if err := e.unmarkForgotten(f.Key()); err != nil {
			return err
		}
		r, err := e.record(id)
		if err == nil && r.Volume.Undecided() != "" { // the operator chose this one
			err = e.markOthersForgotten(&r, func(onDrive) bool { return true })
		}
		if err != nil || (forgotten || len(r.Volume.Publications) < was) && v.Lost == nil && r.Volume.CSIStatus != drivebay.CSIFailed {
			return err
		}
		if r.Work != nil && r.Work.Op == drivebay.WorkExpand && v.Location.VG == "" {
			// The table may have the growth and the kernel not: without the work nothing explains
			// that.
			if err := e.run(ctx, id, []step{e.addKernelPartition(ofVolume(&r))}); err != nil {
				e.log.Warn("the kernel is not told of a growth that was given up", "op", "clear", "volume", id, "err", err)
			}
		}
		_, err = e.change(id, func(r *drivebay.VolumeRecord) (err error) {
			if r.Volume.Lost = nil; v.Lost != nil && v.CSIStatus != drivebay.CSIFailed {
				return nil
			}
			if r.Volume, err = r.Volume.Moved(drivebay.CSIClear); err == nil && moveOf(r) == nil {
				r.Work = nil
			}
			return err
		})
		if err == nil && v.Lost != nil {
			e.note(drivebay.EventAcknowledge, &v, "an operator accepted that it has lost "+v.Lost.String())
		}
		return err
	})
}

// ForgetVolume drops the record of a volume whose drives are gone or do not show it any more, and
// those of its snapshots: nothing else can be done to it. Nothing is wiped; the volume is found again
// if its drive comes back. The copy of the header of an encrypted volume stays: the drive may come
// back, or be read by a recovery service.
func (e *Engine) ForgetVolume(ctx context.Context, id string) error {
	return e.onVolume(ctx, "forget", id, func(ctx context.Context, v drivebay.Volume) error {
		if err := e.lost(v.Location); err != nil && !e.unseen(ctx, id, v.Location) {
			return err
		}
		if err := e.dropLost(ctx, v); err != nil {
			return err
		}
		r, err := e.record(id)
		if err != nil {
			return err
		}
		s, err := e.mountState(ctx, r.Volume)
		if err != nil {
			return err
		}
		if len(s.now) > 0 {
			return fmt.Errorf("%w: %s still has it", drivebay.ErrBusy, s.now[0].Path)
		}
		if v.LUKSUUID != "" { // its decrypted device stands on nothing
			if err := e.lock(ctx, &v); err != nil {
				return err
			}
		}
		if err := e.forgetSnapshotsOf(id); err != nil {
			return err
		}
		for _, l := range locationsOf(&r) { // an older copy must not be adopted as this volume either
			if err := e.markForgotten(drivebay.ForgottenVolume{ID: id, Instance: instanceOf(l)}); err != nil {
				return err
			}
		}
		if err := e.forget(id); err != nil {
			return err
		}
		e.note(drivebay.EventVolumeDeleted, &v, fmt.Sprintf("volume %q was forgotten, not wiped: it was not to be found on its drives, or they are gone", v.Name))
		return nil
	})
}

// unseen reports whether all drives of a volume or snapshot that are here were read and show nothing
// of it, because a partition table was erased or a label is damaged. A volume that is half made can
// be deleted instead, and a drive that is not identified may still show it.
func (e *Engine) unseen(ctx context.Context, id string, l drivebay.Location) bool {
	if r, err := e.record(id); err == nil && !mustBeThere(r.Work) {
		return false
	}
	if e.untrusted(l.Drives) { // the kernel may hide what is there
		return false
	}
	s, pvs := e.placementView(), 0
	for _, drive := range l.Drives {
		d, known := driveOf(s.drives, drive)
		parts, listed := s.index.parts[drive]
		read := known && d.Status == drivebay.StatusOnline && listed && d.Content.Kind != drivebay.ContentUnknown && d.IdentityIssue == ""
		if known && d.Status != drivebay.StatusOffline && !read {
			return false
		}
		if _, there := instanced(parts, partitionName(id), l.Partition); there && l.VG == "" {
			return false
		}
		if p, there := pvOn(parts); there && known && d.Status == drivebay.StatusOnline { // LVM also leaves out what cannot be read now
			pvs++
			if c, err := e.contentOfRange(ctx, d, p.start, p.size); err != nil || c.Kind == drivebay.ContentUnknown || c.Reason != "" {
				return false
			}
		}
	}
	if x := s.index.lvm; l.VG != "" && (x != nil || pvs > 0) { // otherwise LVM has nothing to show
		return x != nil && lvOf(x.report, l) == nil
	}
	return true
}

// lost refuses while a drive of a location is here.
func (e *Engine) lost(l drivebay.Location) error {
	drives := e.drives.Snapshot()
	for _, id := range l.Drives {
		switch d, known := driveOf(drives, id); {
		case known && d.Status == drivebay.StatusOnline:
			return fmt.Errorf("%w: drive %s (%s) is here: delete it instead", drivebay.ErrRefused, d.ID, d.Name)
		case known && d.Status != drivebay.StatusOffline:
			return fmt.Errorf("%w: drive %s is %v and may be here%s", drivebay.ErrRefused, d.ID, d.Status, suffix(d.IdentityIssue))
		case !known && !drives.Complete:
			return fmt.Errorf("%w: drive %s: not all drives could be listed", drivebay.ErrBusy, id)
		}
	}
	return nil
}

// ForgetSnapshot drops the record of a snapshot whose drive is gone or does not show it.
func (e *Engine) ForgetSnapshot(ctx context.Context, id string) error {
	err := e.work(ctx, id, func(ctx context.Context) error {
		r, ok := e.snapshot(id)
		if !ok {
			return drivebay.ErrNotFound
		}
		if err := e.lost(r.Snapshot.Location); err != nil && !e.unseen(ctx, id, r.Snapshot.Location) {
			return err
		}
		if err := e.forgetLostSnapshot(&r.Snapshot); err != nil {
			return err
		}
		e.note(drivebay.EventSnapshotDeleted, &drivebay.Volume{ID: r.Snapshot.Source, Location: r.Snapshot.Location}, fmt.Sprintf("snapshot %q (%s) was forgotten: it was not to be found on its drive, or that is gone", r.Snapshot.Name, id))
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget snapshot %s: %w", id, err)
	}
	return nil
}

// forgetLostSnapshot drops the record of a snapshot that may return on its drive.
func (e *Engine) forgetLostSnapshot(s *drivebay.VolumeSnapshot) error {
	if err := e.markForgotten(drivebay.ForgottenVolume{ID: s.ID, Instance: instanceOf(s.Location)}); err != nil {
		return err
	}
	return e.forgetSnapshot(s.ID)
}

func (e *Engine) forgetSnapshotsOf(volume string) error {
	var errs []error
	for _, snap := range e.snapshotRecords() {
		if snap.Snapshot.Source != volume {
			continue
		}
		end, err := e.begin(snap.Snapshot.ID)
		if err == nil {
			err = e.forgetLostSnapshot(&snap.Snapshot)
			end()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (e *Engine) snapshotRecords() []*drivebay.SnapshotRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.snapshots))
}
