package volume

import (
	"context"

	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// Tick is a round as the clock makes one.
func (e *Engine) Tick(ctx context.Context) {
	e.watch(ctx)
	e.publish()
}

// Adopting looks at the drives now, and takes in what it saw when it is called.
func (e *Engine) Adopting(ctx context.Context) (take func() error, err error) {
	s := e.drives.Snapshot()
	err = e.listVolumes(ctx, s)
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.index
	return func() error { return e.adoptFrom(ctx, s, x) }, err
}

// CopyProgress is how far the copy of a volume is, at this moment.
func (e *Engine) CopyProgress(id string) (done, total uint64, ok bool) {
	m := e.moves.of(id)
	if m == nil {
		return 0, 0, false
	}
	return m.copied.Load() / 2, m.total.Load(), m.total.Load() > 0
}

// Unlabelled is nil if nothing of LVM is on a drive.
func (e *Engine) Unlabelled(ctx context.Context, drive string) error { return e.unlabelled(ctx, drive) }

// AskTable asks a question about the table of a drive.
func (e *Engine) AskTable(ctx context.Context, drive string, f func() (bool, error)) (bool, error) {
	return e.queryTable(ctx, drive, func(context.Context, host.Disk, *gpt.Table) (bool, error) { return f() })
}

// Remembered counts what the engine and its lvm keep by volume, group or device.
func (e *Engine) Remembered() map[string]int {
	out := map[string]int{"endings of moves": len(e.moves.outcomes), "volume groups": e.lvm.ChangesUnderWay()}
	e.lanes.mu.Lock()
	out["lanes"] = len(e.lanes.by)
	e.lanes.mu.Unlock()
	e.counters.mu.Lock()
	out["gauges"] = len(e.counters.by)
	e.counters.mu.Unlock()
	e.scrubs.mu.Lock()
	out["checks"], out["causes of checks"] = len(e.scrubs.begun), len(e.scrubs.cause)
	e.scrubs.mu.Unlock()
	e.reports.Range(func(any, any) bool { out["reports"]++; return true })
	return out
}

// AddRange and CutRange change what is written down of a partition.
var (
	AddRange = addRange
	CutRange = cutRange
)
