// Package host accesses the machine: it is the only package that calls the kernel.
//
// Everything above it sees a Machine and cannot tell whether it is real, recorded or simulated. There
// is no other fake in the repository.
package host

import (
	"context"
	"io"
	"time"

	"github.com/drivebay/drivebay/internal/host/kernelevents"
)

// Machine is the access to a machine that drivebay needs.
type Machine interface {
	Files
	Clock

	// Describe returns the machine's name and kind.
	Describe() Description
	// OpenDrive opens a drive for queries. dev is a path such as "/dev/sda". It opens read-only and
	// without waiting for media; ctx bounds the opening where the kernel allows it.
	OpenDrive(ctx context.Context, dev string) (OpenDrive, error)
	// Run runs a program and returns its output. It never uses a shell.
	Run(ctx context.Context, argv ...string) ([]byte, error)
	// Mounts returns the mounts of the machine (of pid 1 where those can be read). Callers share the
	// slice and must not write to it.
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

// Files reads the machine's files. Names are relative to the machine's root and have no leading slash:
// "sys/block/sda/size". Links are followed as if the root were "/": none leads out of it. Errors are
// fs.ErrNotExist, fs.ErrPermission and similar.
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

// MaxFile bounds what ReadFile returns; a longer file is an error and is not cut.
const MaxFile = 4 << 20

// Clock is the machine's time. Code above host reads the time only from here.
type Clock interface {
	Now() time.Time
	// After is time.After on the machine's clock.
	After(d time.Duration) <-chan time.Time
}

// OpenDrive is an open drive that can be queried for pages. Pages are the closed list of queries in
// page.go, so that no query can write by accident. Calls on one OpenDrive come from one goroutine at a
// time; the caller must abandon a call that ctx cannot interrupt (the kernel blocks it).
type OpenDrive interface {
	io.ReaderAt
	io.Closer
	// Page returns one page. Errors wrap ErrUnsupported (the drive reports that it has no such page),
	// ErrStandby, ErrTimeout, ErrPermission, ErrGone or are I/O errors. A page is returned as the
	// drive sent it, checksums unchecked; it may be short.
	Page(ctx context.Context, p Page) ([]byte, error)
	// ReadMedium reads whole blocks from the medium, not from the page cache.
	ReadMedium(p []byte, off int64) (int, error)
	// SelfTest starts or aborts a self-test in the background of the drive.
	SelfTest(ctx context.Context, t SelfTest) error
}

// SelfTest is a self-test that a drive can run. The protocol is the one of the family: "ata", "nvme"
// or "scsi".
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

// The events that the kernel reports.
type (
	Uevent  = kernelevents.Uevent
	LogLine = kernelevents.LogLine
)
