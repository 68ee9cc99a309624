package tracking

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/replacement"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/lane"
)

// ListOptions returns what a listing shows and reads.
func (m *Tracker) ListOptions(skipEnclosures bool) inventory.Options {
	opt := inventory.Options{Loop: m.State.Opt.Loop, SkipEnclosures: skipEnclosures, Ours: m.State.Ours(), KeptLoops: map[string]bool{}}
	owners, _ := m.namedDrives()
	for id, t := range m.State.Drives {
		if t.Drive.Transport == drivebay.TransportLoop && t.Drive.Serial != "" && (t.Rec.Claim != nil || owners[id] != "") {
			opt.KeptLoops[t.Drive.Serial] = true
		}
	}
	return opt
}

// Relist lists the drives and their uses now, without reading enclosures.
func (m *Tracker) Relist(ctx context.Context) error {
	var opt inventory.Options
	if err := m.State.Do(ctx, func() error { opt = m.ListOptions(true); return nil }); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, replacement.RemoveTime)
	defer cancel()
	l, err := lane.Through(limited, lane.New(), m.State.Machine, func(ctx context.Context) (inventory.Listing, error) { return m.ListMachine(ctx, opt), nil })
	if err != nil {
		return fmt.Errorf("list the drives: %w", state.Translate(err))
	}
	return m.State.Do(ctx, func() error { m.ApplyListing(l); return nil })
}

// ListInBackground lists the machine in a goroutine: even sysfs can hang, since the LED
// file of an enclosure sends a command to it.
func (m *Tracker) ListInBackground(ctx context.Context, skipEnclosures bool) {
	opt := m.ListOptions(skipEnclosures)
	go func() {
		l := m.ListMachine(ctx, opt)
		select {
		case m.Listings <- l:
		case <-ctx.Done():
		}
	}()
}

// ListMachine lists the drives and mounts of the machine. It may wait for an enclosure.
func (m *Tracker) ListMachine(ctx context.Context, opt inventory.Options) inventory.Listing {
	began := m.State.NextMoment()
	mounts, err := m.State.Machine.Mounts(ctx)
	l := inventory.Observe(m.State.Machine, mounts, opt)
	l.Began = began
	if err != nil {
		l.Problems = append(l.Problems, "mount table: read failed, so uses and system drives may be missing: "+err.Error())
	}
	return l
}

// Refresh lists the machine now, and schedules a reading of all drives with their content.
func (m *Tracker) Refresh(ctx context.Context) error {
	var opt inventory.Options
	if err := m.State.Do(ctx, func() error { opt = m.ListOptions(false); return nil }); err != nil {
		return err
	}
	l := m.ListMachine(ctx, opt)
	return m.State.Do(ctx, func() error {
		m.ApplyListing(l)
		for _, t := range m.State.Drives {
			t.Fresh, t.NextReading = true, m.State.Machine.Now()
		}
		return nil
	})
}
