package drivemgr

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Snapshot is the newest state. It is never nil; Seq is 0 before the first round.
func (m *Manager) Snapshot() *drivebay.Snapshot { return m.snapshot.Load() }

// Wait returns the first snapshot newer than after.
func (m *Manager) Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error) {
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

// publish makes the state of the owner's goroutine the snapshot that all read.
// Seq grows only when something other than the time has changed.
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
	defer m.tellEvents()
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

// tell has events told with the next snapshot: who hears of a drive finds it there.
func (m *Manager) tell(events ...drivebay.Event) { m.events = append(m.events, events...) }

func (m *Manager) tellEvents() {
	m.keeper.add(m.events...)
	m.events = nil
}

// Unready says what keeps us from being ready besides the first listing.
func (m *Manager) Unready() []string {
	if err := m.keeper.failing(); err != nil {
		return []string{"the record store cannot be written: " + err.Error()}
	}
	return nil
}

// followStore sends an event when the store turns unwritable, and when it recovers.
func (m *Manager) followStore() {
	was, now := m.storeFails, ""
	if err := m.keeper.failing(); err != nil {
		now = err.Error()
	}
	m.storeFails = now
	switch {
	case was == "" && now != "":
		m.log.Error("the record store cannot be written", "op", "store", "err", now)
		m.tell(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventStoreFailed, Cause: now})
	case was != "" && now == "":
		m.tell(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventStoreRecovered, Cause: "it can be written again; it could not: " + was})
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

// slowListing is how long a listing may take before that is worth a word.
const slowListing = 10 * time.Second
