package write

import (
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Writer changes partition tables and volume groups.
type Writer struct {
	*env.Env
	Ledger     *ledger.Ledger
	Steps      *steps.Runner
	Partitions *partitions.Catalog
	Groups     *groups.Groups
	Device     *device.Opener
	Instances  *instances.Finder
	Inventory  *inventory.Inventory
	Erase      *erase.Eraser
}
