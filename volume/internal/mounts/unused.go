package mounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
)

// HasPaths returns an error unless the volume is mounted or recorded at each path. Empty paths are
// skipped.
func (e *Mounter) HasPaths(ctx context.Context, v *drivebay.Volume, paths ...string) error {
	s, err := e.MountState(ctx, *v)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		at, err := e.CheckVolumePath(v.ID, path)
		if err != nil {
			return err
		}
		if s.recorded(at) == nil && len(s.Ours(at)) == 0 {
			return fmt.Errorf("%w: it is neither staged nor published at %s", drivebay.ErrNotFound, at)
		}
	}
	return nil
}

// LeaveAsFound locks and deactivates a volume that is not in use, as it was before.
func (e *Mounter) LeaveAsFound(ctx context.Context, v *drivebay.Volume) error {
	s, err := e.MountState(ctx, *v)
	if err != nil || len(s.Now) > 0 || len(s.T.Of(s.D)) > 0 {
		return err
	}
	return errors.Join(s.closeUnused(ctx), e.Device.Stack(v).Piece().Close(ctx))
}

// DeactivateUnused deactivates a volume that is mounted nowhere. After the records are lost a pod may
// still use it; while the device is bound to the path of the pod and not open, LVM would deactivate it.
func (e *Mounter) DeactivateUnused(ctx context.Context, v *drivebay.Volume) error {
	mounts, err := e.Mounted(ctx, v)
	switch {
	case err != nil && !errors.Is(err, drivebay.ErrNotFound):
		return err
	case len(mounts) > 0:
		return nil
	}
	return e.Device.Stack(v).Piece().Close(ctx)
}
