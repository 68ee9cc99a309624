package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// realDisk is a block device that is open for writing. os.File keeps the descriptor's number from
// being reused while the kernel blocks a call on it and the disk is closed.
type realDisk struct {
	files  Files // of the machine, for its sysfs
	file   *os.File
	name   string
	devNum string
	path   string
	size   uint64
	block  int
	locks  *udevLocks // nil if the device cannot have partitions
	direct direct
	first  firstAccess
}

// OpenDisk opens the device node below the root. alone is O_EXCL, which a block
// device accepts without O_CREAT (open(2)): the kernel refuses it while the device,
// the drive it is part of or a partition of it is mounted, held by device-mapper
// or md, or open with O_EXCL elsewhere.
//
// How the tools of Debian 12 treat Path (/proc/PID/fd/N; tried on a loop
// device): mkfs.ext4, mkfs.xfs, mkfs.btrfs, e2fsck, resize2fs, tune2fs,
// xfs_repair, xfs_db, btrfs check, blkid -p and wipefs all accept it as the device.
// The tools that write open it with O_EXCL themselves, so that it must not be open
// alone here: mkfs says "apparently in use", wipefs and e2fsck that it is busy.
// The tools that only read it work either way.
func (r *real) OpenDisk(ctx context.Context, dev string, alone bool) (Disk, error) {
	flags := unix.O_RDWR | unix.O_CLOEXEC
	if alone {
		flags |= unix.O_EXCL
	}
	var fd int
	err := retryBusy(ctx, func() (err error) {
		if fd, err = r.openNode(dev, flags); errors.Is(err, unix.EROFS) {
			// Write-protected (drivers/scsi/sd.c, sd_open): it can still be read.
			fd, err = r.openNode(dev, flags&^unix.O_RDWR|unix.O_RDONLY)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open %s for writing: %w", dev, workError(openError(err)))
	}
	d := &realDisk{files: r, file: os.NewFile(uintptr(fd), dev), name: dev, path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)}
	if err := d.measure(fd); err != nil {
		d.file.Close()
		return nil, fmt.Errorf("open %s for writing: %w", dev, err)
	}
	if r.partitioned(d.devNum) {
		d.locks = &r.locks
		d.locks.keep(fd, d.devNum, 0)
	}
	return d, nil
}

// busyRetryTime is how long EBUSY is retried. A device that was closed is in use for a moment more by a
// program that is just being started, which has a copy of every open file until it executes (fork(2));
// udev inspects every device that was open for writing.
const (
	busyRetryTime     = time.Second
	busyRetryInterval = 10 * time.Millisecond
)

func retryBusy(ctx context.Context, try func() error) error {
	for end := time.Now().Add(busyRetryTime); ; {
		err := try()
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(busyRetryInterval):
		}
	}
}

// partitioned reports whether a device can have partitions: it is no partition or device-mapper
// device.
func (r *real) partitioned(num string) bool {
	_, part := r.ReadFile("sys/dev/block/" + num + "/partition")
	_, dm := r.ReadFile("sys/dev/block/" + num + "/dm/name")
	return part != nil && dm != nil
}

// openNode opens the device node below the root, or the Path of an open Disk.
func (r *real) openNode(dev string, flags int) (int, error) {
	if strings.HasPrefix(dev, fmt.Sprintf("/proc/%d/fd/", os.Getpid())) {
		return unix.Open(dev, flags, 0)
	}
	return r.openat(strings.TrimPrefix(dev, "/"), flags)
}

func (d *realDisk) measure(fd int) error {
	num, err := blockDevice(fd)
	if err != nil {
		return err
	}
	d.devNum = num
	if err := control(fd, unix.BLKGETSIZE64, unsafe.Pointer(&d.size)); err != nil {
		return fmt.Errorf("read the size: %w", workError(err))
	}
	if d.block, err = unix.IoctlGetInt(fd, unix.BLKSSZGET); err != nil {
		return fmt.Errorf("read the block size: %w", workError(err))
	}
	return nil
}

// blockDevice returns the number of the open block device.
func blockDevice(fd int) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%w: not a block device", ErrUnsupported)
	}
	return devNum(st.Rdev), nil
}

func devNum(dev uint64) string { return fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev)) }

func (d *realDisk) DevNum() string { return d.devNum }
func (d *realDisk) Size() uint64   { return d.size }
func (d *realDisk) BlockSize() int { return d.block }
func (d *realDisk) Path() string   { return d.path }

// Close extends the lock first: udev reacts to it.
func (d *realDisk) Close() error {
	if d.locks != nil {
		_ = d.withFD("lock", func(fd int) error { d.locks.keep(fd, d.devNum, udevTime); return nil })
	}
	d.direct.close()
	return d.file.Close()
}

func (d *realDisk) forget() error {
	return d.withFD("access", func(fd int) error { d.first.drop(fd); return nil })
}

func (d *realDisk) ReadAt(p []byte, off int64) (int, error) {
	if err := d.forget(); err != nil {
		return 0, err
	}
	n, err := d.file.ReadAt(p, off)
	if err != nil && err != io.EOF { // io.ReaderAt: EOF is not wrapped
		err = fmt.Errorf("at byte %d: %w", off, workError(err))
	}
	return n, err
}

// WriteAt may have to read the rest of a page first: that must not be an old one either.
func (d *realDisk) WriteAt(p []byte, off int64) (int, error) {
	if err := d.forget(); err != nil {
		return 0, err
	}
	n, err := d.file.WriteAt(p, off)
	if err != nil {
		err = fmt.Errorf("at byte %d: %w", off, workError(err))
	}
	return n, err
}

// Sync also drops the page cache of the device: later reads come from the medium.
func (d *realDisk) Sync() error {
	return d.withFD("sync", func(fd int) error {
		if err := unix.Fsync(fd); err != nil {
			return err
		}
		return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	})
}

// The bytes per call: a running call cannot be ended, so ctx is checked between calls. Zeros may have
// to go over the wire, where 32 MiB take a second on the slowest drives. A discard does not. It is
// split so that no unit that a drive discards as a whole (a chunk of a thin pool has up to 1 GiB) is
// cut in two.
const (
	zeroPiece    = 32 << 20
	discardPiece = 1 << 30
)

// Zero works on every drive: where the drive cannot zero, the kernel writes zeros itself
// (block/blk-lib.c, blkdev_issue_zeroout).
func (d *realDisk) Zero(ctx context.Context, off, n uint64) error {
	return d.pieces(ctx, "zero", unix.BLKZEROOUT, zeroPiece, off, n)
}

func (d *realDisk) Discard(ctx context.Context, off, n uint64) error {
	return d.pieces(ctx, "discard", unix.BLKDISCARD, discardPiece, off, n)
}

func (d *realDisk) pieces(ctx context.Context, verb string, request uintptr, piece, off, n uint64) error {
	if off > d.size || n > d.size-off {
		return fmt.Errorf("%s %s: bytes %d and %d more are not within %d", verb, d.name, off, n, d.size)
	}
	for end := off + n; off < end; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s %s, at byte %d: %w", verb, d.name, off, err)
		}
		span := [2]uint64{off, min(piece-off%piece, end-off)}
		if err := d.ioctl(fmt.Sprintf("%s %d bytes at %d", verb, span[1], off), request, unsafe.Pointer(&span)); err != nil {
			return err
		}
		off += span[1]
	}
	return nil
}

func (d *realDisk) SetReadOnly(on bool) error {
	var value int32
	if on {
		value = 1
	}
	return d.ioctl("set read-only", unix.BLKROSET, unsafe.Pointer(&value))
}

func (d *realDisk) ioctl(verb string, request uintptr, arg unsafe.Pointer) error {
	return d.withFD(verb, func(fd int) error { return control(fd, request, arg) })
}

// withFD calls do with the descriptor of the device.
func (d *realDisk) withFD(verb string, do func(fd int) error) error {
	raw, err := d.file.SyscallConn()
	if err != nil {
		return err
	}
	var answer error
	err = raw.Control(func(fd uintptr) { answer = again(func() error { return do(int(fd)) }) })
	if err = cmp.Or(err, workError(answer)); err != nil {
		return fmt.Errorf("%s of %s: %w", verb, d.name, err)
	}
	return nil
}
