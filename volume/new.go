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
	if opt.Tick <= 0 {
		opt.Tick = 2 * time.Second
	}
	if opt.After == nil {
		opt.After = func(string, string) error { return nil }
	}
	at := &env.Env{Machine: m, Drives: d, Store: st, LVM: system, Opt: opt, Log: opt.Log, Running: &sync.WaitGroup{}}
	x := &Engine{Env: at}
	at.Ctx, x.stop = context.WithCancel(context.Background())
	x.ledger = &ledger.Ledger{Env: at, Held: map[string]bool{}, Records: map[string]*drivebay.VolumeRecord{}, Snapshots: map[string]*drivebay.SnapshotRecord{}, Busy: map[string]chan struct{}{}, RemovedFromGroup: map[string]bool{}, Changed: make(chan struct{}, 1)}
	x.steps = &steps.Runner{Env: at, Ledger: x.ledger}
	x.mounttable = &mounttable.Reader{Env: at, Ledger: x.ledger}
	x.capabilities = &capabilities.Prober{Env: at}
	x.partitions = &partitions.Catalog{Env: at, Ledger: x.ledger, Steps: x.steps, Layouts: map[string]partitions.Layout{}, Tables: map[string][]gpt.Partition{}, Listings: map[string]uint64{}, Summaries: map[string]partitions.PartitionSummary{}}
	x.groups = &groups.Groups{Env: at, Ledger: x.ledger, Steps: x.steps, Capabilities: x.capabilities, Partitions: x.partitions, GroupMoves: map[string]*moves.GroupMove{}}
	x.moves = &moves.Tracker{Env: at}
	x.device = &device.Opener{Env: at, Ledger: x.ledger, Steps: x.steps, MountTable: x.mounttable, Partitions: x.partitions, Groups: x.groups}
	x.instances = &instances.Finder{Env: at, Ledger: x.ledger, MountTable: x.mounttable, Partitions: x.partitions, Groups: x.groups, NewerIDs: map[string]bool{}}
	x.inventory = &inventory.Inventory{Env: at, Ledger: x.ledger, Steps: x.steps, Capabilities: x.capabilities, Partitions: x.partitions, Groups: x.groups, Moves: x.moves, Instances: x.instances}
	x.erase = &erase.Eraser{Env: at, Ledger: x.ledger, Steps: x.steps, Groups: x.groups, Device: x.device, Inventory: x.inventory}
	x.write = &write.Writer{Env: at, Ledger: x.ledger, Steps: x.steps, Partitions: x.partitions, Groups: x.groups, Device: x.device, Instances: x.instances, Inventory: x.inventory, Erase: x.erase}
	x.mirror = &mirror.Mirrors{Env: at, Ledger: x.ledger, Partitions: x.partitions, Groups: x.groups, Device: x.device, Inventory: x.inventory, Erase: x.erase, Write: x.write}
	x.luks = &luks.Crypt{Env: at, Ledger: x.ledger, Steps: x.steps, Device: x.device, Erase: x.erase, Mirror: x.mirror}
	x.mounts = &mounts.Mounter{Env: at, Ledger: x.ledger, Steps: x.steps, MountTable: x.mounttable, Partitions: x.partitions, Groups: x.groups, Device: x.device, Instances: x.instances, Inventory: x.inventory, Mirror: x.mirror, LUKS: x.luks}
	x.watch = &watch.Watcher{Env: at, Ledger: x.ledger, Steps: x.steps, MountTable: x.mounttable, Partitions: x.partitions, Groups: x.groups, Moves: x.moves, Device: x.device, Inventory: x.inventory, Mounts: x.mounts}
	x.provision = &provision.Provisioner{Env: at, Ledger: x.ledger, Steps: x.steps, Capabilities: x.capabilities, Partitions: x.partitions, Groups: x.groups, Device: x.device, Instances: x.instances, Inventory: x.inventory, Write: x.write, Mirror: x.mirror, LUKS: x.luks, Mounts: x.mounts}
	x.snapshots = &snapshots.Snapshotter{Env: at, Ledger: x.ledger, Steps: x.steps, Instances: x.instances, Inventory: x.inventory, Write: x.write, Provision: x.provision}
	x.expand = &expand.Expander{Env: at, Ledger: x.ledger, Steps: x.steps, Groups: x.groups, Device: x.device, Instances: x.instances, Inventory: x.inventory, Write: x.write, Mirror: x.mirror, LUKS: x.luks, Mounts: x.mounts, Watch: x.watch, Provision: x.provision}
	x.copyaway = &copyaway.Copier{Env: at, Ledger: x.ledger, Steps: x.steps, Partitions: x.partitions, Moves: x.moves, Device: x.device, Instances: x.instances, Inventory: x.inventory, Erase: x.erase, Write: x.write, LUKS: x.luks, Watch: x.watch, Provision: x.provision, Expand: x.expand}
	x.evacuate = &evacuate.Evacuator{Env: at, Ledger: x.ledger, Steps: x.steps, Partitions: x.partitions, Groups: x.groups, Moves: x.moves, Device: x.device, Instances: x.instances, Inventory: x.inventory, Erase: x.erase, Write: x.write, Mirror: x.mirror, Provision: x.provision, Snapshots: x.snapshots, CopyAway: x.copyaway, MovesLV: make(chan struct{}, 1)}
	x.adopt = &adopt.Adopter{Env: at, Ledger: x.ledger, Partitions: x.partitions, Moves: x.moves, Instances: x.instances, Inventory: x.inventory, Write: x.write, LUKS: x.luks, Mounts: x.mounts, Snapshots: x.snapshots, Evacuate: x.evacuate}
	x.repair = &repair.Repairer{Env: at, Ledger: x.ledger, Steps: x.steps, MountTable: x.mounttable, Partitions: x.partitions, Groups: x.groups, Device: x.device, Instances: x.instances, Inventory: x.inventory, Write: x.write, Mirror: x.mirror, LUKS: x.luks, Mounts: x.mounts, Watch: x.watch, Snapshots: x.snapshots}
	e := x
	e.ledger.Publish, e.ledger.Missing, e.ledger.Acquire = e.publish, e.adopt.Missing, e.copyaway.BeginFirst
	e.ledger.Set.Store(&drivebay.VolumeSet{})
	volumes, err := st.Volumes()
	if err != nil {
		return nil, fmt.Errorf("volumes: recall: %w", err)
	}
	for id, r := range volumes {
		r.Volume.Location = instances.Completed(r.Volume.Location, r.Volume.Created)
		e.ledger.Records[id] = &r
	}
	snapshots, err := st.VolumeSnapshots()
	if err != nil {
		return nil, fmt.Errorf("snapshots of volumes: recall: %w", err)
	}
	for id, r := range snapshots {
		r.Snapshot.Location = instances.Completed(r.Snapshot.Location, r.Snapshot.Created)
		e.ledger.Snapshots[id] = &r
	}
	if e.instances.Forgotten, err = st.Forgotten(); err != nil {
		return nil, fmt.Errorf("forgotten volumes: recall: %w", err)
	}
	d.BlockUnclaim(e.groups.MovingGroup)
	d.BlockForget(e.provision.NeedsDrive)
	return e, nil
}
