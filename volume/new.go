package volume

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
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
	e := &Engine{
		machine: m, drives: d, store: st, lvm: system, opt: opt, log: opt.Log,
		changed: make(chan struct{}, 1),
		held:    map[string]bool{}, newer: map[string]bool{}, records: map[string]*drivebay.VolumeRecord{}, snapshots: map[string]*drivebay.SnapshotRecord{}, busy: map[string]chan struct{}{},
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.layouts = map[string]layout{}
	e.tables, e.listings, e.summaries = map[string][]gpt.Partition{}, map[string]uint64{}, map[string]partitionSummary{}
	e.groupMoves, e.removedFromGroup, e.movesLV = map[string]*groupMove{}, map[string]bool{}, make(chan struct{}, 1)
	e.set.Store(&drivebay.VolumeSet{})
	volumes, err := st.Volumes()
	if err != nil {
		return nil, fmt.Errorf("volumes: recall: %w", err)
	}
	for id, r := range volumes {
		r.Volume.Location = completed(r.Volume.Location, r.Volume.Created)
		e.records[id] = &r
	}
	snapshots, err := st.VolumeSnapshots()
	if err != nil {
		return nil, fmt.Errorf("snapshots of volumes: recall: %w", err)
	}
	for id, r := range snapshots {
		r.Snapshot.Location = completed(r.Snapshot.Location, r.Snapshot.Created)
		e.snapshots[id] = &r
	}
	if e.forgotten, err = st.Forgotten(); err != nil {
		return nil, fmt.Errorf("forgotten volumes: recall: %w", err)
	}
	d.BlockUnclaim(e.movingGroup)
	d.BlockForget(e.needsDrive)
	return e, nil
}
