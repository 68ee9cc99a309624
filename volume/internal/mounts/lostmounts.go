package mounts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Mounts that are in the record and not on the machine: they were unmounted by hand, or removed with their
// directory. They block nothing, once the kernel has proved that no container has the volume open any
// more.

// DropLost removes the publications of a volume that is mounted nowhere from its record. A block volume
// that is staged is mounted nowhere either: what counts there is whether it has lost a target.
func (e *Mounter) DropLost(ctx context.Context, v drivebay.Volume) error {
	s, err := e.MountState(ctx, v)
	if err != nil || len(s.Lost) == 0 || len(s.T.Of(s.D)) > 0 {
		return err
	}
	if slices.ContainsFunc(s.Now, func(p drivebay.Publication) bool { return !s.stagedAsBlock(p) }) {
		return nil
	}
	if err := s.Unused(ctx); err != nil {
		return err
	}
	s.Now, s.Lost = nil, nil
	s.Counters.Of(v.ID).forget()
	if err := s.Keep(); err != nil {
		return err
	}
	return s.closeUnused(ctx)
}

// Unused proves that nothing has the device of a volume open for itself alone, as a mounted filesystem
// does in any namespace. A volume without a device is unused.
func (s *MountState) Unused(ctx context.Context) error {
	if s.D.Num == "" {
		return nil
	}
	return steps.Touch(ctx, s.Steps, &s.V, steps.MountTime, func(ctx context.Context) error {
		disk, err := s.Device.OpenSame(ctx, s.D, true)
		if errors.Is(err, host.ErrBusy) {
			return fmt.Errorf("in use by a container: stop the container first: %w", err)
		}
		if err == nil {
			disk.Close()
		}
		return err
	})
}
