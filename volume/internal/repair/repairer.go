package repair

import (
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/replicated"
	"github.com/drivebay/drivebay/volume/internal/snapshots"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/watch"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Repairer repairs volumes.
type Repairer struct {
	*env.Env
	Ledger     *ledger.Ledger
	Steps      *steps.Runner
	MountTable *mounttable.Reader
	Partitions *partitions.Catalog
	Groups     *groups.Groups
	Device     *device.Opener
	Instances  *instances.Finder
	Inventory  *inventory.Inventory
	Write      *write.Writer
	Mirror     *mirror.Mirrors
	LUKS       *luks.Crypt
	Mounts     *mounts.Mounter
	Watch      *watch.Watcher
	Snapshots  *snapshots.Snapshotter
	Replicas   *replicated.Observer

	repairing autoRepairs
}
