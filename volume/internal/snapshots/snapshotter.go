package snapshots

import (
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/provision"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Snapshotter creates and deletes snapshots.
type Snapshotter struct {
	*env.Env
	Ledger    *ledger.Ledger
	Steps     *steps.Runner
	Instances *instances.Finder
	Inventory *inventory.Inventory
	Write     *write.Writer
	Provision *provision.Provisioner
}
