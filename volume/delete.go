package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/instances"
)

// DeleteVolume wipes and removes a volume. A missing volume counts as removed.
func (e controllerCalls) DeleteVolume(ctx context.Context, id string) error {
	if err := e.takeInUnknown(ctx, id); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	switch _, err := e.ledger.Record(id); {
	case errors.Is(err, drivebay.ErrNotFound):
		return e.instances.RecordDeletion(id)
	case err != nil:
		return fmt.Errorf("delete: %w", err)
	}
	err := e.ledger.Work(ctx, id, func(ctx context.Context) error {
		r, _ := e.ledger.Record(id) // without a record there is nothing to delete
		return e.provision.Retriable(&r.Volume, e.delete(ctx, id))
	})
	if err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	return nil
}

// delete removes a volume that the caller holds, and records the deletion: a drive that is away may have an older volume of that id.
func (e *parts) delete(ctx context.Context, id string) error {
	if err := e.remove(ctx, id); err != nil {
		return err
	}
	if len(e.instances.OthersOf(id)) > 0 { // the record named another, older volume
		return e.inventory.RefuseSecond(id)
	}
	return e.instances.RecordDeletion(id)
}

func (e *parts) remove(ctx context.Context, id string) error {
	r, err := e.ledger.Record(id)
	if errors.Is(err, drivebay.ErrNotFound) {
		return nil
	}
	if err := e.device.MayChange(id); err != nil {
		return err
	}
	if r.Volume.HasFilesystem() { // the kernel does not show what has a block device open
		if err := e.mounts.DropLost(ctx, r.Volume); err != nil {
			return err
		}
		if r, err = e.ledger.Record(id); err != nil {
			return err
		}
	}
	if err := e.provision.MayRemove(ctx, &r.Volume); err != nil {
		return err
	}
	if err := e.drbd.DropEnded(ctx, r.Volume); err != nil {
		return err
	}
	if err := e.instances.DetectConflict(&r); err != nil {
		return err
	}
	if r, err = e.ledger.Record(id); err != nil {
		return err
	}
	if err := errors.Join(instances.Undecided(&r.Volume), e.instances.Supersede(&r), e.instances.KeepOldCopies(id), e.copyaway.EndMoveFirst(ctx, id, true)); err != nil {
		return err
	}
	if err := e.copyaway.WipeCopies(ctx, id); err != nil {
		return err
	}
	if err := e.provision.WantRemoved(id); err != nil {
		return err
	}
	e.watch.StopScrub(ctx, id) // none begins while there is work
	return e.provision.Remove(ctx, id)
}
