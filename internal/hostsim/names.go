package hostsim

import (
	"time"

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
