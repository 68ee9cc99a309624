package drivemgr

import (
	"context"
	"sync"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Look returns a snapshot of a machine without a daemon: it lists and reads every drive
// once and judges it. It changes and stores nothing. It waits for a drive without an
// answer as long as LookTimeout: the program could not end sooner, since no signal
// interrupts a command (block/blk-mq.c, blk_execute_rq), and a shorter timeout makes the
// kernel reset a drive that is just starting.
func Look(ctx context.Context, machine host.Machine, opt Options) (*drivebay.Snapshot, error) {
	m := New(machine, nil, opt)
	m.applyListing(m.listMachine(ctx, InventoryOptions{Loop: m.opt.Loop}))
	var wg sync.WaitGroup
	results := make(chan lookResult, len(m.drives))
	for _, t := range m.drives {
		d, l, r := t.drive, t.lane, lookResult{of: t, life: t.life, readContent: true}
		wg.Go(func() {
			r.looked = m.lookThrough(ctx, l, &d, true, nil, m.opt.LookTimeout)
			results <- r
		})
	}
	wg.Wait()
	close(results)
	for r := range results {
		m.applyLook(r)
	}
	m.publish()
	return m.Snapshot(), ctx.Err()
}
