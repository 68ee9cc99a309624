package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/provision"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// CreateSnapshot makes a snapshot of a volume, or returns the snapshot of that name.
func (e snapshotCalls) CreateSnapshot(ctx context.Context, name, volume string) (drivebay.VolumeSnapshot, error) {
	if name == "" || len(name) > 1<<10 {
		return drivebay.VolumeSnapshot{}, fmt.Errorf("snapshot: %w: the name must have 1 to 1024 bytes", drivebay.ErrInvalid)
	}
	id := drivebay.SnapshotID(name)
	err := e.ledger.Work(ctx, id, func(ctx context.Context) error {
		if have, ok := e.ledger.Snapshot(id); ok {
			_, forgotten := e.instances.WasForgotten(id, have.Snapshot.Location)
			source, missing := e.ledger.Record(volume)
			switch {
			case forgotten:
				return fmt.Errorf("%w: a snapshot of that name was forgotten and is back on its drive: delete it first (%s)", drivebay.ErrExists, id)
			case have.Snapshot.Source != volume:
				return fmt.Errorf("%w: the name is used by a snapshot of volume %s", drivebay.ErrExists, have.Snapshot.Source)
			case have.Work == nil && missing == nil && instances.OfEarlierVolume(&have.Snapshot, &source.Volume):
				return fmt.Errorf("%w: the name is used by a snapshot of an earlier volume %s: delete it first (%s)", drivebay.ErrExists, volume, id)
			case have.Work == nil:
				if err := e.instances.RefuseSecondSnapshot(&have.Snapshot); err != nil {
					return err
				}
				return e.provision.VerifySnapshot(&have.Snapshot)
			case have.Work.Op == drivebay.WorkRemove:
				return fmt.Errorf("%w: it is being removed", drivebay.ErrPending)
			}
		} else if err := e.ledger.Missing(id); !errors.Is(err, drivebay.ErrNotFound) {
			return err
		} else if err := e.snapshots.PlaceSnapshot(id, name, volume); err != nil {
			return err
		}
		return e.snapshots.MakeSnapshot(ctx, id)
	})
	if err != nil {
		return drivebay.VolumeSnapshot{}, fmt.Errorf("snapshot %q of volume %s: %w", name, volume, provision.HalfMade(e.ledger, id, err))
	}
	have, ok := e.ledger.Snapshot(id)
	if !ok {
		return drivebay.VolumeSnapshot{}, fmt.Errorf("snapshot %s: %w", id, drivebay.ErrNotFound)
	}
	return e.snapshots.Shown(have.Snapshot), nil
}

// DeleteSnapshot removes a snapshot. One that does not exist counts as removed.
func (e snapshotCalls) DeleteSnapshot(ctx context.Context, id string) error {
	if _, ok := e.ledger.Snapshot(id); !ok {
		if err := e.ledger.MissingSnapshot(id); !errors.Is(err, drivebay.ErrNotFound) {
			return fmt.Errorf("delete snapshot: %w", err)
		}
		return e.instances.RecordDeletion(id)
	}
	err := e.ledger.Work(ctx, id, func(ctx context.Context) error {
		r, ok := e.ledger.Snapshot(id)
		if !ok {
			return nil
		}
		if r.Work == nil {
			if err := e.instances.RefuseSecondSnapshot(&r.Snapshot); err != nil {
				return err
			}
		}
		if r.Work == nil || r.Work.Op != drivebay.WorkRemove {
			r.Work = &drivebay.Work{Op: drivebay.WorkRemove, Since: e.env.Machine.Now()}
			if err := e.snapshots.PutSnapshot(r); err != nil {
				return err
			}
		}
		if err := e.snapshots.RemoveSnapshot(ctx, id); err != nil {
			return e.provision.Retriable(&drivebay.Volume{ID: id, Location: r.Snapshot.Location}, err)
		}
		return e.instances.RecordDeletion(id)
	})
	if err != nil {
		return fmt.Errorf("delete snapshot %s: %w", id, err)
	}
	return nil
}

// resumeSnapshots continues interrupted work on snapshots.
func (e snapshotCalls) resumeSnapshots() {
	for _, r := range e.partitions.SnapshotRecords() {
		if r.Work == nil {
			continue
		}
		id, again := r.Snapshot.ID, e.snapshots.MakeSnapshot
		if r.Work.Op == drivebay.WorkRemove {
			again = e.snapshots.RemoveSnapshot
		}
		was := *r.Work
		e.provision.ResumeWork(true, id, again, func() bool { r, ok := e.ledger.Snapshot(id); return ok && steps.SameWork(r.Work, &was) })
	}
}
