package luks

import (
	"context"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// tryKey returns ErrSecret if nothing in the header opens with the key.
func (e *Crypt) tryKey(ctx context.Context, v *drivebay.Volume, key []byte) error {
	return e.withKey(ctx, v, key, "open", "--test-passphrase")
}

// withKey runs cryptsetup on the device that holds the header of a volume.
func (e *Crypt) withKey(ctx context.Context, v *drivebay.Volume, key []byte, action string, words ...string) error {
	return e.onHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		_, err := e.Machine.RunInput(ctx, key, append([]string{"cryptsetup", action, "--type", "luks2", "--key-file", "-", disk.Path()}, words...)...)
		return err
	})
}

// onHeader calls do with the device that holds the header of a volume, after proving that it does.
func (e *Crypt) onHeader(ctx context.Context, v *drivebay.Volume, do func(context.Context, host.Disk) error) error {
	open := func(ctx context.Context, t device.WriteTarget) (host.Disk, error) {
		return e.Device.OpenSame(ctx, t.Device, false)
	}
	return e.withHeader(ctx, v, open, do)
}

// changeHeader is onHeader for a change of the header.
func (e *Crypt) changeHeader(ctx context.Context, v *drivebay.Volume, do func(context.Context, host.Disk) error) error {
	if err := e.Device.MayWrite(v.Location.Drives...); err != nil {
		return err
	}
	return e.withHeader(ctx, v, e.Device.OpenForWriting, do)
}

func (e *Crypt) withHeader(ctx context.Context, v *drivebay.Volume, open func(context.Context, device.WriteTarget) (host.Disk, error), do func(context.Context, host.Disk) error) error {
	below := e.below(v)
	d, err := below.Open(ctx, device.Opening{})
	if err != nil {
		return err
	}
	return steps.Touch(ctx, e.Steps, v, steps.MountTime, func(ctx context.Context) error {
		disk, err := open(ctx, below.Target(v, d))
		if err != nil {
			return err
		}
		defer disk.Close()
		if err := e.proveHeader(disk, v); err != nil {
			return err
		}
		return device.CryptError(do(ctx, disk))
	})
}
