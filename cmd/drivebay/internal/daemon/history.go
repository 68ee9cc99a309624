package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/drivebay/drivebay/internal/history"
	"github.com/drivebay/drivebay/internal/store"
)

const (
	historyTick = time.Minute
	// A simulated machine ages in minutes.
	simulatedTick = 2 * time.Second
)

// newHistory returns the recorder of what is measured of the drives, and how often it looks at the snapshot.
func (d *daemon) newHistory(st *store.Bolt) (*history.Recorder, time.Duration) {
	if d.config.Sim != "" {
		return history.NewRecorder(st, simulatedTick), simulatedTick
	}
	return history.NewRecorder(st, history.Step), historyTick
}

// record records the history of the drives until ctx ends. A store that cannot be written is reported with
// the snapshot: the points stay in memory until it can.
func (d *daemon) record(ctx context.Context, r *history.Recorder, tick time.Duration) error {
	for {
		if s := d.engine.Snapshot(); s.Seq > 0 {
			r.Observe(s)
		}
		if err := r.Tick(d.machine.Now()); err != nil {
			d.log.Debug("the history was not written", "op", "history", "err", err)
		}
		select {
		case <-d.machine.After(tick):
		case <-ctx.Done():
			if err := r.Flush(d.machine.Now()); err != nil {
				return errors.Join(errors.New("the history of the drives was not written"), err)
			}
			return nil
		}
	}
}
