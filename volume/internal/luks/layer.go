package luks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// layer is the encryption of a volume: a LUKS2 header and the data on the layer below, and a device-mapper
// device that shows the data in plain.
type layer struct {
	e     *Crypt
	v     *drivebay.Volume
	below device.Stack
}

// Layer returns the encryption of a volume; nil: it is not encrypted.
func (e *Crypt) Layer(v *drivebay.Volume, below device.Stack) device.Layer {
	if !v.Encrypted() {
		return nil
	}
	return &layer{e, v, below}
}

// below returns the layers of a volume below its encryption: the header is on the highest of them. A
// volume that is not encrypted has the layer of its piece there.
func (e *Crypt) below(v *drivebay.Volume) device.Stack {
	all := e.Device.Stack(v)
	i := slices.IndexFunc(all, func(l device.Layer) bool { _, is := l.(*layer); return is })
	if i < 0 {
		return all.Piece()
	}
	return all[:i]
}

func (l *layer) State() (mounttable.Device, error) {
	d, err := l.below.State()
	if err != nil {
		return mounttable.Device{}, err
	}
	return l.e.Device.MappingOn(d, l.v)
}

// Open unlocks the volume with the passphrase in the secrets, and keeps a copy of its header.
func (l *layer) Open(ctx context.Context, o device.Opening) (mounttable.Device, error) {
	key, err := Passphrase(o.Secrets)
	if err != nil {
		return mounttable.Device{}, err
	}
	if is, err := device.IsOpen(l); err == nil && !is && o.Vacate != nil {
		if err := o.Vacate(ctx); err != nil {
			return mounttable.Device{}, err
		}
	}
	d, err := l.unlock(ctx, key)
	if err != nil {
		return mounttable.Device{}, err
	}
	if err := l.e.KeepHeader(ctx, l.v); err != nil { // the volume can be used without the copy
		l.e.Log.Warn("no copy of the header", "op", "stage", "volume", l.v.ID, "err", err)
	}
	return d, nil
}

// unlock creates the decrypted device with a key, or tests the key if the device exists. It first removes
// a device that was left over on a drive that is gone.
func (l *layer) unlock(ctx context.Context, key []byte) (mounttable.Device, error) {
	is, err := device.IsOpen(l)
	switch {
	case err != nil:
		return mounttable.Device{}, err
	case is:
		err = l.e.tryKey(ctx, l.v, key)
	default:
		if err = l.Close(ctx); err == nil {
			err = l.e.unlock(ctx, l.v, key)
		}
	}
	if err != nil {
		return mounttable.Device{}, err
	}
	return l.State()
}

// Grow grows the decrypted device to the size of the device below it. The kernel keeps the key where
// only the process that set it finds it, so the key is needed again (cryptsetup-resize(8)).
func (l *layer) Grow(ctx context.Context, o device.Opening) error {
	d, err := l.below.State()
	if err != nil {
		return err
	}
	is, err := l.State()
	if errors.Is(err, drivebay.ErrNotFound) || err == nil && is.Size+partitions.LUKSHeader >= d.Size {
		return nil
	}
	if err != nil {
		return err
	}
	key, err := Passphrase(o.Secrets)
	if err != nil {
		return fmt.Errorf("%w; it grows when it is staged the next time", err)
	}
	return steps.Touch(ctx, l.e.Steps, l.v, steps.MountTime, func(ctx context.Context) error {
		_, err := l.e.Machine.RunInput(ctx, key, "cryptsetup", "resize", "--key-file", "-", device.PlainName(l.v.ID))
		return device.CryptError(err)
	})
}

// Close locks the volume.
func (l *layer) Close(ctx context.Context) error { return l.e.Device.Lock(ctx, l.v) }

// Create returns the steps that write the header and unlock the volume, and the one that locks it.
func (l *layer) Create(secrets drivebay.Secrets) (open, shut []steps.Step) {
	return []steps.Step{l.e.encrypted(l.v, secrets), l.e.headerKept(l.v), l.unlocked(secrets)}, []steps.Step{l.locked()}
}

// Erase destroys the keys of the volume: from then on it cannot be read, however long the rest of the
// wipe takes.
func (l *layer) Erase(there func(context.Context) (bool, error)) []steps.Step {
	erase := l.e.Steps.Made(l.v.ID, "erase", func(ctx context.Context) error {
		return errors.Join(l.loseKeys(ctx, there), l.Forget())
	})
	return []steps.Step{l.locked(), erase}
}

// EraseCopy destroys the keys of a copy of the volume.
func (l *layer) EraseCopy(there func(context.Context) (bool, error)) []steps.Step {
	return []steps.Step{l.e.Steps.Made(l.v.ID, "erase", func(ctx context.Context) error { return l.loseKeys(ctx, there) })}
}

// loseKeys overwrites the header if it is there. A thin pool writes elsewhere what a snapshot ever shared,
// and leaves what was there before (Linux, drivers/md/dm-thin.c, break_sharing): such a block is therefore
// discarded first.
func (l *layer) loseKeys(ctx context.Context, there func(context.Context) (bool, error)) error {
	if is, err := there(ctx); err != nil || !is {
		return err
	}
	return l.e.On(ctx, l.v, l.below, true, func(ctx context.Context, disk host.Disk) error {
		n := min(partitions.LUKSHeader, disk.Size())
		if l.v.Location.Kind == drivebay.LocationThin {
			if err := disk.Discard(ctx, 0, n); err != nil && !errors.Is(err, host.ErrUnsupported) {
				return err
			}
		}
		return errors.Join(disk.Zero(ctx, 0, n), disk.Sync())
	})
}

// Forget removes the copy of the header.
func (l *layer) Forget() error { return l.e.dropHeader(l.v) }

// unlocked returns the step that opens the device of a volume in plain.
func (l *layer) unlocked(secrets drivebay.Secrets) steps.Step {
	return steps.Step{
		Name: "unlock",
		Done: func(context.Context) (bool, error) { return device.IsOpen(l) },
		Do: func(ctx context.Context) error {
			key, err := Passphrase(secrets)
			if err == nil {
				_, err = l.unlock(ctx, key)
			}
			return err
		},
	}
}

// locked returns the step that closes the device of a volume in plain.
func (l *layer) locked() steps.Step {
	return steps.Step{
		Name: "lock",
		Done: func(context.Context) (bool, error) { _, is, err := l.e.Device.Mapping(l.v); return !is, err },
		Do:   l.Close,
	}
}
