package volume

import (
	"context"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mountoptions"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// StageVolume makes a volume ready at a path of its own: it mounts the filesystem
// there, and PublishVolume binds the paths of pods to it. For a block volume it
// activates the device; the path stays empty.
func (e nodeCalls) StageVolume(ctx context.Context, r drivebay.StageRequest) error {
	at, err := e.mounts.CheckPath(r.Path)
	if err != nil {
		return err
	}
	if err := e.movesFirst(r.Volume); err != nil { // before the call ends a copy
		return err
	}
	r.Options = mountoptions.Plain(r.Options)
	return e.ledger.OnVolume(ctx, "stage", r.Volume, func(ctx context.Context, v drivebay.Volume) (err error) {
		defer func() { err = e.provision.Reached(&v, err) }()
		if err := mounts.CanUse(&v, r.Block, r.FSType, r.Options); err != nil {
			return err
		}
		if err := e.instances.NotRemoved(ctx, v.ID); err != nil {
			return err
		}
		if err := e.drbd.MayUse(ctx, &v); err != nil {
			return err
		}
		if v.AwaitsKey {
			err := e.copyaway.EndMoveFirst(ctx, v.ID, false)
			if err == nil {
				err = e.provision.Encrypt(ctx, v.ID, r.Secrets)
			}
			if err != nil {
				return err
			}
			have, err := e.ledger.Record(v.ID)
			if err != nil {
				return err
			}
			v = have.Volume
		}
		if mirror.StagedAt(&v) == nil { // e2fsck opens an unmounted device exclusively
			e.watch.StopScrub(ctx, v.ID)
		}
		layers := e.device.Stack(&v)
		if _, err := layers.Piece().Open(ctx, device.Opening{}); err != nil && !layers.Remote() {
			return steps.InOurWords(err)
		}
		s, err := e.mounts.MountState(ctx, v)
		if err != nil {
			return err
		}
		if err = s.OpenLayers(ctx, at, r.Secrets); err != nil {
			err = s.Failed(err)
		} else {
			err = s.Stage(ctx, at, r)
		}
		if err != nil {
			s.CloseAgain(ctx)
		}
		return err
	})
}

// UnstageVolume undoes StageVolume. No fault of the volume prevents that, not even a
// missing record. A path at which the volume is not staged counts as unstaged.
func (e nodeCalls) UnstageVolume(ctx context.Context, id, path string) error {
	at, err := e.mounts.CheckPath(path)
	if err != nil {
		return err
	}
	return e.mounts.LetGoAt(ctx, "unstage", id, func(ctx context.Context, s *mounts.MountState) error {
		e.watch.StopScrub(ctx, id)
		return s.Unstage(ctx, at)
	})
}
