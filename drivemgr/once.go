package drivemgr

import (
	"context"
	"sync"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Look looks at a machine once, without a daemon: list, ask every drive, judge.
// It changes nothing and remembers nothing. A drive that answers nothing is waited
// for as long as a look may take: the program could not end sooner, since the kernel
// lets nobody interrupt a command (block/blk-mq.c, blk_execute_rq), and a command
// that is given less time has the kernel reset a drive that is only just starting.
func Look(ctx context.Context, machine host.Machine, opt Options) (*drivebay.Snapshot, error) {
	m := New(machine, nil, opt)
	m.take(m.observe(ctx, InventoryOptions{Loop: m.opt.Loop}))
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
		m.learn(r)
	}
	m.publish()
	return m.Snapshot(), ctx.Err()
}
