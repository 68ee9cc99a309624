package host

import (
	"context"
	"io"
)

// Worker is a machine whose drives can be written to and mounted. It knows how,
// and asks no questions: what may be done to which drive is for package volume
// to say. A recorded machine is none.
type Worker interface {
	Machine
	Disks
	Mounter
	// RunInput is Run for a program that reads something from its standard input:
	// what nobody else may see, neither among its arguments nor in its environment.
	RunInput(ctx context.Context, input []byte, argv ...string) ([]byte, error)
}

// Disks opens block devices for writing.
type Disks interface {
	// OpenDisk opens a drive, a partition or a logical volume by its device node
	// ("/dev/sda1"). Alone, nobody else may have it: ErrBusy while it, or a
	// partition of it, is mounted or held.
	OpenDisk(ctx context.Context, dev string, alone bool) (Disk, error)
}

// Disk is an open block device. It stays the device that was opened, whatever
// becomes of its name: the kernel gives its number to nobody else meanwhile.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// DevNum is "8:16", of the open device itself.
	DevNum() string
	Size() uint64
	BlockSize() int // logical
	// ReadMedium is ReadAt of whole blocks past what the kernel keeps in memory.
	// ErrUnreadable: the drive has answered, and some of it cannot be read.
	ReadMedium(p []byte, off int64) (int, error)
	// Path leads a program that Run starts to this very device.
	Path() string
	// Sync returns when what was written is on the medium.
	Sync() error
	// Zero makes a range read as zeros, by the drive itself where it can.
	Zero(ctx context.Context, off, n uint64) error
	// Discard tells the drive that nobody needs a range; what it reads as then is
	// not known. ErrUnsupported where the drive cannot.
	Discard(ctx context.Context, off, n uint64) error
	// SetReadOnly makes the kernel refuse writes to the device, whoever has it open.
	SetReadOnly(on bool) error
	// AddPartition, ResizePartition and RemovePartition tell the kernel what the
	// partition table says now, for one partition: the others may be in use. One
	// that is known like that already is no error; nor is one that is not known to
	// be removed. ErrBusy: it is in use.
	AddPartition(number int, start, size uint64) error
	ResizePartition(number int, start, size uint64) error
	RemovePartition(number int) error
}

// Place is a path below a root that the configuration names. No link below the
// root is followed, and nothing leads out of it, whoever swaps folders meanwhile
// (openat2 RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS).
type Place struct {
	Root string // absolute, "/var/lib/kubelet"
	Name string // relative, clean, never ".."
}

// String is the path as its caller wrote it.
func (p Place) String() string { return p.Root + "/" + p.Name }

// PlaceKind says what is at a place.
type PlaceKind uint8

const (
	PlaceNothing PlaceKind = iota
	PlaceFolder
	PlaceFile
	PlaceDevice // a block device
	PlaceOther  // a link, a socket ...
)

// Mounter mounts, and looks at what is mounted.
type Mounter interface {
	// Look says what is at a place; the place itself is not followed either.
	Look(p Place) (PlaceKind, error)
	// MakeFolder and MakeFile make the last part of a place, mode 0750 and 0640;
	// the folder it is in must be there. What is there already is no error if it is
	// of that kind, and a file only if it is empty.
	MakeFolder(p Place) error
	MakeFile(p Place) error
	// Remove removes an empty folder or an empty file that is not mounted on; what is
	// not there is no error. Everything else stays, with ErrInTheWay or ErrBusy.
	Remove(p Place) error

	// Mount mounts the filesystem of a device on a folder. The device is a path of
	// Disk.Path or a device node.
	Mount(ctx context.Context, m NewMount) error
	// Bind makes what is mounted at (or is) one place appear at another of the same
	// kind, read-only or not. Nothing is seen there before it is read-only.
	Bind(ctx context.Context, from, to Place, readOnly bool) error
	// BindDevice makes a block device appear at a file.
	BindDevice(ctx context.Context, dev string, to Place, readOnly bool) error
	// Unmount takes away the topmost mount of a place; ErrBusy while it is used,
	// never by force, never lazily. ErrNotMounted: there is none.
	Unmount(ctx context.Context, p Place) error

	// Usage asks the filesystem at a place how full it is.
	Usage(ctx context.Context, p Place) (FSUsage, error)
	// ReadFolder reads the entries of a folder, and their count.
	ReadFolder(ctx context.Context, p Place) (int, error)
	// Grow makes the filesystem that is mounted at a place as large as its device.
	Grow(ctx context.Context, p Place, fs string) error
	// Trim has the filesystem that is mounted at a place tell its device what it has
	// no use for. ErrUnsupported: nothing there can be told.
	Trim(ctx context.Context, p Place) error
	// TrimUnmounted is Trim of a filesystem that is mounted nowhere, and nowhere to be
	// seen meanwhile: its mount is gone when the call ends, and when we do. At says
	// nothing.
	TrimUnmounted(ctx context.Context, m NewMount) error
}

// NewMount is a filesystem to be mounted.
type NewMount struct {
	Device   string
	FS       string // ext4, xfs, btrfs
	At       Place
	ReadOnly bool
	Options  []string // of the mount or of the filesystem, as mount(8) writes them: noatime, discard ...
}

// FSUsage is how full a filesystem is.
type FSUsage struct {
	Bytes, Free, Available uint64 // Available: to those who are not root
	Inodes, FreeInodes     uint64 // 0 where the filesystem has no fixed number
}
