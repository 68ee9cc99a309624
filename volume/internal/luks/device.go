package luks

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// OnDevice opens the device of a volume for writing and proves that it is on the drives that
// the record names. Of an encrypted volume it opens the plain device. With alone, nothing else
// may have it open.
func (e *Crypt) OnDevice(ctx context.Context, v *drivebay.Volume, alone bool, f func(context.Context, host.Disk) error) error {
	return e.On(ctx, v, e.Device.Stack(v), alone, f)
}

// OnPiece is OnDevice for the volume's piece of the drive.
func (e *Crypt) OnPiece(ctx context.Context, v *drivebay.Volume, alone bool, f func(context.Context, host.Disk) error) error {
	return e.On(ctx, v, e.Device.Stack(v).Piece(), alone, f)
}

// On is OnDevice for the highest of some layers.
func (e *Crypt) On(ctx context.Context, v *drivebay.Volume, s device.Stack, alone bool, f func(context.Context, host.Disk) error) error {
	if err := e.Device.MayWrite(v.Location.Drives...); err != nil {
		return err
	}
	lane, t, err := targetOf(ctx, v, s)
	if err != nil {
		return err
	}
	t.Alone = alone
	return e.Erase.OnDisk(ctx, lane, t, f)
}

// lookAt is On for reading: it needs no claim.
func (e *Crypt) lookAt(ctx context.Context, v *drivebay.Volume, s device.Stack, f func(context.Context, host.Disk) error) error {
	lane, t, err := targetOf(ctx, v, s)
	if err != nil {
		return err
	}
	t.Drives = nil
	return e.Erase.OnDisk(ctx, lane, t, f)
}

// targetOf returns the device of the highest of a volume's layers, and its lane. The lane has the partition
// in its name: a copy left on another drive does not block it.
func targetOf(ctx context.Context, v *drivebay.Volume, s device.Stack) (lane string, t device.WriteTarget, err error) {
	d, err := s.Ready(ctx)
	return "volume " + v.ID + " " + v.Location.Partition, s.Target(v, d), err
}

// ContentOf detects what is written on a volume.
func (e *Crypt) ContentOf(ctx context.Context, v *drivebay.Volume) (drivebay.Content, error) {
	return e.contentOf(ctx, v, e.Device.Stack(v))
}

// contentOf is ContentOf for the highest of some layers.
func (e *Crypt) contentOf(ctx context.Context, v *drivebay.Volume, s device.Stack) (drivebay.Content, error) {
	var c drivebay.Content
	err := e.lookAt(ctx, v, s, func(_ context.Context, disk host.Disk) error {
		c = content.Detect(disk, disk.Size(), disk.BlockSize())
		if c.Kind == drivebay.ContentUnknown || c.Reason != "" {
			return fmt.Errorf("%w: what is written on it %w: %s", drivebay.ErrRefused, host.ErrUnreadable, c.Reason)
		}
		return nil
	})
	if err != nil { // the drive may answer later
		return drivebay.Content{}, err
	}
	return c, nil
}

// Cleared returns the step that clears old signatures from a new volume. Its piece of the drive
// is ours, whatever is left on it.
func (e *Crypt) Cleared(v *drivebay.Volume) steps.Step {
	return steps.Step{
		Name: "clear",
		Done: func(ctx context.Context) (bool, error) {
			c, err := e.ContentOf(ctx, v)
			return c.Kind == drivebay.ContentBlank || erase.HasFS(c, v), err
		},
		Do: func(ctx context.Context) error { return e.OnDevice(ctx, v, true, erase.ClearMarks) },
	}
}

// Formatted returns the step that makes the filesystem. It works on a blank volume only.
func (e *Crypt) Formatted(v *drivebay.Volume) steps.Step {
	return steps.Step{
		Name: "mkfs",
		Done: func(ctx context.Context) (bool, error) {
			c, err := e.ContentOf(ctx, v)
			return erase.HasFS(c, v), err
		},
		Do: func(ctx context.Context) error {
			return e.OnDevice(ctx, v, false, func(ctx context.Context, disk host.Disk) error {
				if c := content.Detect(disk, disk.Size(), disk.BlockSize()); c.Kind != drivebay.ContentBlank {
					return fmt.Errorf("%w: it is not blank: %s", drivebay.ErrRefused, erase.CannotBlank(c))
				}
				_, err := e.Machine.Run(ctx, erase.Mkfs(v, disk.Path())...)
				return err
			})
		},
	}
}
