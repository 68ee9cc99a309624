package luks

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Unlock creates the decrypted device with a key, or tests the key if the device exists. It first
// removes a device that was left over on a drive that is gone.
func (e *Crypt) Unlock(ctx context.Context, v *drivebay.Volume, key []byte) (mounttable.Device, error) {
	is, err := e.Device.IsPlain(v)
	switch {
	case err != nil:
		return mounttable.Device{}, err
	case is:
		err = e.tryKey(ctx, v, key)
	default:
		if err = e.Device.Lock(ctx, v); err == nil {
			err = e.withKey(ctx, v, key, "open", device.PlainName(v.ID))
		}
	}
	if err != nil {
		return mounttable.Device{}, err
	}
	return e.Device.Plain(v)
}

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
	d, err := e.Mirror.Activate(ctx, BackingPiece(v))
	if err != nil {
		return err
	}
	return steps.Touch(ctx, e.Steps, v, steps.MountTime, func(ctx context.Context) error {
		disk, err := e.Machine.OpenDisk(ctx, d.Dev, false)
		if err != nil {
			return err
		}
		defer disk.Close()
		if disk.DevNum() != d.Num {
			return fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, d.Dev)
		}
		if err := e.proveHeader(disk, v); err != nil {
			return err
		}
		return device.CryptError(do(ctx, disk))
	})
}
