package snapshots

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// PlaceSnapshot records a snapshot that is to be made.
func (e *Snapshotter) PlaceSnapshot(id, name, volume string) error {
	e.Provision.Placing.Lock()
	defer e.Provision.Placing.Unlock()
	r, err := e.Ledger.Record(volume)
	if err != nil {
		return err
	}
	v := &r.Volume
	if v.Location.Kind != drivebay.LocationThin {
		return fmt.Errorf("%w: only thin volumes have snapshots, this one is %v; use a StorageClass with drivebay.io/backing: thin", drivebay.ErrNoSupport, v.Location.Kind)
	}
	if err := errors.Join(e.Provision.Whole(v), groups.RefuseMoving(v.Location)); err != nil {
		return err
	}
	v.Size = e.Provision.SizeNow(v.Location, v.Size, place.OverheadOf(v))
	need := 2*v.Size + place.OverheadOf(v) // a snapshot may come to differ in every block
	switch have, err := e.Inventory.PlacementView().GrowsTo(v); {
	case err != nil:
		return fmt.Errorf("free space of the pool: %w", e.Provision.Reached(v, err))
	case have < need:
		return fmt.Errorf("pool of volume group %s: %w: it has %s left, a snapshot needs %s", v.Location.VG, drivebay.ErrNoSpace, partitions.SizeText(have-min(have, v.Size)), partitions.SizeText(need-v.Size))
	}
	s := drivebay.VolumeSnapshot{ID: id, Name: name, Source: v.ID, Node: e.Opt.Node, Size: v.Size, Created: e.Machine.Now(), Location: v.Location,
		FSType: v.FSType, Block: !v.HasFilesystem(), LUKSUUID: v.LUKSUUID}
	s.Location.Instance = e.Instances.NewInstance()
	if s.Location.LV, err = lvm.VolumeName(id); err != nil {
		return err
	}
	return e.PutSnapshot(drivebay.SnapshotRecord{Snapshot: s, Work: &drivebay.Work{Op: drivebay.WorkCreate, Since: s.Created, Size: s.Size}})
}

// PutSnapshot writes a record to the store, then makes it count.
func (e *Snapshotter) PutSnapshot(r drivebay.SnapshotRecord) error {
	if err := e.Store.PutVolumeSnapshot(r); err != nil {
		return fmt.Errorf("snapshot %s: remember: %w", r.Snapshot.ID, ledger.NotStored(err))
	}
	e.Ledger.Mu.Lock()
	e.Ledger.Snapshots[r.Snapshot.ID] = &r
	e.Ledger.Mu.Unlock()
	e.Ledger.Publish()
	return nil
}

// ForgetSnapshot deletes the record of a snapshot, in the store first.
func (e *Snapshotter) ForgetSnapshot(id string) error {
	if err := e.Store.DeleteVolumeSnapshot(id); err != nil {
		return fmt.Errorf("snapshot %s: forget: %w", id, ledger.NotStored(err))
	}
	e.Ledger.Mu.Lock()
	delete(e.Ledger.Snapshots, id)
	delete(e.Ledger.RemovedFromGroup, id)
	e.Ledger.Mu.Unlock()
	e.Ledger.Publish()
	return nil
}

// MakeSnapshot completes a snapshot that was begun. If it fails and LVM shows no such
// snapshot, the record is dropped.
func (e *Snapshotter) MakeSnapshot(ctx context.Context, id string) error {
	r, ok := e.Ledger.Snapshot(id)
	if !ok {
		return fmt.Errorf("snapshot %s: %w", id, drivebay.ErrNotFound)
	}
	s := &r.Snapshot
	end, err := e.Ledger.BeginAfter(ctx, s.Source) // a removal would wipe it meanwhile
	if err != nil {
		return err
	}
	defer end()
	source, err := e.Ledger.Record(s.Source)
	switch {
	case errors.Is(err, drivebay.ErrNotFound):
		return errors.Join(err, e.ForgetSnapshot(id))
	case err != nil:
		return err
	}
	l, wrote := s.Location, new(atomic.Bool)
	snapshot := e.Write.LVMStep("snapshot", l, wrote, func(r *lvm.Report) ([]lvm.Step, error) {
		size := source.Volume.Size + place.OverheadOf(&source.Volume)
		if lv := partitions.LVOf(r, source.Volume.Location); lv != nil {
			size = max(size, lv.Size)
		}
		t, err := tagsOf(s, &source.Volume)
		if err != nil {
			return nil, err
		}
		plan, err := lvm.Snapshot(lvm.Volume{Group: l.VG, Name: l.LV, Tags: t}, source.Volume.Location.LV)
		return plan, errors.Join(err, place.FitsPool(r, l, size))
	})
	create := snapshot.Do
	snapshot.Do = func(ctx context.Context) error {
		if err := e.Provision.Whole(&source.Volume); err != nil {
			return err
		}
		size := max(s.Size, source.Volume.Size) // the source can have grown since

		if now := e.Machine.Now(); now.Sub(s.Created) > time.Second || s.Size < size { // the call waited, or goes on after a restart: it has what the volume has now
			s.Created, s.Size = now, size
			if err := e.PutSnapshot(r); err != nil {
				return err
			}
		}
		return create(ctx)
	}
	if err = e.Steps.Run(ctx, id, []steps.Step{snapshot}); err != nil {
		if ctx.Err() != nil || errors.Is(err, ledger.ErrStopped) {
			return err
		}
		err = e.Provision.Reached(&source.Volume, err)
		if report, reportErr := e.Write.MaybeReport(ctx, l); reportErr == nil && partitions.LVOf(report, l) == nil && e.Inventory.AllSeen(report, id, l) == nil {
			return errors.Join(err, e.ForgetSnapshot(id))
		}
		return err
	}
	r.Work = nil
	if err := e.PutSnapshot(r); err != nil {
		return err
	}
	e.Ledger.Note(drivebay.EventSnapshotCreated, &source.Volume, fmt.Sprintf("snapshot %q (%s) was made", s.Name, id))
	return nil
}

// tagsOf returns what the logical volume of a snapshot says about it.
func tagsOf(s *drivebay.VolumeSnapshot, source *drivebay.Volume) ([]string, error) {
	return groups.Tags(map[string]string{groups.KeyWhat: "snapshot", groups.KeyID: s.ID, groups.KeyName: s.Name, groups.KeyMode: source.Mode.String(), groups.KeyFS: s.FSType,
		groups.KeyUUID: source.FSUUID, groups.KeyLUKS: s.LUKSUUID, groups.KeySource: s.Source, partitions.KeyCreated: s.Created.UTC().Format(time.RFC3339), partitions.KeyInst: instances.InstanceTag(s.Location)})
}

// RemoveSnapshot deletes a snapshot and its record.
func (e *Snapshotter) RemoveSnapshot(ctx context.Context, id string) error {
	r, ok := e.Ledger.Snapshot(id)
	if !ok {
		return nil
	}
	l := r.Snapshot.Location
	there := func(ctx context.Context) (bool, error) {
		report, err := e.Write.MaybeReport(ctx, l)
		if err != nil || partitions.LVOf(report, l) != nil {
			return err == nil, err
		}
		return false, e.Inventory.Absent(report, id, l, r.Work)
	}
	plan := []steps.Step{write.When(there, steps.Step{Name: "snapshot",
		Done: func(ctx context.Context) (bool, error) { is, err := there(ctx); return !is, err },
		Do:   func(ctx context.Context) error { return e.Write.LVMRun(ctx, l, lvm.Remove(l.VG, l.LV)) }})}
	if mirror.LostForGood(e.Drives.Snapshot(), l) { // nothing of it can be removed, and it does not come back
		if err := e.Instances.MarkForgotten(drivebay.ForgottenVolume{ID: id, Instance: instances.InstanceOf(l), Replaced: true}); err != nil {
			return err
		}
		return e.ForgetSnapshot(id)
	}
	if err := e.Steps.Run(ctx, id, plan); err != nil {
		return err
	}
	r.Work = &drivebay.Work{Op: drivebay.WorkRemove, Since: e.Machine.Now(), Made: []string{partitions.WipeStep}} // from now on it may be absent
	if err := errors.Join(e.PutSnapshot(r), e.Steps.Run(ctx, id, []steps.Step{e.Write.RemoveUnusedGroup(l, id)})); err != nil {
		return err
	}
	if err := e.Instances.UnmarkForgotten(drivebay.ForgottenVolume{ID: id, Instance: instances.InstanceOf(l)}.Key()); err != nil {
		return err
	}
	if err := e.ForgetSnapshot(id); err != nil {
		return err
	}
	e.Ledger.Note(drivebay.EventSnapshotDeleted, &drivebay.Volume{ID: r.Snapshot.Source, Location: l}, fmt.Sprintf("snapshot %q (%s) was removed", r.Snapshot.Name, id))
	return nil
}
