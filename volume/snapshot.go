package volume

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// CreateSnapshot makes a snapshot of a volume, or returns the snapshot of that name.
func (e *Engine) CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error) {
	if name == "" || len(name) > 1<<10 {
		return drivebay.VolumeSnapshot{}, fmt.Errorf("snapshot: %w: the name must have 1 to 1024 bytes", drivebay.ErrInvalid)
	}
	id := snapshotID(name)
	err := e.work(ctx, id, func(ctx context.Context) error {
		if have, ok := e.snapshot(id); ok {
			_, forgotten := e.wasForgotten(id, have.Snapshot.Location)
			switch {
			case forgotten:
				return fmt.Errorf("%w: a snapshot of that name was forgotten and is back on its drive: delete it first (%s)", drivebay.ErrExists, id)
			case have.Snapshot.Source != volume:
				return fmt.Errorf("%w: the name is used by a snapshot of volume %s", drivebay.ErrExists, have.Snapshot.Source)
			case have.Work == nil:
				return e.verifyThere("snapshot", &drivebay.Volume{ID: id, Location: have.Snapshot.Location}, "drivebay volume snapshot-forget "+id)
			case have.Work.Op == drivebay.WorkRemove:
				return fmt.Errorf("%w: it is being removed", drivebay.ErrPending)
			}
		} else if err := e.Missing(id); !errors.Is(err, drivebay.ErrNotFound) {
			return err
		} else if err := e.placeSnapshot(id, name, volume); err != nil {
			return err
		}
		return e.makeSnapshot(ctx, id)
	})
	if err != nil {
		return drivebay.VolumeSnapshot{}, fmt.Errorf("snapshot %q of volume %s: %w", name, volume, err)
	}
	have, ok := e.snapshot(id)
	if !ok {
		return drivebay.VolumeSnapshot{}, fmt.Errorf("snapshot %s: %w", id, drivebay.ErrNotFound)
	}
	return have.Snapshot, nil
}

func (e *Engine) snapshot(id string) (drivebay.SnapshotRecord, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.snapshots[id]; r != nil {
		return *r, true
	}
	return drivebay.SnapshotRecord{}, false
}

// placeSnapshot records a snapshot that is to be made.
func (e *Engine) placeSnapshot(id, name, volume string) error {
	e.placing.Lock()
	defer e.placing.Unlock()
	r, err := e.record(volume)
	if err != nil {
		return err
	}
	v := &r.Volume
	if v.Location.Kind != drivebay.LocationThin {
		return fmt.Errorf("%w: only thin volumes have snapshots, this one is %v; use a StorageClass with drivebay.io/backing: thin", drivebay.ErrNoSupport, v.Location.Kind)
	}
	if err := errors.Join(whole(v), refuseMoving(v.Location)); err != nil {
		return err
	}
	need := 2*v.Size + overhead(v.LUKSUUID) // a snapshot may come to differ in every block
	switch have, err := e.placementView().growsTo(v); {
	case err != nil:
		return fmt.Errorf("free space of the pool: %w: %w", drivebay.ErrNoSpace, err)
	case have < need:
		return fmt.Errorf("pool of volume group %s: %w: it has %s left, a snapshot needs %s", v.Location.VG, drivebay.ErrNoSpace, sizeText(have-min(have, v.Size)), sizeText(need-v.Size))
	}
	s := drivebay.VolumeSnapshot{ID: id, Name: name, Source: v.ID, Node: e.opt.Node, Size: v.Size, Created: e.machine.Now(), Location: v.Location,
		FSType: v.FSType, Block: v.Mode != drivebay.ModeFS, LUKSUUID: v.LUKSUUID}
	s.Location.Instance = e.newInstance()
	if s.Location.LV, err = lvm.VolumeName(id); err != nil {
		return err
	}
	return e.putSnapshot(drivebay.SnapshotRecord{Snapshot: s, Work: &drivebay.Work{Op: drivebay.WorkCreate, Since: s.Created, Size: s.Size}})
}

// whole refuses a volume that is half made or half removed.
func whole(v *drivebay.Volume) error {
	doing := v.CSIStatus
	if doing == drivebay.CSIFailed {
		doing = v.State().Before
	}
	switch doing {
	case drivebay.CSICreating, drivebay.CSIRemoving, drivebay.CSIRemoved, drivebay.CSIUnknown:
		return fmt.Errorf("volume %s: %w: it is %v", v.ID, drivebay.ErrPending, doing)
	}
	return nil
}

func (e *Engine) putSnapshot(r drivebay.SnapshotRecord) error {
	if err := e.store.PutVolumeSnapshot(r); err != nil {
		return fmt.Errorf("snapshot %s: remember: %w", r.Snapshot.ID, notStored(err))
	}
	e.mu.Lock()
	e.snapshots[r.Snapshot.ID] = &r
	e.mu.Unlock()
	e.publish()
	return nil
}

func (e *Engine) forgetSnapshot(id string) error {
	if err := e.store.DeleteVolumeSnapshot(id); err != nil {
		return fmt.Errorf("snapshot %s: forget: %w", id, notStored(err))
	}
	e.mu.Lock()
	delete(e.snapshots, id)
	delete(e.removedFromGroup, id)
	e.mu.Unlock()
	e.publish()
	return nil
}

// makeSnapshot completes a snapshot that was begun. If it fails and LVM shows no such
// snapshot, the record is dropped.
func (e *Engine) makeSnapshot(ctx context.Context, id string) error {
	r, ok := e.snapshot(id)
	if !ok {
		return fmt.Errorf("snapshot %s: %w", id, drivebay.ErrNotFound)
	}
	s := &r.Snapshot
	end, err := e.beginAfter(ctx, s.Source) // a removal would wipe it meanwhile
	if err != nil {
		return err
	}
	defer end()
	source, err := e.record(s.Source)
	switch {
	case errors.Is(err, drivebay.ErrNotFound):
		return errors.Join(err, e.forgetSnapshot(id))
	case err != nil:
		return err
	}
	t, err := tags(map[string]string{keyWhat: "snapshot", keyID: id, keyName: s.Name, keyMode: source.Volume.Mode.String(), keyFS: s.FSType,
		keyUUID: source.Volume.FSUUID, keyLUKS: s.LUKSUUID, keySource: s.Source, keyCreated: s.Created.UTC().Format(time.RFC3339), keyInst: instanceTag(s.Location)})
	if err != nil {
		return err
	}
	l, wrote := s.Location, new(atomic.Bool)
	steps, err := lvm.Snapshot(lvm.Volume{Group: l.VG, Name: l.LV, Tags: t}, source.Volume.Location.LV)
	if err != nil {
		return err
	}
	snapshot := e.lvmStep("snapshot", l, wrote, func(*lvm.Report) ([]lvm.Step, error) { return steps, nil })
	create := snapshot.do
	snapshot.do = func(ctx context.Context) error {
		if err := whole(&source.Volume); err != nil {
			return err
		}
		return create(ctx)
	}
	if err = e.run(ctx, id, []step{snapshot}); err != nil {
		if ctx.Err() != nil || errors.Is(err, errStopped) {
			return err
		}
		if report, reportErr := e.maybeReport(ctx, l); reportErr == nil && lvOf(report, l) == nil {
			return errors.Join(err, e.forgetSnapshot(id))
		}
		return err
	}
	r.Work = nil
	if err := e.putSnapshot(r); err != nil {
		return err
	}
	e.note(drivebay.EventSnapshotCreated, &source.Volume, fmt.Sprintf("snapshot %q (%s) was made", s.Name, id))
	return nil
}

// DeleteSnapshot removes a snapshot. One that does not exist counts as removed.
func (e *Engine) DeleteSnapshot(ctx context.Context, id string) error {
	if _, ok := e.snapshot(id); !ok {
		if err := e.Missing(id); !errors.Is(err, drivebay.ErrNotFound) {
			return fmt.Errorf("delete snapshot: %w", err)
		}
		return e.recordDeletion(id)
	}
	err := e.work(ctx, id, func(ctx context.Context) error {
		r, ok := e.snapshot(id)
		if !ok {
			return nil
		}
		if r.Work == nil || r.Work.Op != drivebay.WorkRemove {
			r.Work = &drivebay.Work{Op: drivebay.WorkRemove, Since: e.machine.Now()}
			if err := e.putSnapshot(r); err != nil {
				return err
			}
		}
		if err := e.removeSnapshot(ctx, id); err != nil {
			return err
		}
		return e.recordDeletion(id)
	})
	if err != nil {
		return fmt.Errorf("delete snapshot %s: %w", id, err)
	}
	return nil
}

func (e *Engine) removeSnapshot(ctx context.Context, id string) error {
	r, ok := e.snapshot(id)
	if !ok {
		return nil
	}
	l := r.Snapshot.Location
	there := func(ctx context.Context) (bool, error) {
		r, err := e.maybeReport(ctx, l)
		return err == nil && lvOf(r, l) != nil, err
	}
	plan := []step{when(there, step{name: "snapshot",
		done: func(ctx context.Context) (bool, error) { is, err := there(ctx); return !is, err },
		do:   func(ctx context.Context) error { return e.lvmRun(ctx, l, lvm.Remove(l.VG, l.LV)) }})}
	if err := e.run(ctx, id, append(plan, e.removeUnusedGroup(l, id))); err != nil {
		return err
	}
	if err := e.unmarkForgotten(drivebay.ForgottenVolume{ID: id, Instance: instanceOf(l)}.Key()); err != nil {
		return err
	}
	if err := e.forgetSnapshot(id); err != nil {
		return err
	}
	e.note(drivebay.EventSnapshotDeleted, &drivebay.Volume{ID: r.Snapshot.Source, Location: l}, fmt.Sprintf("snapshot %q (%s) was removed", r.Snapshot.Name, id))
	return nil
}

// resumeSnapshots continues interrupted work on snapshots.
func (e *Engine) resumeSnapshots() {
	for _, r := range e.snapshotRecords() {
		if r.Work == nil {
			continue
		}
		id, again := r.Snapshot.ID, e.makeSnapshot
		if r.Work.Op == drivebay.WorkRemove {
			again = e.removeSnapshot
		}
		was := *r.Work
		e.resumeWork(true, id, again, func() bool { r, ok := e.snapshot(id); return ok && sameWork(r.Work, &was) })
	}
}
