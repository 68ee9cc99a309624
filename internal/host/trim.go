package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

const fsTrim = 0xc0185879 // FITRIM, _IOWR('X', 121, struct fstrim_range), include/uapi/linux/fs.h

// Trim acts on the folder that it opened: a mount placed over its name meanwhile is not trimmed.
func (r *real) Trim(_ context.Context, p Place) error {
	fd, err := p.open(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("trim %w", err)
	}
	defer unix.Close(fd)
	if err := trim(fd); err != nil {
		return fmt.Errorf("trim %w", placeError(p, err))
	}
	return nil
}

// TrimUnmounted attaches its mount nowhere: the kernel unmounts it when the last handle is closed,
// also when our process dies.
func (r *real) TrimUnmounted(_ context.Context, m NewMount) error {
	if err := r.trimUnmounted(m); err != nil {
		return fmt.Errorf("trim %s: %w", m.Device, err)
	}
	return nil
}

func (r *real) trimUnmounted(m NewMount) error {
	tree, err := r.detached(m)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	root, err := unix.Openat(tree, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return workError(err)
	}
	defer unix.Close(root)
	return workError(trim(root))
}

// trim calls FITRIM, which fails with EOPNOTSUPP or ENOTTY where the filesystem lacks it or the device
// cannot discard.
func trim(fd int) error {
	whole := struct{ start, length, least uint64 }{length: math.MaxUint64}
	err := control(fd, fsTrim, unsafe.Pointer(&whole))
	if errors.Is(err, unix.ENOTTY) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
