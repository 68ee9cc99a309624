package host

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls that resize2fs and xfs_growfs use, on any open folder of the filesystem: fs/ext4/ext4.h,
// fs/xfs/libxfs/xfs_fs.h.
const (
	ext4Resize  = 0x40086610 // EXT4_IOC_RESIZE_FS, _IOW('f', 16, __u64)
	xfsGeometry = 0x80705864 // XFS_IOC_FSGEOMETRY_V1, _IOR('X', 100, 112 bytes)
	xfsGrow     = 0x4010586e // XFS_IOC_FSGROWFSDATA, _IOW('X', 110, 16 bytes)
)

// Grow changes nothing where the filesystem is as large as its device already; all three filesystems
// detect that. ext4 needs CAP_SYS_RESOURCE (fs/ext4/resize.c), which not every container has, the
// others need CAP_SYS_ADMIN.
func (r *real) Grow(_ context.Context, p Place, fs string) error {
	grow, ok := map[string]func(fd int, size func() (uint64, error)) error{"ext4": growExt4, "xfs": growXFS, "btrfs": growBtrfs}[fs]
	if !ok {
		return fmt.Errorf("grow %s: %w: %s cannot grow", p, ErrUnsupported, fs)
	}
	fd, err := p.open(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("grow %w", err)
	}
	defer unix.Close(fd)
	if err := grow(fd, func() (uint64, error) { return r.deviceSize(fd) }); err != nil {
		return fmt.Errorf("grow %w", placeError(p, fmt.Errorf("%s: %w", fs, err)))
	}
	return nil
}

// deviceSize returns the size of the device under an open file, for a filesystem that has exactly one
// device.
func (r *real) deviceSize(fd int) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	name := "sys/dev/block/" + devNum(st.Dev) + "/size"
	b, err := r.ReadFile(name)
	if err != nil {
		return 0, err
	}
	sectors, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return sectors * 512, nil
}

func growExt4(fd int, size func() (uint64, error)) error {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return err
	}
	bytes, err := size()
	if err != nil {
		return err
	}
	blocks := bytes / uint64(st.Bsize)
	err = control(fd, ext4Resize, unsafe.Pointer(&blocks))
	if err == unix.EPERM { // ext4_resize_begin returns it for these two reasons
		if !capable(unix.CAP_SYS_RESOURCE) {
			return fmt.Errorf("%w: the kernel requires CAP_SYS_RESOURCE: grant it to the unit or the container of drivebay, then retry", err)
		}
		return fmt.Errorf("%w: the kernel has recorded errors in the filesystem: repair it unmounted, then retry", err)
	}
	return err
}

// capable reports whether our process has a capability (capget(2)), or that cannot be determined.
func capable(which int) bool {
	var data [2]unix.CapUserData
	if unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]) != nil {
		return true
	}
	return data[which/32].Effective&(1<<(which%32)) != 0
}

// xfsGeometryV1 is struct xfs_fsop_geom_v1, with the fields that are used.
type xfsGeometryV1 struct {
	blockSize    uint32
	_            [6]uint32
	inodePercent uint32
	blocks       uint64
	_            [9]uint64
}

// growXFS never requests less than the current size: newer kernels would shrink.
func growXFS(fd int, size func() (uint64, error)) error {
	var have xfsGeometryV1
	if err := control(fd, xfsGeometry, unsafe.Pointer(&have)); err != nil {
		return err
	}
	bytes, err := size()
	if err != nil {
		return err
	}
	blocks := bytes / uint64(have.blockSize)
	if blocks <= have.blocks {
		return nil
	}
	want := struct {
		blocks       uint64
		inodePercent uint32
		_            uint32
	}{blocks: blocks, inodePercent: have.inodePercent} // 0 would remove the limit
	return control(fd, xfsGrow, unsafe.Pointer(&want))
}
