package inventory

import (
	"sync"

	"github.com/drivebay/drivebay/volume/internal/capabilities"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Inventory holds what is known, and not yet known, about the content of drives.
type Inventory struct {
	*env.Env
	Ledger       *ledger.Ledger
	Steps        *steps.Runner
	Capabilities *capabilities.Prober
	Partitions   *partitions.Catalog
	Groups       *groups.Groups
	Moves        *moves.Tracker
	Instances    *instances.Finder

	complete          bool              // all drives of the machine and LVM's report of them were listed once
	firstListingEnded bool              // the first listing does not hold back readiness any more
	NotAdopted        map[string]error  // by drive: why volumes on it have no record yet
	Ready             bool              // the set may be read: the records of an earlier run were compared with the machine
	unlisted          map[string]string // by drive that is here: why its volumes are not known; "": they are known
	ViewMu            sync.Mutex        // guards the fields below: what the last tick found
}
