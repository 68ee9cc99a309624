package drivemgr

import (
	"context"

	"github.com/drivebay/drivebay"
)

// Events returns events after a sequence number, oldest first.
func (m *Manager) Events(after uint64, limit int) []drivebay.Event {
	out, _ := m.state.Keeper.Since(after, limit)
	return out
}

// WaitEvents returns the events after a sequence number and waits for the first.
func (m *Manager) WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error) {
	for {
		out, grew := m.state.Keeper.Since(after, 0)
		if len(out) > 0 {
			return out, nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
