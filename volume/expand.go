package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/copyaway"
	"github.com/drivebay/drivebay/volume/internal/expand"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// ExpandVolume grows a volume; node reports whether its filesystem has to be grown next.
func (e controllerCalls) ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error) {
	rec, err := e.ledger.Record(id)
	if err != nil {
		return v, false, err
	}
	if copyaway.GrowsByMove(&rec, r.Required) { // the call must not end the copy
		return v, false, fmt.Errorf("expand volume %s: %w: %s", id, drivebay.ErrPending, expand.MovesItself(rec.Work.Size))
	}
	err = e.ledger.Work(ctx, id, func(ctx context.Context) (err error) {
		defer func() { err = e.provision.Reached(&rec.Volume, err) }()
		if err := e.device.MayChange(id); err != nil {
			return err
		}
		if rec, err := e.ledger.Record(id); err == nil && rec.Volume.Size < r.Required {
			if err := e.copyaway.EndMoveFirst(ctx, id, false); err != nil {
				return err
			}
			if err := e.replicated.MayGrow(ctx, rec.Volume); err != nil {
				return err
			}
			if err := e.mirror.BothLegs(ctx, &rec.Volume, r.Required); err != nil {
				return err
			}
		}
		due, err := e.expand.WantSize(id, r)
		if errors.Is(err, drivebay.ErrRange) && e.provision.AwaitReread(ctx) {
			due, err = e.expand.WantSize(id, r)
		}
		switch {
		case err != nil:
			return err
		case due:
			err = e.expand.Enlarge(ctx, id)
		default:
			if rec, err = e.ledger.Record(id); err == nil {
				err = e.provision.VerifyOnDrives(&rec.Volume)
			}
		}
		if err != nil {
			return err
		}
		return e.replicated.GrowSecondary(ctx, id)
	})
	if err != nil {
		return v, false, fmt.Errorf("expand volume %s: %w", id, err)
	}
	rec, err = e.ledger.Record(id)
	return rec.Volume, e.device.GrowsInUse(&rec.Volume), err
}

// ExpandNode grows the filesystem of a volume to the size of its device, while it is in use. ExpandVolume
// has grown the device before.
func (e nodeCalls) ExpandNode(ctx context.Context, id, path string, r drivebay.SizeRange, secrets drivebay.Secrets) (uint64, error) {
	at, err := e.mounts.CheckVolumePath(id, path)
	if err != nil {
		return 0, err
	}
	return ledger.Answer(ctx, e.ledger, "expand", id, func(ctx context.Context, v drivebay.Volume) (size uint64, err error) {
		if err := e.mounts.HasPaths(ctx, &v, path); err != nil {
			return 0, err
		}
		s, err := e.mounts.MountState(ctx, v)
		if err == nil {
			size, err = s.Expand(ctx, at, r, secrets)
		}
		return size, e.provision.Reached(&v, err)
	})
}
