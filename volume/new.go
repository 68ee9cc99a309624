package volume

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
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

// New makes an engine from the records in the store. Run continues interrupted work.
func New(m host.Worker, d Drives, st Store, system *lvm.System, opt Options) (*Engine, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if len(opt.Roots) == 0 {
		opt.Roots = []string{mounts.DefaultRoot}
	}
	if opt.Tick <= 0 {
		opt.Tick = 2 * time.Second
	}
	if opt.After == nil {
		opt.After = func(string, string) error { return nil }
	}
	e := newEngine()
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.wire(&env.Env{Machine: m, Drives: d, Store: st, LVM: system, Opt: opt, Log: opt.Log, Ctx: ctx, Running: &sync.WaitGroup{}})
	if err := e.recall(st); err != nil {
		return nil, err
	}
	d.BlockUnclaim(e.groups.MovingGroup)
	d.BlockRemoval(e.inventory.DependsOn)
	d.NamedBy(e.provision.NamedDrives)
	return e, nil
}

// wire makes the parts of the engine, each with those that it knows.
func (e *Engine) wire(at *env.Env) {
	e.env = at
	e.ledger = &ledger.Ledger{Env: at, Set: ledger.NewSets(), Held: map[string]bool{}, Records: map[string]*drivebay.VolumeRecord{}, Snapshots: map[string]*drivebay.SnapshotRecord{}, Busy: map[string]chan struct{}{}, RemovedFromGroup: map[string]bool{}, Changed: make(chan struct{}, 1)}
	e.steps = &steps.Runner{Env: at, Ledger: e.ledger}
	e.mounttable = &mounttable.Reader{Env: at, Ledger: e.ledger}
	e.capabilities = &capabilities.Prober{Env: at}
	e.partitions = &partitions.Catalog{Env: at, Ledger: e.ledger, Steps: e.steps, Layouts: map[string]partitions.Layout{}, Tables: map[string][]gpt.Partition{}, Listings: map[string]uint64{}, Last: map[string]partitions.LastListing{}}
	e.groups = &groups.Groups{Env: at, Ledger: e.ledger, Steps: e.steps, Capabilities: e.capabilities, Partitions: e.partitions, GroupMoves: map[string]*moves.GroupMove{}}
	e.moves = &moves.Tracker{Env: at}
	e.device = &device.Opener{Env: at, Ledger: e.ledger, Steps: e.steps, MountTable: e.mounttable, Partitions: e.partitions, Groups: e.groups}
	e.instances = &instances.Finder{Env: at, Ledger: e.ledger, MountTable: e.mounttable, Partitions: e.partitions, Groups: e.groups, NewerIDs: map[string]bool{}}
	e.inventory = &inventory.Inventory{Env: at, Ledger: e.ledger, Steps: e.steps, Capabilities: e.capabilities, Partitions: e.partitions, Groups: e.groups, Moves: e.moves, Instances: e.instances}
	e.erase = &erase.Eraser{Env: at, Ledger: e.ledger, Steps: e.steps, Groups: e.groups, Device: e.device, Inventory: e.inventory}
	e.write = &write.Writer{Env: at, Ledger: e.ledger, Steps: e.steps, Partitions: e.partitions, Groups: e.groups, Device: e.device, Instances: e.instances, Inventory: e.inventory, Erase: e.erase}
	e.mirror = &mirror.Mirrors{Env: at, Ledger: e.ledger, Partitions: e.partitions, Groups: e.groups, Device: e.device, Inventory: e.inventory, Erase: e.erase, Write: e.write}
	e.luks = &luks.Crypt{Env: at, Ledger: e.ledger, Steps: e.steps, Device: e.device, Erase: e.erase, Mirror: e.mirror, Moves: e.moves}
	e.mounts = &mounts.Mounter{Env: at, Ledger: e.ledger, Steps: e.steps, MountTable: e.mounttable, Partitions: e.partitions, Groups: e.groups, Device: e.device, Instances: e.instances, Inventory: e.inventory, Mirror: e.mirror, LUKS: e.luks}
	e.watch = &watch.Watcher{Env: at, Ledger: e.ledger, Steps: e.steps, MountTable: e.mounttable, Partitions: e.partitions, Groups: e.groups, Moves: e.moves, Device: e.device, Inventory: e.inventory, Mounts: e.mounts, Views: map[string]*watch.ShownVolume{}}
	e.provision = &provision.Provisioner{Env: at, Ledger: e.ledger, Steps: e.steps, Capabilities: e.capabilities, Partitions: e.partitions, Groups: e.groups, Device: e.device, Instances: e.instances, Inventory: e.inventory, Erase: e.erase, Write: e.write, Mirror: e.mirror, LUKS: e.luks, Mounts: e.mounts}
	e.snapshots = &snapshots.Snapshotter{Env: at, Ledger: e.ledger, Steps: e.steps, Instances: e.instances, Inventory: e.inventory, Write: e.write, Provision: e.provision}
	e.expand = &expand.Expander{Env: at, Ledger: e.ledger, Steps: e.steps, Groups: e.groups, Device: e.device, Instances: e.instances, Inventory: e.inventory, Write: e.write, Mirror: e.mirror, LUKS: e.luks, Mounts: e.mounts, Watch: e.watch, Provision: e.provision}
	e.drbd = &replicated.Devices{Env: at, Ledger: e.ledger, Steps: e.steps, Device: e.device, LUKS: e.luks, Partitions: e.partitions, Write: e.write, Instances: e.instances}
	e.replicated = &replicated.Replicator{Devices: e.drbd, Mounts: e.mounts, Watch: e.watch, Expand: e.expand}
	e.replications = &replicated.Observer{Devices: e.drbd, Inventory: e.inventory, Watch: e.watch, Provision: e.provision}
	e.copyaway = &copyaway.Copier{Env: at, Ledger: e.ledger, Steps: e.steps, Partitions: e.partitions, Moves: e.moves, Device: e.device, Instances: e.instances, Inventory: e.inventory, Erase: e.erase, Write: e.write, LUKS: e.luks, Watch: e.watch, Provision: e.provision, Expand: e.expand, DRBD: e.drbd}
	e.evacuate = &evacuate.Evacuator{Env: at, Ledger: e.ledger, Steps: e.steps, Partitions: e.partitions, Groups: e.groups, Moves: e.moves, Device: e.device, Instances: e.instances, Inventory: e.inventory, Erase: e.erase, Write: e.write, Mirror: e.mirror, Provision: e.provision, Snapshots: e.snapshots, CopyAway: e.copyaway, MovesLV: make(chan struct{}, 1)}
	e.adopt = &adopt.Adopter{Env: at, Ledger: e.ledger, Partitions: e.partitions, Moves: e.moves, Instances: e.instances, Inventory: e.inventory, Write: e.write, LUKS: e.luks, Mounts: e.mounts, Snapshots: e.snapshots, Evacuate: e.evacuate}
	e.repair = &repair.Repairer{Env: at, Ledger: e.ledger, Steps: e.steps, MountTable: e.mounttable, Partitions: e.partitions, Groups: e.groups, Device: e.device, Instances: e.instances, Inventory: e.inventory, Write: e.write, Mirror: e.mirror, LUKS: e.luks, Mounts: e.mounts, Watch: e.watch, Snapshots: e.snapshots, Replicas: e.replications}
	e.device.Piece, e.device.Kinds = e.expand.Piece, []device.Kind{e.drbd.Layer, e.luks.Layer}
	e.ledger.Publish, e.ledger.Missing, e.ledger.Acquire = e.publish, e.adopt.Missing, e.copyaway.BeginFirst
}

// recall reads the records. What they name is on this machine, also where it had another name before.
func (e *Engine) recall(st Store) error {
	volumes, err := st.Volumes()
	if err != nil {
		return fmt.Errorf("volumes: recall: %w", err)
	}
	for id, r := range volumes {
		r.Volume.Location = instances.Completed(r.Volume.Location, r.Volume.Created)
		r.Volume.Node, r.Work = e.env.Opt.Node, partitions.Recalled(&r)
		e.ledger.Records[id] = &r
	}
	snapshots, err := st.VolumeSnapshots()
	if err != nil {
		return fmt.Errorf("snapshots of volumes: recall: %w", err)
	}
	for id, r := range snapshots {
		r.Snapshot.Location = instances.Completed(r.Snapshot.Location, r.Snapshot.Created)
		r.Snapshot.Node, e.ledger.Snapshots[id] = e.env.Opt.Node, &r
	}
	if e.instances.Forgotten, err = st.Forgotten(); err != nil {
		return fmt.Errorf("forgotten volumes: recall: %w", err)
	}
	return nil
}
