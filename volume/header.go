package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// A few bad sectors in its header and nobody reads an encrypted volume any more,
// key or no key. A copy of the header is kept beside the records until the volume
// is deleted; it opens nothing without the passphrase. It has the form that
// cryptsetup luksHeaderRestore takes.

func (e *Engine) headerFile(id string) string { return filepath.Join(e.opt.Headers, id+".luks") }

func (e *Engine) headerKept(v *drivebay.Volume) step {
	return step{
		name: "copy of the header",
		done: func(context.Context) (bool, error) { return e.hasCopy(v) },
		do:   func(ctx context.Context) error { return e.keepHeader(ctx, v) },
	}
}

func (e *Engine) hasCopy(v *drivebay.Volume) (bool, error) {
	if e.opt.Headers == "" {
		return true, nil
	}
	b, err := os.ReadFile(e.headerFile(v.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("copy of the header: %w", err)
	}
	is, err := readHeader(bytes.NewReader(b))
	return err == nil && len(b) == headerCopy && is.uuid == v.LUKSUUID, nil
}

// keepHeader makes the copy where there is none.
func (e *Engine) keepHeader(ctx context.Context, v *drivebay.Volume) error {
	if has, err := e.hasCopy(v); err != nil || has {
		return err
	}
	b := make([]byte, headerCopy)
	err := e.onDevice(ctx, below(v), false, func(_ context.Context, disk host.Disk) error {
		_, err := disk.ReadAt(b, 0)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(e.opt.Headers, 0o700); err != nil {
		return fmt.Errorf("copy of the header: %w", err)
	}
	f, err := os.CreateTemp(e.opt.Headers, ".header-*") // mode 0600
	if err != nil {
		return fmt.Errorf("copy of the header: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), e.headerFile(v.ID))
	}
	if err != nil {
		return fmt.Errorf("copy of the header: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

func (e *Engine) dropHeader(id string) error {
	if e.opt.Headers == "" {
		return nil
	}
	if err := os.Remove(e.headerFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy of the header: %w", err)
	}
	return nil
}
