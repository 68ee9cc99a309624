// Package host is the machine: the only place that touches a kernel.
//
// Everything above it sees a Machine and cannot tell whether it is real,
// recorded or simulated. There is no other fake in the repository.
package host

import (
	"context"
	"io"
	"time"
)

// Machine is what drivebay needs of a computer.
type Machine interface {
	Files
	Clock

	// Describe says whose drives these are.
	Describe() Description
	// OpenDrive opens a drive for questions. dev is a path such as "/dev/sda".
	// It opens read-only and without waiting for media; ctx bounds the opening
	// where the kernel lets it.
	OpenDrive(ctx context.Context, dev string) (Drive, error)
	// Run runs a program and returns its output. It never uses a shell.
	Run(ctx context.Context, argv ...string) ([]byte, error)
	// Mounts lists the mounts of the machine (of pid 1 where that can be read). The
	// list is one that others read as well: nobody writes into it.
	Mounts(ctx context.Context) ([]Mount, error)
	// Uevents delivers kernel uevents until ctx ends, then closes the channel.
	Uevents(ctx context.Context) (<-chan Uevent, error)
	// KernelLog delivers kernel log lines from now on until ctx ends.
	KernelLog(ctx context.Context) (<-chan LogLine, error)
}

// Description names a machine. Kind is "real", "recorded" or "simulated".
type Description struct {
	Name string
	Kind string
}

// Files reads the machine's files. Names are relative to the machine's root and
// carry no leading slash: "sys/block/sda/size". Links are followed as if the
// root were the whole world: none leads out of it. Errors are fs.ErrNotExist,
// fs.ErrPermission and friends.
type Files interface {
	// ReadFile returns a whole small file (at most MaxFile bytes).
	ReadFile(name string) ([]byte, error)
	// ReadDir returns the names in a folder, sorted.
	ReadDir(name string) ([]string, error)
	// Readlink returns a link's own text.
	Readlink(name string) (string, error)
	// Resolve follows every link and returns the canonical name below the root.
	Resolve(name string) (string, error)
	// WriteFile writes an attribute that exists already; it creates nothing.
	WriteFile(name string, data []byte) error
}

// MaxFile bounds what ReadFile returns; a longer file is an error, not a cut.
const MaxFile = 4 << 20

// Clock is the machine's time. Code above host takes the time from here only.
type Clock interface {
	Now() time.Time
	// After is time.After on the machine's clock.
	After(d time.Duration) <-chan time.Time
}

// Drive is an open drive that can be asked for pages. Pages are the closed list
// of questions in page.go: nothing that writes can be asked by accident.
// Calls on one Drive come from one goroutine at a time; a call that ctx cannot
// interrupt (the kernel holds it) is the caller's to abandon.
type Drive interface {
	io.ReaderAt
	io.Closer
	// Page asks for one page. Errors wrap ErrUnsupported (the drive says it has
	// no such page), ErrStandby, ErrTimeout, ErrPermission, ErrGone or are I/O
	// errors. A page is returned as the drive sent it, checksums unchecked; it
	// may be short.
	Page(ctx context.Context, p Page) ([]byte, error)
	// ReadMedium is ReadAt of whole blocks past what the kernel keeps in memory.
	ReadMedium(p []byte, off int64) (int, error)
	// SelfTest starts or aborts a self-test in the background of the drive.
	SelfTest(ctx context.Context, t SelfTest) error
}

// SelfTest is what a drive can be told to do to itself. The protocol is the one
// of the family: "ata", "nvme" or "scsi".
type SelfTest struct {
	Family Family
	Kind   SelfTestKind
}

// SelfTestKind is the kind of self-test.
type SelfTestKind string

const (
	SelfTestShort SelfTestKind = "short"
	SelfTestLong  SelfTestKind = "long"
	SelfTestAbort SelfTestKind = "abort"
)

// Mount is one line of the mount table.
type Mount struct {
	ID     int
	DevNum string // "8:2"; "0:35" for filesystems without a device of their own
	Root   string
	Target string
	FS     string
	Source string
	Opts   string // per mount and superblock options, comma-separated
}

// Uevent is one kernel uevent.
type Uevent struct {
	Action    string // add, remove, change, move, online, offline, bind, unbind
	Subsystem string // block, nvme, scsi ...
	DevPath   string // below /sys, "/devices/..."
	DevName   string // "sda"
	Env       map[string]string
	// Overflow means that events were lost: list everything again.
	Overflow bool
}

// LogLine is one line of the kernel log.
type LogLine struct {
	At       time.Time
	Priority int
	Text     string
	// Overflow means that lines were lost before this one.
	Overflow bool
}
