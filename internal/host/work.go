package host

import (
	"context"
	"io"
)

// Worker is a machine whose drives can be written to and mounted. It does not check whether an
// operation is allowed on a drive: package volume decides that. A recorded machine is no Worker.
type Worker interface {
	Machine
	Disks
	Mounter
	// RunInput is Run for a program that reads its standard input: secrets that must not show in its
	// arguments or its environment.
	RunInput(ctx context.Context, input []byte, argv ...string) ([]byte, error)
}

// Disks opens block devices for writing.
type Disks interface {
	// OpenDisk opens a drive, a partition or a logical volume by its device node ("/dev/sda1"). alone
	// opens it exclusively: ErrBusy while it, or a partition of it, is mounted or held.
	OpenDisk(ctx context.Context, dev string, alone bool) (Disk, error)
}

// Disk is an open block device. It stays the device that was opened, whatever happens to its name: the
// kernel gives its number to no other device meanwhile.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// DevNum returns the number of the open device: "8:16".
	DevNum() string
	Size() uint64
	BlockSize() int // logical
	// ReadMedium reads whole blocks from the medium, not from the page cache. ErrUnreadable: the drive
	// has answered, and some of it cannot be read.
	ReadMedium(p []byte, off int64) (int, error)
	// Path returns a path by which a program that Run starts opens this very device.
	Path() string
	// Sync returns when everything written is on the medium.
	Sync() error
	// Zero makes a range read as zeros; the drive itself does it where it can.
	Zero(ctx context.Context, off, n uint64) error
	// Discard tells the drive that a range is unused. What the range reads as then is undefined.
	// ErrUnsupported: the drive cannot discard.
	Discard(ctx context.Context, off, n uint64) error
	// SetReadOnly makes the kernel refuse writes to the device from every process.
	SetReadOnly(on bool) error
	// AddPartition, ResizePartition and RemovePartition make the kernel's view of one partition match
	// the partition table: the other partitions may be in use. It is no error if the kernel has the
	// partition like that already, or does not know the one to remove. ErrBusy: the partition is in
	// use.
	AddPartition(number int, start, size uint64) error
	ResizePartition(number int, start, size uint64) error
	RemovePartition(number int) error
}

// Place is a path below a root that the configuration names. No link below the root is followed and
// nothing leads out of it, even if a process swaps folders meanwhile (openat2
// RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS).
type Place struct {
	Root string // absolute, "/var/lib/kubelet"
	Name string // relative, clean, never ".."
}

// String returns the path as its caller wrote it.
func (p Place) String() string { return p.Root + "/" + p.Name }

// PlaceKind is the kind of file at a place.
type PlaceKind uint8

const (
	PlaceNothing PlaceKind = iota
	PlaceFolder
	PlaceFile
	PlaceDevice // a block device
	PlaceOther  // a link, a socket ...
)

// Mounter mounts filesystems and inspects mounts.
type Mounter interface {
	// Look returns what is at a place; it does not follow a link at the place itself either.
	Look(p Place) (PlaceKind, error)
	// MakeFolder and MakeFile make the last part of a place, mode 0750 and 0640; its parent folder
	// must exist. An existing folder is no error, and neither is an existing empty file.
	MakeFolder(p Place) error
	MakeFile(p Place) error
	// Remove removes an empty folder or an empty file that is not a mount point; a missing one is no
	// error. Everything else stays, with ErrOccupied or ErrBusy.
	Remove(p Place) error

	// Mount mounts the filesystem of a device on a folder. The device is a Disk.Path or a device node. Mount,
	// Bind and BindDevice attach nothing after ctx has ended, however late the kernel returns.
	Mount(ctx context.Context, m NewMount) error
	// Bind makes the mount or file at one place appear at another place of the same kind, read-only or
	// not. It is read-only before any process sees it there.
	Bind(ctx context.Context, from, to Place, readOnly bool) error
	// BindDevice makes a block device appear in place of a file.
	BindDevice(ctx context.Context, dev string, to Place, readOnly bool) error
	// Unmount removes the topmost mount of a place, never by force, never lazily. ErrBusy: it is in
	// use. ErrNotMounted: there is no mount.
	Unmount(ctx context.Context, p Place) error

	// Usage returns how full the filesystem at a place is.
	Usage(ctx context.Context, p Place) (FSUsage, error)
	// ReadFolder reads the entries of a folder and returns their count.
	ReadFolder(ctx context.Context, p Place) (int, error)
	// Grow makes the filesystem that is mounted at a place as large as its device.
	Grow(ctx context.Context, p Place, fs string) error
	// Trim makes the filesystem that is mounted at a place discard its free space on its device.
	// ErrUnsupported: the filesystem or the device cannot.
	Trim(ctx context.Context, p Place) error
	// TrimUnmounted is Trim for a filesystem that is not mounted. No process sees its mount, which is
	// gone when the call ends or our process dies. At is ignored.
	TrimUnmounted(ctx context.Context, m NewMount) error
}

// NewMount describes a filesystem to mount.
type NewMount struct {
	Device   string
	FS       string // ext4, xfs, btrfs
	At       Place
	ReadOnly bool
	Options  []string // of the mount or of the filesystem, as mount(8) writes them: noatime, discard ...
}

// FSUsage is how full a filesystem is.
type FSUsage struct {
	Bytes, Free, Available uint64 // Available: to users other than root
	Inodes, FreeInodes     uint64 // 0 if the filesystem has no fixed number
}
