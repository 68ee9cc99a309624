package volume

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/adopt"
	"github.com/drivebay/drivebay/volume/internal/instances"
)

// AdoptVolume adopts a volume that was found on a drive that is not claimed, or that returned
// after its id was deleted. It can be staged then; to change it, its drives must be claimed.
func (e *Engine) AdoptVolume(ctx context.Context, id string) error {
	found := e.instances.NotInRecord(id)
	switch {
	case len(found) == 0 && e.instances.Recorded(id):
		return nil
	case !e.instances.Recorded(id) && e.adopt.NoRecord(id) != nil:
		return fmt.Errorf("adopt volume %s: %w", id, e.adopt.NoRecord(id))
	case !e.instances.Recorded(id) && !e.adopt.IsFound(id) && len(e.instances.OthersOf(id)) == 0:
		if deleted, err := e.adopt.Undelete(id); err != nil || !deleted {
			return fmt.Errorf("adopt volume %s: %w", id, cmp.Or(err, fmt.Errorf("%w: it was not found on any drive", drivebay.ErrNotFound)))
		}
	}
	e.ledger.Mu.Lock()
	if e.adopt.Adopting == nil {
		e.adopt.Adopting = map[string]int{}
	}
	e.adopt.Adopting[id]++
	e.ledger.Mu.Unlock()
	defer func() {
		e.ledger.Mu.Lock()
		defer e.ledger.Mu.Unlock()
		if e.adopt.Adopting[id]--; e.adopt.Adopting[id] == 0 {
			delete(e.adopt.Adopting, id)
		}
	}()
	adopted := func() bool {
		now := e.instances.RecordedLocations(id)
		return slices.ContainsFunc(found, func(o instances.OnDrive) bool { return slices.ContainsFunc(now, o.Is) })
	}
	for range adopt.AdoptionAttempts {
		err := e.listVolumes(ctx, e.env.Drives.Snapshot(), true)
		switch {
		case adopted():
			e.publish()
			return nil
		case err != nil:
			return fmt.Errorf("adopt volume %s: %w", id, err)
		}
		end, err := e.ledger.BeginAfter(ctx, id) // another listing may hold the volume
		if err != nil {
			return fmt.Errorf("adopt volume %s: %w", id, err)
		}
		end()
	}
	if e.instances.Recorded(id) {
		return fmt.Errorf("adopt volume %s: %w: the records name another volume with this id, which is newer or may still be on its drives; delete that one first (`drivebay volume forget %s` if its drives are lost)", id, drivebay.ErrRefused, id)
	}
	return fmt.Errorf("adopt volume %s: %w: it is no longer on any drive", id, drivebay.ErrNotFound)
}

// takeInUnknown adopts a volume that a call asks for, if the drives have it and it has no record yet.
func (e *parts) takeInUnknown(ctx context.Context, id string) error {
	switch {
	case e.instances.Recorded(id):
		return nil
	case len(e.instances.InstancesOf(id)) == 0:
		return e.instances.RefuseOldCopy(id)
	}
	return e.adopt.Adopt(ctx, e.env.Drives.Snapshot())
}
