package mounts

import (
	"cmp"
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// filesystem is the highest layer of a volume, at a path where it is mounted or will be.
type filesystem struct {
	s        *MountState
	at       MountPath
	options  []string
	readOnly bool
}

// filesystem returns the filesystem of a volume as a layer at a path; none: it is a block volume.
func (s *MountState) filesystem(at MountPath, options []string, readOnly bool) device.Stack {
	if !s.V.HasFilesystem() {
		return nil
	}
	return device.Stack{filesystem{s, at, options, readOnly}}
}

// State returns the device of the volume if it is mounted at the path.
func (f filesystem) State() (mounttable.Device, error) {
	if !f.s.live(f.at) {
		return mounttable.Device{}, fmt.Errorf("volume %s: path %s: %w: it is not mounted there", f.s.V.ID, f.at, drivebay.ErrNotFound)
	}
	return f.s.D, nil
}

// Open mounts the filesystem at the path.
func (f filesystem) Open(ctx context.Context, _ device.Opening) (mounttable.Device, error) {
	return f.s.D, f.s.Mount(ctx, f.at, f.options, f.readOnly)
}

// Grow grows the filesystem to the size of its device, while it is mounted at the path: the filesystem below a bare folder
// is the system's.
func (f filesystem) Grow(ctx context.Context, _ device.Opening) error {
	if err := cmp.Or(f.s.mayGrow(), f.s.proveLive(ctx, f.at)); err != nil {
		return err
	}
	return steps.Touch(ctx, f.s.Steps, &f.s.V, steps.GrowTime, func(ctx context.Context) error {
		return f.s.Machine.Grow(ctx, f.at.Place, f.s.V.FSType)
	})
}

// Close unmounts the filesystem from the path.
func (f filesystem) Close(ctx context.Context) error { return f.s.Clear(ctx, f.at) }
