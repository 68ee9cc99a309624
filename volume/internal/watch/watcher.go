package watch

import (
	"time"

	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Watcher holds what was last observed of each volume and drive.
type Watcher struct {
	*env.Env
	Ledger     *ledger.Ledger
	Steps      *steps.Runner
	MountTable *mounttable.Reader
	Partitions *partitions.Catalog
	Groups     *groups.Groups
	Moves      *moves.Tracker
	Device     *device.Opener
	Inventory  *inventory.Inventory
	Mounts     *mounts.Mounter

	changes    uint64
	eventsFrom time.Time              // no condition events are sent before
	LastMounts *mounttable.MountTable // mounts at the last tick
	reasons    map[string]reasonsSent // by volume; only the goroutine in Run uses it
	Scrubs     scrubs
	seenDrives map[string]*seenDrive
	seenSeq    uint64                  // of the drive snapshot that seenDrives is from
	Views      map[string]*ShownVolume // Inventory.ViewMu guards it, as LastMounts and the fields of drives

	Replications Replications
}
