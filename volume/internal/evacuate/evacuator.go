package evacuate

import (
	"github.com/drivebay/drivebay/volume/internal/copyaway"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/provision"
	"github.com/drivebay/drivebay/volume/internal/snapshots"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Evacuator moves volume groups off leaving drives.
type Evacuator struct {
	*env.Env
	Ledger     *ledger.Ledger
	Steps      *steps.Runner
	Partitions *partitions.Catalog
	Groups     *groups.Groups
	Moves      *moves.Tracker
	Device     *device.Opener
	Instances  *instances.Finder
	Inventory  *inventory.Inventory
	Erase      *erase.Eraser
	Write      *write.Writer
	Mirror     *mirror.Mirrors
	Provision  *provision.Provisioner
	Snapshots  *snapshots.Snapshotter
	CopyAway   *copyaway.Copier

	MovesLV chan struct{} // one volume moves at a time
}
