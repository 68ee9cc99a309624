package adopt

import (
	"cmp"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/evacuate"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/snapshots"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Adopter takes volumes without a record into the records.
type Adopter struct {
	*env.Env
	Ledger     *ledger.Ledger
	Partitions *partitions.Catalog
	Moves      *moves.Tracker
	Instances  *instances.Finder
	Inventory  *inventory.Inventory
	Write      *write.Writer
	LUKS       *luks.Crypt
	Mounts     *mounts.Mounter
	Snapshots  *snapshots.Snapshotter
	Evacuate   *evacuate.Evacuator

	Adopting map[string]int // how many calls adopt a volume, by its id
}

// Missing returns the error for a volume or snapshot that no record names: ErrNotFound once
// every drive that may carry it was read, ErrUnavailable before.
func (e *Adopter) Missing(id string) error {
	if !ledger.IsID(id) { // no drive can carry it
		return fmt.Errorf("volume %q: %w", id, drivebay.ErrNotFound)
	}
	if r, is := e.Ledger.Snapshot(id); is && r.Work == nil { // what its drive has is no volume that waits for its record
		return fmt.Errorf("volume %q: %w: this is the id of a snapshot", id, drivebay.ErrNotFound)
	}
	if err := cmp.Or(e.Inventory.UnreadDrives(inventory.EveryDrive), e.unadopted(id), e.Inventory.RefuseSecond(id)); err != nil {
		return fmt.Errorf("volume %q: %w", id, err)
	}
	return fmt.Errorf("volume %q: %w", id, drivebay.ErrNotFound)
}
