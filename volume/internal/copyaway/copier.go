package copyaway

import (
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/expand"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/provision"
	"github.com/drivebay/drivebay/volume/internal/replicated"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/watch"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Copier copies volumes off leaving drives.
type Copier struct {
	*env.Env
	Ledger     *ledger.Ledger
	Steps      *steps.Runner
	Partitions *partitions.Catalog
	Moves      *moves.Tracker
	Device     *device.Opener
	Instances  *instances.Finder
	Inventory  *inventory.Inventory
	Erase      *erase.Eraser
	Write      *write.Writer
	LUKS       *luks.Crypt
	Watch      *watch.Watcher
	Provision  *provision.Provisioner
	Expand     *expand.Expander
	DRBD       *replicated.Devices
}
