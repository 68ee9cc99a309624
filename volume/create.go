package volume

import (
	"context"

	"github.com/drivebay/drivebay"
)

// Powers says what this machine can do beyond the plain.
func (e *Engine) Powers() drivebay.VolumePowers { return drivebay.VolumePowers{} }

// CreateVolume makes a volume, or returns the one of that name.
func (e *Engine) CreateVolume(context.Context, drivebay.VolumeRequest) (drivebay.Volume, error) {
	return drivebay.Volume{}, drivebay.ErrNoSupport
}

// DeleteVolume wipes and removes a volume; one that is not there is removed.
func (e *Engine) DeleteVolume(context.Context, string) error { return drivebay.ErrNoSupport }

// ExpandVolume grows a volume. Node says that its filesystem is to be grown next.
func (e *Engine) ExpandVolume(context.Context, string, drivebay.SizeRange) (v drivebay.Volume, node bool, err error) {
	return v, false, drivebay.ErrNoSupport
}

// Capacity is what can be made of a class.
func (e *Engine) Capacity(context.Context, drivebay.Class) (drivebay.Capacity, error) {
	return drivebay.Capacity{}, nil
}

// CreateSnapshot keeps a volume as it is now, or returns the snapshot of that name.
func (e *Engine) CreateSnapshot(context.Context, string, string) (drivebay.VolumeSnapshot, error) {
	return drivebay.VolumeSnapshot{}, drivebay.ErrNoSupport
}

// DeleteSnapshot removes a snapshot; one that is not there is removed.
func (e *Engine) DeleteSnapshot(context.Context, string) error { return drivebay.ErrNoSupport }

// resume takes up work that was interrupted.
func (e *Engine) resume(context.Context) {}
