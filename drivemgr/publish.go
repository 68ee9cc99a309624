package drivemgr

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Snapshot returns the newest state. It is never nil; Seq is 0 before the first listing.
func (m *fleetT) Snapshot() *drivebay.Snapshot { return m.snapshot.Load() }

// Wait returns the first snapshot with a Seq after the given one.
func (m *fleetT) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
	for {
		m.seqMu.Lock()
		grew := m.seqGrew
		m.seqMu.Unlock()
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

// publish makes the state of the owner's goroutine the snapshot for all readers. Seq
// grows only when something other than the time has changed.
func (m *Manager) publish() {
	if !m.listed {
		return
	}
	m.findCopies()
	old := m.Snapshot()
	next := &drivebay.Snapshot{
		Seq: old.Seq, At: m.machine.Now(), Machine: old.Machine,
		Complete: m.listing.Complete,
		Drives:   make([]drivebay.Drive, 0, len(m.drives)),
		Bays:     m.listing.Bays,
		Problems: m.allProblems(), StoreFailing: m.storeFails,
	}
	for _, t := range m.drives {
		next.Drives = append(next.Drives, t.drive)
	}
	slices.SortFunc(next.Drives, func(a, b drivebay.Drive) int { return strings.Compare(a.ID, b.ID) })
	changed := old.Seq == 0 || old.Complete != next.Complete || !slices.Equal(old.Problems, next.Problems) ||
		!slices.Equal(old.Bays, next.Bays) || !reflect.DeepEqual(old.Drives, next.Drives)
	defer m.storeEvents()
	if !changed {
		next.Drives, next.Bays = old.Drives, old.Bays
		m.snapshot.Store(next)
		return
	}
	next.Seq++
	next.Bays = slices.Clone(next.Bays)
	m.snapshot.Store(next)
	m.seqMu.Lock()
	close(m.seqGrew)
	m.seqGrew = make(chan struct{})
	m.seqMu.Unlock()
}

// queueEvents queues events until the next snapshot, so that a reader of the event finds the drive.
func (m *fleetT) queueEvents(events ...drivebay.Event) { m.events = append(m.events, events...) }

func (m *fleetT) storeEvents() {
	m.keeper.add(m.events...)
	m.events = nil
}

// Unready returns what prevents readiness besides a missing first listing.
func (m *Manager) Unready() []string {
	var out []string
	if err := m.keeper.unread(); err != nil {
		out = append(out, unreadRecords(err))
	}
	if err := m.keeper.failing(); err != nil {
		out = append(out, "the record store cannot be written: "+err.Error())
	}
	return out
}

// followStore adds an event when the store becomes unwritable, and when it recovers.
func (m *Manager) followStore() {
	was, now := m.storeFails, ""
	if err := m.keeper.failing(); err != nil {
		now = err.Error()
	}
	m.storeFails = now
	switch {
	case was == "" && now != "":
		m.log.Error("the record store cannot be written", "op", "store", "err", now)
		m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventStoreFailed, Cause: now})
	case was != "" && now == "":
		m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventStoreRecovered, Cause: "it can be written again; it could not: " + was})
	}
}

func (m *Manager) allProblems() []string {
	all := slices.Concat(m.problems, m.listing.Problems)
	if err := m.keeper.failing(); err != nil {
		all = append(all, "the record store cannot be written, what happens now may not outlive the daemon: "+err.Error())
	}
	if s := m.listingSince; !s.IsZero() && m.machine.Now().Sub(s) > slowListing {
		all = append(all, "listing the drives has not ended since "+s.UTC().Format(time.RFC3339)+": an enclosure or a controller may hang")
	}
	return all
}

// slowListing is how long a listing may take before it is reported as a problem.
const slowListing = 10 * time.Second
