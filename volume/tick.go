package volume

import (
	"context"

	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/watch"
)

// tick does the work of a tick: it reads the mount table once, and probes the
// filesystems whose minute is over.
func (e *Engine) tick(ctx context.Context) {
	e.mounts.Roots.Clear()
	if err := e.repair.LookAtMounts(ctx); err != nil {
		e.env.Log.Warn("mounts not listed", "op", "watch", "err", err)
		return
	}
	now := e.env.Machine.Now()
	e.inventory.ViewMu.Lock()
	defer e.inventory.ViewMu.Unlock()
	weighed := map[string]bool{}
	for _, r := range e.ledger.All() {
		if mirror.StagedAt(&r.Volume) == nil {
			e.watch.ProveUnused(ctx, r)
			continue
		}
		for _, id := range r.Volume.Location.Drives {
			weighed[id] = true
			e.watch.IOLoad(id)
		}
		seen := e.watch.Views[r.Volume.ID]
		if seen == nil || seen.Staged == nil || seen.Known.Record != r {
			continue
		}
		g := e.mounts.Counters.Of(r.Volume.ID)
		if read := e.watch.Due(&r.Volume, g.Read(), now); read != watch.NotDue {
			e.watch.Probe(ctx, r.Volume, seen.Staged, g, read == watch.ReadToo)
		}
	}
	e.watch.ForgetLoads(weighed)
	e.watch.ScrubDue(now)
}
