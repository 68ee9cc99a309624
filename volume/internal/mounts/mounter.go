package mounts

import (
	"sync"

	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Mounter stages and publishes volumes.
type Mounter struct {
	*env.Env
	Ledger     *ledger.Ledger
	Steps      *steps.Runner
	MountTable *mounttable.Reader
	Partitions *partitions.Catalog
	Groups     *groups.Groups
	Device     *device.Opener
	Instances  *instances.Finder
	Inventory  *inventory.Inventory
	Mirror     *mirror.Mirrors
	LUKS       *luks.Crypt

	Counters ioCountersByVolume
	Roots    sync.Map // configured root -> the path it resolves to; for one tick
}
