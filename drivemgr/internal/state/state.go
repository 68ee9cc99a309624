package state

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/records"
	"github.com/drivebay/drivebay/internal/host"
)

// State holds the drives of one machine. All packages below drivemgr share it.
type State struct {
	Machine host.Machine
	Keeper  *records.Keeper
	Log     *slog.Logger
	Calls   chan Call // functions for the owner's goroutine

	Current      atomic.Pointer[drivebay.Snapshot]
	removalBlock atomic.Pointer[func(drive string) string] // returns why a released drive may not be removed
	unclaimBlock atomic.Pointer[func(drive string) string] // returns why a claim has to stay
	SeqMu        sync.Mutex
	SeqGrew      chan struct{} // closed and replaced when Seq grows
	Moments      atomic.Uint64 // counts readings and changes to order them

	// The fields below belong to the goroutine of Run (or to ReadOnce, which has none).
	Opt     Options
	Drives  map[string]*Tracked
	Listing inventory.Listing
	Listed  bool                    // there was a listing
	events  []drivebay.Event        // published with the next snapshot
	Jobs    []func(context.Context) // to be started in goroutines: they may wait for a device
}

// Snapshot returns the newest state. It is never nil; Seq is 0 before the first listing.
func (m *State) Snapshot() *drivebay.Snapshot { return m.Current.Load() }

// Wait returns the first snapshot with a Seq after the given one.
func (m *State) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	for {
		m.SeqMu.Lock()
		grew := m.SeqGrew
		m.SeqMu.Unlock()
		if s := m.Snapshot(); s.Seq > after {
			return s, nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return m.Snapshot(), ctx.Err()
		}
	}
}

// QueueEvents queues events until the next snapshot, so that a reader of the event finds the drive. An
// event of a drive says where the drive is now: it may be pulled before the event is read.
func (m *State) QueueEvents(events ...drivebay.Event) {
	machine := m.Snapshot().Machine
	for _, e := range events {
		if t := m.Drives[e.Drive]; t != nil {
			e.Place = machine.Place(t.Drive.Slot)
		}
		m.events = append(m.events, e)
	}
}

// StoreEvents hands the queued events to the keeper, after the snapshot that shows them.
func (m *State) StoreEvents() {
	m.Keeper.Add(m.events...)
	m.events = nil
}

// HasSuccessor reports whether another drive has taken a drive's place.
func (m *State) HasSuccessor(id string) bool {
	for _, t := range m.Drives {
		if s := t.Rec.Succeeds; s != nil && s.Of == id && !s.Taken.IsZero() {
			return true
		}
	}
	return false
}

// DropSuccessor ends the succession of a drive that is used again: when it is removed once more, another drive can
// take its place.
func (m *State) DropSuccessor(id string) {
	for _, t := range m.Drives {
		if s := t.Rec.Succeeds; s != nil && s.Of == id && !s.Taken.IsZero() {
			t.Rec.Succeeds, t.Drive.Succeeds = nil, nil
			m.KeepRecord(t)
		}
	}
}

// NextMoment returns the next number in the order of readings and changes. A change wins over a
// reading that began before it, however late the reading ends.
func (m *State) NextMoment() uint64 { return m.Moments.Add(1) }

// StartJobs starts the pending jobs, which may wait for a device, in goroutines.
func (m *State) StartJobs(ctx context.Context) {
	for _, job := range m.Jobs {
		go job(ctx)
	}
	m.Jobs = nil
}

// Ours returns the present drives on which only drivebay content was read, and the claimed
// blank ones, which may get a drivebay partition at any moment.
func (m *State) Ours() map[string]bool {
	out := map[string]bool{}
	for _, t := range m.Drives {
		kind := t.Drive.Content.Kind
		if t.Present && (kind == drivebay.ContentOurs || kind == drivebay.ContentBlank && t.Rec.Claim != nil) {
			out[t.Drive.Name] = true
		}
	}
	return out
}
