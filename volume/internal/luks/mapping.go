package luks

import (
	"cmp"
	"context"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// tryKey returns ErrSecret if nothing in the header opens with the key.
func (e *Crypt) tryKey(ctx context.Context, v *drivebay.Volume, key []byte) error {
	return e.onHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		_, err := e.Machine.RunInput(ctx, key, "cryptsetup", "open", "--type", "luks2", "--key-file", "-", disk.Path(), "--test-passphrase")
		return err
	})
}

// unlock makes the decrypted device of a volume. If its caller has gone by then, it removes the device again, before anything else
// is done in the lane: the volume may have been unstaged since.
func (e *Crypt) unlock(ctx context.Context, v *drivebay.Volume, key []byte) error {
	return e.onHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		_, err := e.Machine.RunInput(ctx, key, "cryptsetup", "open", "--type", "luks2", "--key-file", "-", disk.Path(), device.PlainName(v.ID))
		if ctx.Err() == nil {
			return err
		}
		if _, is, lookErr := e.Device.Mapping(v); lookErr == nil && is {
			if _, closeErr := e.Machine.Run(context.WithoutCancel(ctx), "cryptsetup", "close", device.PlainName(v.ID)); closeErr != nil {
				e.Log.Warn("the volume stays unlocked, though its caller has gone", "op", "stage", "volume", v.ID, "err", closeErr)
			}
		}
		return cmp.Or(err, ctx.Err())
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
