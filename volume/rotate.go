package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// RotateKey gives an encrypted volume another passphrase. It adds the new one before it
// removes the old one, and each is in the header or is not: after an interruption
// anywhere, the same call has the same result. A volume in use stays in use.
func (e *Engine) RotateKey(ctx context.Context, r drivebay.KeyRequest) error {
	return e.onVolume(ctx, "rotate key of", r.Volume, func(ctx context.Context, v drivebay.Volume) error {
		if v.LUKSUUID == "" {
			return fmt.Errorf("%w: it is not encrypted", drivebay.ErrNoSupport)
		}
		if err := canUse(&v, v.Mode != drivebay.ModeFS, "", nil); err != nil {
			return err
		}
		next, err := passphrase(r.New)
		if err := errors.Join(err, e.hasPaths(ctx, &v, r.Path)); err != nil {
			return err
		}
		old, err := theKey(r.Secrets)
		if err != nil {
			return err
		}
		if err := e.mayRotate(ctx, &v, old, next); err != nil {
			return err
		}
		return errors.Join(e.run(ctx, v.ID, e.rotation(&v, old, next)), e.leaveAsFound(context.WithoutCancel(ctx), &v))
	})
}

// mayRotate refuses unless one of the two passphrases opens the volume. Only the new one
// does after a call that was interrupted near its end.
func (e *Engine) mayRotate(ctx context.Context, v *drivebay.Volume, old, next []byte) error {
	err := e.tryKey(ctx, v, old)
	if errors.Is(err, drivebay.ErrSecret) {
		err = e.tryKey(ctx, v, next)
	}
	return err
}

// rotation returns the plan. It copies the header again after each change: a copy that
// opens with the removed passphrase must not be kept, and a copy without the new one
// is of no use.
func (e *Engine) rotation(v *drivebay.Volume, old, next []byte) []step {
	add := step{
		name: "add the new key",
		done: func(ctx context.Context) (bool, error) { return e.opens(ctx, v, next) },
		do:   func(ctx context.Context) error { return e.addKey(ctx, v, old, next) },
	}
	remove := step{
		name: "remove the old key",
		done: func(ctx context.Context) (bool, error) { is, err := e.opens(ctx, v, old); return !is, err },
		do:   func(ctx context.Context) error { return e.removeKey(ctx, v, old, next) },
	}
	if bytes.Equal(old, next) {
		return []step{add, e.headerRenewed(v, "copy of the header")}
	}
	return []step{add, e.headerRenewed(v, "copy of the header with both"), remove, e.headerRenewed(v, "copy of the header")}
}

// opens reports whether a passphrase opens the volume.
func (e *Engine) opens(ctx context.Context, v *drivebay.Volume, key []byte) (bool, error) {
	err := e.tryKey(ctx, v, key)
	if errors.Is(err, drivebay.ErrSecret) {
		return false, nil
	}
	return err == nil, err
}

// addKey adds a passphrase. cryptsetup reads both from its standard input, and an option
// gives the length of the first (2.6.1, tried). So the list of processes shows that
// length, and nothing else.
func (e *Engine) addKey(ctx context.Context, v *drivebay.Volume, old, next []byte) error {
	if err := e.mayWrite(v.Location.Drives...); err != nil {
		return err
	}
	return e.onHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		_, err := e.machine.RunInput(ctx, append(bytes.Clone(old), next...), "cryptsetup", "luksAddKey", "--type", "luks2",
			"--pbkdf", "argon2id", "--pbkdf-memory", strconv.Itoa(keyMemory), "--pbkdf-parallel", "1",
			"--key-file", "-", "--keyfile-size", strconv.Itoa(len(old)), disk.Path(), "-")
		return err
	})
}

// removeKey removes a passphrase. cryptsetup would remove the last one as well, without a
// warning (2.6.1, tried). So the new one is proved once more, in the same turn of the lane.
func (e *Engine) removeKey(ctx context.Context, v *drivebay.Volume, old, next []byte) error {
	if err := e.mayWrite(v.Location.Drives...); err != nil {
		return err
	}
	return e.onHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		if _, err := e.machine.RunInput(ctx, next, "cryptsetup", "open", "--type", "luks2", "--key-file", "-", disk.Path(), "--test-passphrase"); err != nil {
			return err
		}
		_, err := e.machine.RunInput(ctx, old, "cryptsetup", "luksRemoveKey", "--type", "luks2", "--key-file", "-", disk.Path())
		return err
	})
}

// headerRenewed returns the step that copies the header as it is now.
func (e *Engine) headerRenewed(v *drivebay.Volume, name string) step {
	return step{
		name: name,
		done: func(ctx context.Context) (same bool, err error) {
			if e.opt.Headers == "" {
				return true, nil
			}
			b, err := e.headerNow(ctx, v)
			return err == nil && bytes.Equal(b, e.copyOf(v)), err
		},
		do: func(ctx context.Context) error { return e.keepHeader(ctx, v) },
	}
}
