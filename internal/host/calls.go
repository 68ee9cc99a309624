package host

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// workError wraps a kernel error in an error of errors.go.
func workError(err error) error {
	var ours error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		ours = ErrBusy
	case errors.Is(err, unix.EOPNOTSUPP):
		ours = ErrUnsupported
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		ours = ErrGone
	case errors.Is(err, unix.EIO):
		ours = ErrIO
	case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR):
		ours = ErrOccupied
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		ours = ErrPermission
	case errors.Is(err, unix.ENOSYS):
		ours = ErrImpossible
	}
	if ours == nil || errors.Is(err, ours) {
		return err
	}
	return fmt.Errorf("%w: %w", ours, err)
}

// again repeats do while signals interrupt it.
func again(do func() error) error {
	for {
		if err := do(); err != unix.EINTR {
			return err
		}
	}
}

// control calls ioctl(2) and returns its error unchanged.
func control(fd int, request uintptr, arg unsafe.Pointer) error {
	return again(func() error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg)); errno != 0 {
			return errno
		}
		return nil
	})
}
