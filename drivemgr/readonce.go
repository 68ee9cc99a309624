package drivemgr

import (
	"context"
	"sync"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
)

// ReadOnce returns a snapshot of a machine without a daemon: it lists, reads and assesses every
// drive once. It changes and stores nothing. It waits up to ReadTimeout for a drive that does not
// answer: no signal interrupts a command (block/blk-mq.c, blk_execute_rq), and with a shorter
// timeout the kernel resets a drive that is spinning up.
func ReadOnce(ctx context.Context, machine host.Machine, opt Options) (*drivebay.Snapshot, error) {
	m := New(machine, nil, opt)
	m.tracking.ApplyListing(m.tracking.ListMachine(ctx, m.tracking.ListOptions(false)))
	var wg sync.WaitGroup
	results := make(chan state.Reading, len(m.state.Drives))
	for _, t := range m.state.Drives {
		d, l, r := t.Drive, t.Lane, state.Reading{Of: t, Life: t.Life, ReadContent: true}
		wg.Go(func() {
			r.Result = m.poll.ReadDrive(ctx, l, &d, true, nil, m.state.Opt.ReadTimeout)
			results <- r
		})
	}
	wg.Wait()
	close(results)
	for r := range results {
		m.poll.ApplyReading(r)
	}
	m.publish()
	return m.state.Snapshot(), ctx.Err()
}
