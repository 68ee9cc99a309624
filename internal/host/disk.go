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

// realDisk is a block device that is open for writing. os.File keeps its number
// from being used for another file while a call that the kernel holds is under
// way and somebody closes it.
type realDisk struct {
	files  Files // of the machine, for its sysfs
	file   *os.File
	name   string
	devNum string
	path   string
	size   uint64
	block  int
	quiet  *quiet // nil: it has no partitions of its own
	direct direct
}

// OpenDisk opens the device node below the root. Alone is O_EXCL, which a block
// device takes without O_CREAT (open(2)): the kernel refuses it while the device,
// the drive it is part of or a partition of it is mounted, held by device-mapper
// or md, or open alone by another.
//
// What the tools of Debian 12 make of Path (/proc/PID/fd/N; tried on a loop
// device): mkfs.ext4, mkfs.xfs, mkfs.btrfs, e2fsck, resize2fs, tune2fs,
// xfs_repair, xfs_db, btrfs check, blkid -p and wipefs all take it for the device
// it is. All that write want it alone themselves, so that it must not be open
// alone here: mkfs says "apparently in use", wipefs and e2fsck that it is busy.
// The programs that only read it do not mind.
func (r *real) OpenDisk(ctx context.Context, dev string, alone bool) (Disk, error) {
	flags := unix.O_RDWR | unix.O_CLOEXEC
	if alone {
		flags |= unix.O_EXCL
	}
	var fd int
	err := patiently(ctx, func() (err error) {
		if fd, err = r.openNode(dev, flags); errors.Is(err, unix.EROFS) {
			// Write-protected (drivers/scsi/sd.c, sd_open): what is on it can be read.
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
		d.quiet = &r.quiet
		d.quiet.keep(fd, d.devNum, 0)
	}
	return d, nil
}

// patienceTime is how long "busy" may pass: a device that was closed is in use for a
// moment more by a program that we were just starting, which has a copy of every open
// file until it executes (fork(2)); udev looks at whatever could have been written to.
const (
	patienceTime = time.Second
	patienceTry  = 10 * time.Millisecond
)

func patiently(ctx context.Context, try func() error) error {
	for end := time.Now().Add(patienceTime); ; {
		err := try()
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(patienceTry):
		}
	}
}

// partitioned says whether a device is one that has partitions, and none itself.
func (r *real) partitioned(num string) bool {
	_, part := r.ReadFile("sys/dev/block/" + num + "/partition")
	_, dm := r.ReadFile("sys/dev/block/" + num + "/dm/name")
	return part != nil && dm != nil
}

// openNode opens the device node below the root, or what a Disk of ours is.
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
		return fmt.Errorf("its size: %w", workError(err))
	}
	if d.block, err = unix.IoctlGetInt(fd, unix.BLKSSZGET); err != nil {
		return fmt.Errorf("its block size: %w", workError(err))
	}
	return nil
}

// blockDevice is the number of the block device that is open.
func blockDevice(fd int) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%w: it is no block device", ErrUnsupported)
	}
	return devNum(st.Rdev), nil
}

func devNum(dev uint64) string { return fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev)) }

func (d *realDisk) DevNum() string { return d.devNum }
func (d *realDisk) Size() uint64   { return d.size }
func (d *realDisk) BlockSize() int { return d.block }
func (d *realDisk) Path() string   { return d.path }

// Close of a drive is heard by udev.
func (d *realDisk) Close() error {
	if d.quiet != nil {
		_ = d.ask("lock", func(fd int) error { d.quiet.keep(fd, d.devNum, udevTime); return nil })
	}
	d.direct.close()
	return d.file.Close()
}

func (d *realDisk) ReadAt(p []byte, off int64) (int, error) {
	n, err := d.file.ReadAt(p, off)
	if err != nil && err != io.EOF { // io.ReaderAt: that one bare
		err = fmt.Errorf("at byte %d: %w", off, workError(err))
	}
	return n, err
}

func (d *realDisk) WriteAt(p []byte, off int64) (int, error) {
	n, err := d.file.WriteAt(p, off)
	if err != nil {
		err = fmt.Errorf("at byte %d: %w", off, workError(err))
	}
	return n, err
}

// Sync also lets go of what the kernel keeps of the device in memory: what is
// read afterwards comes from the medium.
func (d *realDisk) Sync() error {
	return d.ask("sync", func(fd int) error {
		if err := unix.Fsync(fd); err != nil {
			return err
		}
		return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
	})
}

// How much one call is given: nothing ends a call that runs, so ctx is looked at
// between them. Zeros may have to go over the wire, 32 MiB are a second on the
// slowest drives. A discard does not, and is cut where no piece of a drive that
// it can forget (a chunk of a thin pool has up to 1 GiB) is cut in two.
const (
	zeroPiece    = 32 << 20
	discardPiece = 1 << 30
)

// Zero never fails for want of a drive that can: the kernel then writes zeros
// itself (block/blk-lib.c, blkdev_issue_zeroout).
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
	return d.ask(verb, func(fd int) error { return control(fd, request, arg) })
}

// ask does something with the open device.
func (d *realDisk) ask(verb string, do func(fd int) error) error {
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
