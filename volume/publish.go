package volume

import (
	"context"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/mountoptions"
	"github.com/drivebay/drivebay/volume/internal/mounts"
)

// PublishVolume makes a staged volume appear at a path: a folder for its filesystem, a file for its
// device.
func (e nodeCalls) PublishVolume(ctx context.Context, r drivebay.PublishRequest) error {
	at, err := e.mounts.CheckPath(r.Target)
	if err != nil {
		return err
	}
	if r.Staging == "" {
		return fmt.Errorf("publish volume %s: %w: no staging path is given", r.Volume, drivebay.ErrBusy)
	}
	from, err := e.mounts.CheckPath(r.Staging)
	if err != nil {
		return err
	}
	if at == from || strings.HasPrefix(at.Target, from.Target+"/") {
		return fmt.Errorf("publish volume %s: path %s: %w: it is in the volume itself", r.Volume, at, drivebay.ErrInvalid)
	}
	r.Options = mountoptions.Plain(r.Options)
	return e.ledger.OnVolume(ctx, "publish", r.Volume, func(ctx context.Context, v drivebay.Volume) (err error) {
		defer func() { err = e.provision.Reached(&v, err) }()
		if err := mounts.CanUse(&v, r.Block, r.FSType, r.Options); err != nil {
			return err
		}
		s, err := e.mounts.MountState(ctx, v)
		if err != nil {
			return err
		}
		if err := e.mounts.MayPublish(s, at); err != nil {
			return err
		}
		return s.PublishAt(ctx, from, at, r)
	})
}

// UnpublishVolume undoes PublishVolume, whatever the state of the volume, and also without a record.
// It removes the path after the mount, but never content that was put there.
func (e nodeCalls) UnpublishVolume(ctx context.Context, id, path string) error {
	at, err := e.mounts.CheckPath(path)
	if err != nil {
		return err
	}
	return e.mounts.LetGoAt(ctx, "unpublish", id, func(ctx context.Context, s *mounts.MountState) error { return s.Unpublish(ctx, at) })
}
