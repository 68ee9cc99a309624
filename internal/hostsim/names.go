package hostsim

import (
	"context"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/faults"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// Names of the rooms that users of the package need.

// ManualClock is a clock that only Advance moves.
type ManualClock = kernel.ManualClock

// NewManualClock returns a clock set to t.
func NewManualClock(t time.Time) *ManualClock { return kernel.NewManualClock(t) }

// Kind is a kind of drive.
type Kind = model.Kind

const (
	KindNVMe    = model.KindNVMe
	KindSATAHDD = model.KindSATAHDD
	KindSATASSD = model.KindSATASSD
	KindSASHDD  = model.KindSASHDD
	KindSASSSD  = model.KindSASSSD
	KindVirtio  = model.KindVirtio
	KindUSB     = model.KindUSB
)

// EnclosureKind is what the bays are wired to.
type EnclosureKind = model.EnclosureKind

const (
	EnclosureSES = model.EnclosureSES // SAS expander with an enclosure processor: SAS and SATA drives
	EnclosurePCI = model.EnclosurePCI // hot-plug PCI Express slots: NVMe drives
)

// Age is the wear and the history of a drive.
type Age = model.Age

// Enclosure is a row of bays.
type Enclosure = block.Enclosure

// Group is one or more drives of a kind. With Bays there is one in each of the bays; with Count they
// have no bay (inside the case).
type Group = block.Group

// DriveStats counts the use of a drive.
type DriveStats = block.DriveStats

// Write is a change of the bytes of a drive, by any writer.
type Write = block.Write

// PageChange is a page of a drive before and after a write; nil is zeros.
type PageChange = block.PageChange

// PageSize is the size of the pages in a Write.
const PageSize = block.PageSize

// WriterFilesystem is the kernel as the writer of a mounted filesystem, WriterMirror as the writer of a
// mirror's legs (superblocks, and the copy from one leg to another), WriterMove as the writer of the copy
// that pvmove has begun, WriterFault a fault that was injected.
const (
	WriterFilesystem = block.WriterFilesystem
	WriterMirror     = block.WriterMirror
	WriterMove       = block.WriterMove
	WriterFault      = block.WriterFault
)

// As names the writer for disks that are opened with the context.
func As(ctx context.Context, name string) context.Context { return block.As(ctx, name) }

// Fault is a fault of a drive or of a filesystem.
type Fault = faults.Fault

// Args are the arguments of a fault.
type Args = faults.Args

// FaultDoc explains a fault.
type FaultDoc = faults.FaultDoc

// FaultNames lists all faults, the ones to try first at the top.
func FaultNames() []FaultDoc { return faults.FaultNames() }
