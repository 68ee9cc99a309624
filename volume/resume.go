package volume

import (
	"cmp"
	"context"
	"errors"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Capacity returns the space for new volumes of a class; those without a filesystem are block volumes.
func (e controllerCalls) Capacity(ctx context.Context, c drivebay.Class) (drivebay.Capacity, error) {
	of := c
	of.FSType = cmp.Or(c.FSType, drivebay.FSTypes[0])
	if err := errors.Join(e.provision.Can(ctx, of), e.capabilities.CanFormat(c.FSType)); err != nil {
		return drivebay.Capacity{}, err
	}
	e.provision.AwaitReread(ctx)
	has := e.inventory.PlacementView().Capacity(c)
	if has.Largest == 0 { // drives that are not read yet may have space
		if err := e.inventory.UnreadDrives(inventory.EveryDrive); err != nil {
			return drivebay.Capacity{}, err
		}
	}
	return has, nil
}

// DriveRooms returns the space of each drive for new volumes, by id. It has no drive whose space is not known,
// and no drive before the first listing has ended.
func (e controllerCalls) DriveRooms() map[string]drivebay.DriveRoom {
	if _, ready := e.inventory.Unread(); !ready {
		return nil
	}
	return e.inventory.PlacementView().DriveRooms()
}

// removeAgain completes a removal, and records the deletion as of when it was requested.
func (e *Engine) removeAgain(ctx context.Context, id string) error {
	r, err := e.ledger.Record(id)
	if err == nil {
		err = e.provision.Remove(ctx, id)
	}
	if err != nil || r.Work == nil || len(e.instances.OthersOf(id)) > 0 {
		return err
	}
	return e.instances.RecordDeletionAt(id, r.Work.Since)
}

// resume continues interrupted work after a listing. After the first listing that is the work
// of the last run of the daemon. Later it is growth that could not continue then, for example
// because the claim or the partition table of a drive was missing: every other call for the
// volume waits for it. Creation and removal continue with the next call for them.
func (e *Engine) resume(first bool) {
	for _, r := range e.ledger.All() {
		var again func(context.Context, string) error
		switch {
		case r.Work == nil || !first && r.Volume.CSIStatus != drivebay.CSIResizing:
		case r.Work.Op == drivebay.WorkEncrypt:
			again = e.provision.DropEncryption
		case r.Volume.CSIStatus == drivebay.CSICreating:
			again = e.provision.MakeKeyless
		case r.Volume.CSIStatus == drivebay.CSIResizing:
			again = e.expand.Enlarge
		case r.Volume.CSIStatus == drivebay.CSIRemoving:
			again = e.removeAgain
		}
		if again == nil {
			continue
		}
		id := r.Volume.ID
		if err := e.device.MayChange(id); err != nil {
			if first {
				e.env.Log.Warn("interrupted work waits for its drives", "op", "resume", "volume", id, "err", err)
			}
			continue
		}
		was := *r.Work
		e.provision.ResumeWork(first, id, again, func() bool { r, err := e.ledger.Record(id); return err == nil && steps.SameWork(r.Work, &was) })
	}
	if first {
		e.resumeSnapshots()
	}
	e.resumeReplication(first)
}
