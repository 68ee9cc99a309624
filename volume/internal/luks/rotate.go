package luks

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// MayRotate refuses unless one of the two passphrases opens the volume. Only the new one
// does after a call that was interrupted near its end.
func (e *Crypt) MayRotate(ctx context.Context, v *drivebay.Volume, old, next []byte) error {
	err := e.tryKey(ctx, v, old)
	if errors.Is(err, drivebay.ErrSecret) {
		err = e.tryKey(ctx, v, next)
	}
	return err
}

// Rotation returns the plan. It copies the header again after each change: a copy that
// opens with the removed passphrase must not be kept, and a copy without the new one
// is of no use.
func (e *Crypt) Rotation(v *drivebay.Volume, old, next []byte) []steps.Step {
	add := steps.Step{
		Name: "add the new key",
		Done: func(ctx context.Context) (bool, error) { return e.opens(ctx, v, next) },
		Do:   func(ctx context.Context) error { return e.addKey(ctx, v, old, next) },
	}
	remove := steps.Step{
		Name: "remove the old key",
		Done: func(ctx context.Context) (bool, error) { is, err := e.opens(ctx, v, old); return !is, err },
		Do:   func(ctx context.Context) error { return e.removeKey(ctx, v, old, next) },
	}
	if bytes.Equal(old, next) {
		return []steps.Step{add, e.headerRenewed(v, "copy of the header")}
	}
	return []steps.Step{add, e.headerRenewed(v, "copy of the header with both"), remove, e.headerRenewed(v, "copy of the header")}
}

// opens reports whether a passphrase opens the volume.
func (e *Crypt) opens(ctx context.Context, v *drivebay.Volume, key []byte) (bool, error) {
	err := e.tryKey(ctx, v, key)
	if errors.Is(err, drivebay.ErrSecret) {
		return false, nil
	}
	return err == nil, err
}

// addKey adds a passphrase. cryptsetup reads both from its standard input, and an option
// gives the length of the first (2.6.1, tried). So the list of processes shows that
// length, and nothing else.
func (e *Crypt) addKey(ctx context.Context, v *drivebay.Volume, old, next []byte) error {
	return e.changeHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		_, err := e.Machine.RunInput(ctx, append(bytes.Clone(old), next...), "cryptsetup", "luksAddKey", "--type", "luks2",
			"--pbkdf", "argon2id", "--pbkdf-memory", strconv.Itoa(keyMemory), "--pbkdf-parallel", "1",
			"--key-file", "-", "--keyfile-size", strconv.Itoa(len(old)), disk.Path(), "-")
		return err
	})
}

// removeKey removes a passphrase. cryptsetup would remove the last one as well, without a
// warning (2.6.1, tried). So the new one is proved once more, in the same turn of the lane.
func (e *Crypt) removeKey(ctx context.Context, v *drivebay.Volume, old, next []byte) error {
	return e.changeHeader(ctx, v, func(ctx context.Context, disk host.Disk) error {
		if _, err := e.Machine.RunInput(ctx, next, "cryptsetup", "open", "--type", "luks2", "--key-file", "-", disk.Path(), "--test-passphrase"); err != nil {
			return err
		}
		_, err := e.Machine.RunInput(ctx, old, "cryptsetup", "luksRemoveKey", "--type", "luks2", "--key-file", "-", disk.Path())
		return err
	})
}

// headerRenewed returns the step that copies the header as it is now.
func (e *Crypt) headerRenewed(v *drivebay.Volume, name string) steps.Step {
	return steps.Step{
		Name: name,
		Done: func(ctx context.Context) (same bool, err error) {
			if e.Opt.Headers == "" {
				return true, nil
			}
			b, err := e.headerNow(ctx, v)
			return err == nil && bytes.Equal(b, e.copyOf(v)), err
		},
		Do: func(ctx context.Context) error { return e.KeepHeader(ctx, v) },
	}
}
