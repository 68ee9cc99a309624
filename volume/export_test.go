package volume

import (
	"context"
	"slices"

	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/erase"
)

// Tick is a round as the clock makes one.
func (e *Engine) Tick(ctx context.Context) {
	e.tick(ctx)
	e.publish()
}

// Adopting looks at the drives now, and takes in what it saw when it is called.
func (e *Engine) Adopting(ctx context.Context) (take func() error, err error) {
	s := e.env.Drives.Snapshot()
	err = e.listVolumes(ctx, s, true)
	e.ledger.Mu.Lock()
	defer e.ledger.Mu.Unlock()
	x := e.partitions.Index
	return func() error { return e.adopt.AdoptFrom(ctx, s, x) }, err
}

// CopyProgress is how far the copy of a volume is, at this moment.
func (e *Engine) CopyProgress(id string) (done, total uint64, ok bool) {
	m := e.moves.Moves.Of(id)
	if m == nil {
		return 0, 0, false
	}
	return m.Copied.Load() / 2, m.Total.Load(), m.Total.Load() > 0
}

// Unlabelled is nil if nothing of LVM is on a drive.
func (e *Engine) Unlabelled(ctx context.Context, drive string) error {
	return e.evacuate.Unlabelled(ctx, drive)
}

// AskTable asks a question about the table of a drive.
func (e *Engine) AskTable(ctx context.Context, drive string, f func() (bool, error)) (bool, error) {
	return e.write.QueryTable(ctx, drive, func(context.Context, host.Disk, *gpt.Table) (bool, error) { return f() })
}

// Remembered counts what the engine and its lvm keep by volume, group or device.
func (e *Engine) Remembered() map[string]int {
	out := map[string]int{"endings of moves": len(e.moves.Moves.Outcomes), "volume groups": e.env.LVM.ChangesUnderWay()}
	e.steps.Lanes.Mu.Lock()
	out["lanes"] = len(e.steps.Lanes.By)
	e.steps.Lanes.Mu.Unlock()
	e.mounts.Counters.Mu.Lock()
	out["gauges"] = len(e.mounts.Counters.By)
	e.mounts.Counters.Mu.Unlock()
	e.watch.Scrubs.Mu.Lock()
	out["checks"], out["causes of checks"] = len(e.watch.Scrubs.Begun), len(e.watch.Scrubs.Cause)
	e.watch.Scrubs.Mu.Unlock()
	e.groups.Reports.Range(func(any, any) bool { out["reports"]++; return true })
	return out
}

// AddRange and CutRange change what is written down of a partition.
var (
	AddRange = erase.AddRange
	CutRange = erase.CutRange
)

// InsertLayer puts a kind of layers into the stack of each volume, at a position above the piece.
func (e *Engine) InsertLayer(at int, k device.Kind) {
	e.device.Kinds = slices.Insert(slices.Clone(e.device.Kinds), at, k)
}
