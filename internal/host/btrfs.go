package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// include/uapi/linux/btrfs.h
const (
	btrfsResize = 0x50009403 // BTRFS_IOC_RESIZE, _IOW(0x94, 3, struct btrfs_ioctl_vol_args)
	btrfsForget = 0x50009405 // BTRFS_IOC_FORGET_DEV, _IOW(0x94, 5, the same), of /dev/btrfs-control
)

type btrfsArgs struct {
	_    int64
	name [4088]byte
}

func btrfsIoctl(fd int, request uintptr, name string) error {
	var args btrfsArgs
	if len(name) >= len(args.name) {
		return unix.ENAMETOOLONG
	}
	copy(args.name[:], name)
	return control(fd, request, unsafe.Pointer(&args))
}

// growBtrfs grows btrfs to its device. Below 256 MiB btrfs does not resize (fs/btrfs/ioctl.c,
// btrfs_ioctl_resize) and returns EINVAL, which means nothing else here.
func growBtrfs(fd int, _ func() (uint64, error)) error {
	err := btrfsIoctl(fd, btrfsResize, "max")
	if err == unix.EINVAL {
		return fmt.Errorf("%w: btrfs changes its size from 256 MiB on: %w", ErrUnsupported, err)
	}
	return err
}

// forgetBtrfs makes the kernel forget the name under which it first saw a device that is not mounted.
// mkfs.btrfs registers Disk.Path, and Linux 6.1 then shows that name in the mount table (6.18 does
// not). Errors do not matter: a kernel that knows no such device returns ENOENT.
func (r *real) forgetBtrfs(source string) {
	fd, err := r.openat("dev/btrfs-control", unix.O_RDWR|unix.O_CLOEXEC)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_ = btrfsIoctl(fd, btrfsForget, source)
}
