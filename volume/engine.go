package volume

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/adopt"
	"github.com/drivebay/drivebay/volume/internal/capabilities"
	"github.com/drivebay/drivebay/volume/internal/copyaway"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/evacuate"
	"github.com/drivebay/drivebay/volume/internal/expand"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/provision"
	"github.com/drivebay/drivebay/volume/internal/repair"
	"github.com/drivebay/drivebay/volume/internal/replicated"
	"github.com/drivebay/drivebay/volume/internal/snapshots"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/watch"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// Engine makes, mounts and watches the volumes of one machine. Its calls are in groups, as its callers use
// them.
type Engine struct {
	*parts
	controllerCalls
	nodeCalls
	snapshotCalls
	operatorCalls
	replicationCalls

	following atomic.Bool // volumes are being compared with their drives
	stop      context.CancelFunc
}

// The calls of the controller, of the node, for snapshots, and of operators.
type (
	controllerCalls struct{ *parts }
	nodeCalls       struct{ *parts }
	snapshotCalls   struct{ *parts }
	operatorCalls   struct{ *parts }
)

// parts do the work of the engine. They are in the order of the list in the documentation of the package:
// each knows those above it only.
type parts struct {
	env          *env.Env
	ledger       *ledger.Ledger
	steps        *steps.Runner
	mounttable   *mounttable.Reader
	capabilities *capabilities.Prober
	partitions   *partitions.Catalog
	groups       *groups.Groups
	moves        *moves.Tracker
	device       *device.Opener
	instances    *instances.Finder
	inventory    *inventory.Inventory
	erase        *erase.Eraser
	write        *write.Writer
	mirror       *mirror.Mirrors
	luks         *luks.Crypt
	mounts       *mounts.Mounter
	watch        *watch.Watcher
	provision    *provision.Provisioner
	snapshots    *snapshots.Snapshotter
	expand       *expand.Expander
	replicated   *replicated.Replicator
	replications *replicated.Observer
	drbd         *replicated.Devices
	copyaway     *copyaway.Copier
	evacuate     *evacuate.Evacuator
	adopt        *adopt.Adopter
	repair       *repair.Repairer
}

func newEngine() *Engine {
	p := &parts{}
	return &Engine{parts: p, controllerCalls: controllerCalls{p}, nodeCalls: nodeCalls{p}, snapshotCalls: snapshotCalls{p}, operatorCalls: operatorCalls{p}, replicationCalls: replicationCalls{p}}
}

// Drives, Store and Options are what New takes.
type (
	Drives  = env.Drives
	Store   = env.Store
	Options = env.Options
)

// Unwritten returns the ids of the volumes whose newest record is in memory only, sorted.
func (e *Engine) Unwritten() []string {
	return e.ledger.Unwritten()
}

// Volumes returns the newest set; never nil.
func (e *Engine) Volumes() *drivebay.VolumeSet {
	return e.ledger.Volumes()
}

// WaitVolumes returns the newest set once its number differs from after.
func (e *Engine) WaitVolumes(ctx context.Context, after uint64) (*drivebay.VolumeSet, error) {
	return e.ledger.Set.Wait(ctx, after)
}

// Capabilities returns what this machine can do beyond the basics. It runs "lvm version" until that says that LVM works.
func (e *Engine) Capabilities() drivebay.VolumeCapabilities {
	return e.capabilities.Capabilities()
}

// Lacking returns what keeps all volumes, or those of one filesystem, from being made or mounted on this
// machine, and what to do about it. A machine without LVM or cryptsetup lacks nothing: it does not offer
// what needs them.
func (e *Engine) Lacking() []string {
	return e.capabilities.Lacking()
}

// Newer returns the ids of the volumes that were adopted since the start because the record store was
// older than their drives.
func (e *Engine) Newer() []string {
	return e.instances.Newer()
}

// Listed returns nil when the records name all volumes of this machine. It ignores an
// unread drive on which the records have a volume.
func (e *Engine) Listed() error {
	return e.inventory.Listed()
}

// Unread returns why drives that may carry volumes without a record were not read, and whether the
// engine is ready: the first listing of all drives has ended. A drive that hangs or fails delays that
// by StartTime, one that is only slow by readyTime. Once ready, the engine stays ready.
func (e *Engine) Unread() (why []string, ready bool) {
	return e.inventory.Unread()
}

// ScrubVolume starts a check of a volume's filesystem. The volume's facts have the
// verdict when the check has ended.
func (e operatorCalls) ScrubVolume(ctx context.Context, id string) error {
	return e.watch.ScrubVolume(ctx, id)
}

// ForgetDrive forgets a drive that is OFFLINE and that no record names. No record is written
// meanwhile.
func (e operatorCalls) ForgetDrive(ctx context.Context, id, why string) error {
	return e.provision.ForgetDrive(ctx, id, why)
}

// Missing returns the error for a volume or snapshot that no record names: ErrNotFound once
// every drive that may carry it was read, ErrUnavailable before.
func (e controllerCalls) Missing(id string) error {
	return e.adopt.Missing(id)
}

// ClearVolume clears a failure if the volume is whole. It gives up a growth; a new request for it
// starts again. It also acknowledges what was lost on another drive, and drops mounts that are gone
// from the record.
func (e operatorCalls) ClearVolume(ctx context.Context, id string) error {
	return e.repair.ClearVolume(ctx, id)
}

// ForgetSnapshot drops the record of a snapshot whose drive is gone or does not show it.
func (e snapshotCalls) ForgetSnapshot(ctx context.Context, id string) error {
	return e.repair.ForgetSnapshot(ctx, id)
}

// ForgetVolume drops the record of a volume whose drives are gone or do not show it any more, and
// those of its snapshots: nothing else can be done to it. Nothing is wiped; the volume is found again
// if its drive comes back. The copy of the header of an encrypted volume stays: the drive may come
// back, or be read by a recovery service.
func (e operatorCalls) ForgetVolume(ctx context.Context, id string) error {
	return e.repair.ForgetVolume(ctx, id)
}

// Heal repairs a volume where it is used. It goes through the table of repairs in order, and does each one
// only if a diagnosis right before shows that it is needed. It finishes a repair that it has started, and
// starts none after the caller's time is over. Called again, it finds nothing to do, or continues.
func (e operatorCalls) Heal(ctx context.Context, r drivebay.HealRequest) (drivebay.HealReport, error) {
	return e.repair.Heal(ctx, r)
}

// RepairMarkdown writes the reference page of the repairs.
func RepairMarkdown(w io.Writer) error { return repair.RepairMarkdown(w) }
