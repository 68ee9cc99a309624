package erase

import (
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Eraser wipes extents.
type Eraser struct {
	*env.Env
	Ledger    *ledger.Ledger
	Steps     *steps.Runner
	Groups    *groups.Groups
	Device    *device.Opener
	Inventory *inventory.Inventory

	remainsMu   sync.Mutex            // held from the reading of remains to their writing
	wiping      atomic.Bool           // what volumes have left in free extents is being wiped
	failedWipes map[string]failedWipe // by group; only the goroutine that set wiping uses it
}
