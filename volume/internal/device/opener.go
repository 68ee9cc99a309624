package device

import (
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Opener opens the devices of volumes.
type Opener struct {
	*env.Env
	Ledger     *ledger.Ledger
	Steps      *steps.Runner
	MountTable *mounttable.Reader
	Partitions *partitions.Catalog
	Groups     *groups.Groups

	Piece func(*drivebay.Volume) Layer // makes the lowest layer of a volume
	Kinds []Kind                       // of the layers above, bottom up
}
