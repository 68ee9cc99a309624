package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/adopt"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// MountLost does the safe repairs for a volume that has lost mounts.
func (e *Repairer) MountLost(ctx context.Context, v drivebay.Volume) (lost bool, err error) {
	s, err := e.Mounts.MountState(ctx, v)
	if err != nil || len(s.Lost) == 0 {
		return false, err
	}
	r := drivebay.HealRequest{Volume: v.ID, Safe: true}
	h := &healing{e: e, id: v.ID, r: r, report: &drivebay.HealReport{}, over: ctx.Err}
	if err := h.run(ctx); err != nil && !errors.Is(err, errUnhealed) {
		return true, err
	}
	for _, step := range h.report.Steps {
		if step.Failed != "" {
			return true, fmt.Errorf("%s: %s: %w: %s", step.Repair, step.Why, drivebay.ErrRefused, step.Failed)
		}
	}
	return true, nil
}

// Retry continues recorded work.
func (e *Repairer) Retry(ctx context.Context, id string, op drivebay.WorkOp, event drivebay.CSIEvent, again func(context.Context, string) error) error {
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
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

// GrowAgain grows the filesystem where it is staged.
func (e *Repairer) GrowAgain(ctx context.Context, v drivebay.Volume) error {
	s, err := e.Mounts.MountState(ctx, v)
	if err != nil {
		return err
	}
	staged := s.Staging()
	if staged == nil {
		return fmt.Errorf("%w: its filesystem grows when it is mounted the next time", drivebay.ErrInvalid)
	}
	at, err := e.Mounts.CheckPath(staged.Path)
	if err == nil {
		_, err = s.Expand(ctx, at, drivebay.SizeRange{}, nil)
	}
	return err
}

// ClearVolume clears a failure if the volume is whole. It gives up a growth; a new request for it
// starts again. It also acknowledges what was lost on another drive, and drops mounts that are gone
// from the record.
func (e *Repairer) ClearVolume(ctx context.Context, id string) error {
	return e.Ledger.OnVolume(ctx, "clear", id, func(ctx context.Context, v drivebay.Volume) error {
		was := len(v.Publications)
		if err := e.Mounts.DropLost(ctx, v); err != nil {
			return err
		}
		f, forgotten := e.Instances.WasForgotten(id, v.Location)
		if err := e.Instances.UnmarkForgotten(f.Key()); err != nil {
			return err
		}
		r, err := e.Ledger.Record(id)
		if err == nil && r.Volume.Undecided() != "" { // the operator chose this one
			err = errors.Join(e.Instances.MarkOthersForgotten(&r, func(instances.OnDrive) bool { return true }), e.Instances.ChooseSnapshots(id))
		}
		if err != nil || (forgotten || len(r.Volume.Publications) < was) && v.Lost == nil && r.Volume.CSIStatus != drivebay.CSIFailed {
			return err
		}
		if r.Work != nil && r.Work.Op == drivebay.WorkExpand && !v.Location.OnLVM() {
			// The table may have the growth and the kernel not: without the work nothing explains
			// that.
			if err := e.Steps.Run(ctx, id, []steps.Step{e.Write.AddKernelPartition(write.OfVolume(&r))}); err != nil {
				e.Log.Warn("the kernel is not told of a growth that was given up", "op", "clear", "volume", id, "err", err)
			}
		}
		_, err = e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
			if r.Volume.Lost = nil; v.Lost != nil && v.CSIStatus != drivebay.CSIFailed {
				return nil
			}
			if r.Volume, err = r.Volume.Moved(drivebay.CSIClear); err == nil && partitions.MoveOf(r) == nil {
				r.Work = nil
			}
			if !r.Volume.Replicated() { // its growth was given up
				r.Volume.Replication = nil
			}
			return err
		})
		if err == nil && v.Lost != nil {
			e.Ledger.Note(drivebay.EventAcknowledge, &v, "an operator accepted that it has lost "+v.Lost.String())
		}
		return err
	})
}

// ForgetVolume drops the record of a volume whose drives are gone or do not show it any more, and
// those of its snapshots: nothing else can be done to it. Nothing is wiped; the volume is found again
// if its drive comes back. The copy of the header of an encrypted volume stays: the drive may come
// back, or be read by a recovery service.
func (e *Repairer) ForgetVolume(ctx context.Context, id string) error {
	return e.Ledger.OnVolume(ctx, "forget", id, func(ctx context.Context, v drivebay.Volume) error {
		if err := e.lost(v.Location); err != nil && !e.unseen(ctx, id, v.Location) {
			return err
		}
		if err := e.Mounts.DropLost(ctx, v); err != nil {
			return err
		}
		r, err := e.Ledger.Record(id)
		if err != nil {
			return err
		}
		s, err := e.Mounts.MountState(ctx, r.Volume)
		if err != nil {
			return err
		}
		if len(s.Now) > 0 {
			return fmt.Errorf("%w: %s still has it", drivebay.ErrBusy, s.Now[0].Path)
		}
		if err := e.Device.Stack(&v).Above().Close(ctx); err != nil { // they stand on nothing
			return err
		}
		if err := e.Replicas.Drop(ctx, v); err != nil { // its peer would find it
			return err
		}
		if err := e.forgetSnapshotsOf(id); err != nil {
			return err
		}
		for _, l := range instances.LocationsOf(&r) { // an older copy must not be adopted as this volume either
			if err := e.Instances.MarkForgotten(drivebay.ForgottenVolume{ID: id, Instance: instances.InstanceOf(l)}); err != nil {
				return err
			}
		}
		if err := e.Ledger.Forget(id); err != nil {
			return err
		}
		e.Ledger.Note(drivebay.EventVolumeDeleted, &v, fmt.Sprintf("volume %q was forgotten, not wiped: it was not to be found on its drives, or they are gone", v.Name))
		return nil
	})
}

// unseen reports whether all drives of a volume or snapshot that are here were read and show nothing
// of it, because a partition table was erased or a label is damaged. A volume that is half made can
// be deleted instead, and a drive that is not identified may still show it.
func (e *Repairer) unseen(ctx context.Context, id string, l drivebay.Location) bool {
	r, err := e.Ledger.Record(id)
	switch {
	case err == nil && !partitions.MustBeThere(r.Work), e.Inventory.Untrusted(l.Drives): // the kernel may hide what is there
		return false
	case err == nil && e.Groups.Smaller(&r.Volume) != "":
		return true
	}
	s, pvs := e.Inventory.PlacementView(), 0
	for _, drive := range l.Drives {
		d, known := steps.DriveOf(s.Drives, drive)
		parts, listed := s.Index.Parts[drive]
		read := known && d.Status == drivebay.StatusOnline && listed && d.Content.Kind != drivebay.ContentUnknown && d.IdentityIssue == ""
		if known && d.Status != drivebay.StatusOffline && !read {
			return false
		}
		if _, there := partitions.Instanced(parts, ledger.PartitionName(id), l.Partition); there && !l.OnLVM() {
			return false
		}
		if p, there := partitions.PVOn(parts); there && known && d.Status == drivebay.StatusOnline { // LVM also leaves out what cannot be read now
			pvs++
			if c, err := e.Inventory.ContentOfRange(ctx, d, p.Start, p.Size); err != nil || c.Kind == drivebay.ContentUnknown || c.Reason != "" {
				return false
			}
		}
	}
	if x := s.Index.LVM; l.OnLVM() && (x != nil || pvs > 0) { // otherwise LVM has nothing to show
		return x != nil && partitions.LVOf(x.Report, l) == nil
	}
	return true
}

// lost refuses while a drive of a location is here.
func (e *Repairer) lost(l drivebay.Location) error {
	drives := e.Drives.Snapshot()
	for _, id := range l.Drives {
		switch d, known := steps.DriveOf(drives, id); {
		case known && d.Status == drivebay.StatusOnline:
			return fmt.Errorf("%w: drive %s (%s) is here: delete it instead", drivebay.ErrRefused, d.ID, d.Name)
		case known && d.Status != drivebay.StatusOffline:
			return fmt.Errorf("%w: drive %s is %v and may be here%s", drivebay.ErrRefused, d.ID, d.Status, adopt.Suffix(d.IdentityIssue))
		case !known && !drives.Complete:
			return fmt.Errorf("%w: drive %s: not all drives could be listed", drivebay.ErrBusy, id)
		}
	}
	return nil
}

// ForgetSnapshot drops the record of a snapshot whose drive is gone or does not show it.
func (e *Repairer) ForgetSnapshot(ctx context.Context, id string) error {
	err := e.Ledger.Work(ctx, id, func(ctx context.Context) error {
		r, ok := e.Ledger.Snapshot(id)
		if !ok {
			return drivebay.ErrNotFound
		}
		if err := e.lost(r.Snapshot.Location); err != nil && !e.unseen(ctx, id, r.Snapshot.Location) {
			return err
		}
		if err := e.forgetLostSnapshot(&r.Snapshot); err != nil {
			return err
		}
		e.Ledger.Note(drivebay.EventSnapshotDeleted, &drivebay.Volume{ID: r.Snapshot.Source, Location: r.Snapshot.Location}, fmt.Sprintf("snapshot %q (%s) was forgotten: it was not to be found on its drive, or that is gone", r.Snapshot.Name, id))
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget snapshot %s: %w", id, err)
	}
	return nil
}

// forgetLostSnapshot drops the record of a snapshot that may return on its drive.
func (e *Repairer) forgetLostSnapshot(s *drivebay.VolumeSnapshot) error {
	if err := e.Instances.MarkForgotten(drivebay.ForgottenVolume{ID: s.ID, Instance: instances.InstanceOf(s.Location)}); err != nil {
		return err
	}
	return e.Snapshots.ForgetSnapshot(s.ID)
}

func (e *Repairer) forgetSnapshotsOf(volume string) error {
	var errs []error
	for _, snap := range e.Partitions.SnapshotRecords() {
		if snap.Snapshot.Source != volume {
			continue
		}
		end, err := e.Ledger.Begin(snap.Snapshot.ID)
		if err == nil {
			err = e.forgetLostSnapshot(&snap.Snapshot)
			end()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
