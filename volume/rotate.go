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

// RotateKey gives an encrypted volume another passphrase. The new one opens it before
// the old one stops to, and each is in the header or is not: cut short anywhere, the
// same call again comes to the same end. What is in use stays in use.
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
		return errors.Join(e.run(ctx, v.ID, e.rotation(&v, old, next)), e.rest(context.WithoutCancel(ctx), &v))
	})
}

// mayRotate wants one of the two to open the volume: the new one alone does after a
// call that was cut short near its end.
func (e *Engine) mayRotate(ctx context.Context, v *drivebay.Volume, old, next []byte) error {
	err := e.tryKey(ctx, v, old)
	if errors.Is(err, drivebay.ErrSecret) {
		err = e.tryKey(ctx, v, next)
	}
	return err
}

// rotation is the plan. The copy of the header is made anew each time: what opens
// with a passphrase that was given up is no copy to keep, and one without the new
// one is none to rely on.
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

// opens says whether a passphrase is one of the volume's.
func (e *Engine) opens(ctx context.Context, v *drivebay.Volume, key []byte) (bool, error) {
	err := e.tryKey(ctx, v, key)
	if errors.Is(err, drivebay.ErrSecret) {
		return false, nil
	}
	return err == nil, err
}

// addKey: cryptsetup takes both from its standard input, and is told where the first
// one ends (2.6.1, tried). So its length is seen by who sees our processes, and
// nothing else.
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

// removeKey: cryptsetup would remove the last key as well, without a word (2.6.1,
// tried). The new one is proved once more, with nobody else at the header.
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

// headerRenewed is a copy of the header as it is now.
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
