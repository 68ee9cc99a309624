package records

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/drivebay/drivebay"
)

// stillClock is a clock on which no time passes.
type stillClock struct{}

func (stillClock) Now() time.Time { return time.Time{} }

func (stillClock) After(time.Duration) <-chan time.Time { return nil }

// sick is a store whose disk fails until it is healed.
type sick struct {
	broken  bool
	records map[string]drivebay.Record
	events  []drivebay.Event
}

func (s *sick) err() error {
	if s.broken {
		return errors.New("no space left on device")
	}
	return nil
}

func (s *sick) Failing() error { return s.err() }

func (s *sick) Check() {}

func (s *sick) Records() (map[string]drivebay.Record, error) { return s.records, s.err() }

func (s *sick) PutRecords(r map[string]drivebay.Record) error {
	if s.broken {
		return s.err()
	}
	for id, rec := range r {
		s.records[id] = rec
	}
	return nil
}

func (s *sick) DeleteRecords(ids []string) error {
	for _, id := range ids {
		delete(s.records, id)
	}
	return s.err()
}

func (s *sick) AppendEvents(e []drivebay.Event) error {
	if s.broken {
		return s.err()
	}
	s.events = append(s.events, e...)
	return nil
}

func (s *sick) Events(uint64, int) ([]drivebay.Event, error) { return s.events, s.err() }

func (s *sick) LastEvent() (uint64, error) { return uint64(len(s.events)), s.err() }

// What cannot be written is said, kept, and written when the disk has room again.
func TestKeeperOutlivesAFullDisk(t *testing.T) {
	st := &sick{broken: true, records: map[string]drivebay.Record{"gone": {}}}
	k := New(st, slog.New(slog.DiscardHandler))
	k.Keep("a", drivebay.Record{Cordoned: true})
	k.Forget("gone")
	k.Add(drivebay.Event{Cause: "one"})
	k.flush()
	if k.Failing() == nil {
		t.Fatal("a full disk is no failure")
	}
	k.Keep("a", drivebay.Record{Cordoned: false, Usage: drivebay.UsageInUse})
	k.Add(drivebay.Event{Cause: "two"})
	st.broken = false
	k.flush()
	if err := k.Failing(); err != nil {
		t.Fatal(err)
	}
	if r := st.records["a"]; r.Cordoned || r.Usage != drivebay.UsageInUse {
		t.Errorf("the older state of a record won: %+v", r)
	}
	if _, there := st.records["gone"]; there {
		t.Error("a forgotten record is still there")
	}
	if len(st.events) != 2 || st.events[0].Seq != 1 || st.events[1].Seq != 2 {
		t.Errorf("events in the store: %+v", st.events)
	}
}

func TestKeeperEvents(t *testing.T) {
	k := New(nil, slog.New(slog.DiscardHandler))
	_, grew := k.Since(0, 0)
	for range maxEvents + 5 {
		k.Add(drivebay.Event{})
	}
	select {
	case <-grew:
	default:
		t.Error("waiters were not told")
	}
	all, _ := k.Since(0, 0)
	if len(all) != maxEvents || all[len(all)-1].Seq != maxEvents+5 {
		t.Errorf("%d events, last %d", len(all), all[len(all)-1].Seq)
	}
	some, _ := k.Since(maxEvents, 3)
	if len(some) != 3 || some[0].Seq != maxEvents+1 {
		t.Errorf("after %d: %+v", maxEvents, some)
	}
	if some, _ := k.Since(1, 0); len(some) != maxEvents || some[0].Seq != 6 {
		t.Errorf("after an event that is gone: %d, first %d", len(some), some[0].Seq)
	}
	if some, _ := k.Since(maxEvents+5, 0); some != nil {
		t.Errorf("after the last: %+v", some)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.Run(ctx, stillClock{}) // ends at once, and writes nothing to no store
}

// TestKeeperEventsCost: many volumes that turn abnormal at once are as many events, and a copy of all events for each of
// them took the CPU for minutes.
func TestKeeperEventsCost(t *testing.T) {
	k := New(nil, slog.New(slog.DiscardHandler))
	for range maxEvents {
		k.Add(drivebay.Event{})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range maxEvents {
		k.Add(drivebay.Event{})
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / maxEvents; each > 50*uint64(unsafe.Sizeof(drivebay.Event{})) {
		t.Errorf("%d bytes are allocated for an event", each)
	}
}

// racing is a store that fails, and has something happen while it is written.
type racing struct {
	sick
	meanwhile func()
}

func (r *racing) PutRecords(m map[string]drivebay.Record) error { return r.write(r.sick.PutRecords(m)) }

func (r *racing) DeleteRecords(ids []string) error {
	if r.broken {
		return r.write(r.err())
	}
	return r.write(r.sick.DeleteRecords(ids))
}

func (r *racing) write(err error) error {
	if f := r.meanwhile; f != nil {
		r.meanwhile = nil
		f()
	}
	return err
}

// TestKeeperNewestWins: what is kept or forgotten while an older state cannot be written
// is what the store has in the end.
func TestKeeperNewestWins(t *testing.T) {
	for name, kept := range map[string]bool{"back while its removal fails": true, "forgotten while its record fails": false} {
		st := &racing{sick: sick{broken: true, records: map[string]drivebay.Record{"d": {}}}}
		k := New(st, slog.New(slog.DiscardHandler))
		keep, forget := func() { k.Keep("d", drivebay.Record{Cordoned: true}) }, func() { k.Forget("d") }
		if kept {
			forget()
			st.meanwhile = keep
		} else {
			keep()
			st.meanwhile = forget
		}
		k.flush()
		st.broken = false
		k.flush()
		k.flush()
		if r, there := st.records["d"]; there != kept || r.Cordoned != kept {
			t.Errorf("%s: the store has %+v", name, st.records)
		}
	}
}

// unreadable is a store in which some reads fail.
type unreadable struct {
	sick
	recordsFail, lastFails, eventsFail error
}

func (u *unreadable) Records() (map[string]drivebay.Record, error) {
	if u.recordsFail != nil {
		return nil, u.recordsFail
	}
	return u.sick.Records()
}

func (u *unreadable) LastEvent() (uint64, error) {
	if u.lastFails != nil {
		return 0, u.lastFails
	}
	return u.sick.LastEvent()
}

func (u *unreadable) Events(after uint64, limit int) ([]drivebay.Event, error) {
	if u.eventsFail != nil {
		return nil, u.eventsFail
	}
	return u.sick.Events(after, limit)
}

// TestKeeperUnreadEvents: records are read although the events cannot be read, and no stored
// event is replaced by a new one with the same number.
func TestKeeperUnreadEvents(t *testing.T) {
	fails := errors.New("input/output error")
	for name, spoil := range map[string]func(*unreadable){
		"newest number": func(u *unreadable) { u.lastFails = fails },
		"events":        func(u *unreadable) { u.eventsFail = fails },
	} {
		st := &unreadable{sick: sick{records: map[string]drivebay.Record{"d": {}}, events: []drivebay.Event{{Seq: 1}, {Seq: 2}}}}
		spoil(st)
		k := New(st, slog.New(slog.DiscardHandler))
		if records, err := k.LoadRecords(); err != nil || len(records) != 1 {
			t.Errorf("%s: %d records, %v", name, len(records), err)
		}
		if err := k.LoadEvents(); !errors.Is(err, fails) {
			t.Errorf("%s: events: %v", name, err)
		}
		k.Keep("e", drivebay.Record{})
		k.Add(drivebay.Event{Cause: "new"})
		k.flush()
		for _, e := range st.events[2:] {
			if e.Seq < 3 {
				t.Errorf("%s: a new event has the number %d of a stored one", name, e.Seq)
			}
		}
		if len(st.records) != 2 {
			t.Errorf("%s: the store has %d records, want 2", name, len(st.records))
		}
		st.lastFails, st.eventsFail = nil, nil
		k.check()
		if got := st.events; len(got) != 3 || got[2].Seq != 3 || got[2].Cause != "new" {
			t.Errorf("%s: the store has the events %+v", name, got)
		}
		if got, _ := k.Since(0, 0); got[len(got)-1].Seq != 3 {
			t.Errorf("%s: readers have the events %+v", name, got)
		}
	}
}

// TestKeeperUnreadRecords: records that cannot be read are neither replaced nor deleted.
func TestKeeperUnreadRecords(t *testing.T) {
	st := &unreadable{sick: sick{records: map[string]drivebay.Record{"d": {Cordoned: true}, "e": {}}, events: []drivebay.Event{{Seq: 1}}}, recordsFail: errors.New("input/output error")}
	k := New(st, slog.New(slog.DiscardHandler))
	if _, err := k.LoadRecords(); !errors.Is(err, st.recordsFail) {
		t.Errorf("records: %v", err)
	}
	if err := k.LoadEvents(); err != nil {
		t.Error(err)
	}
	k.Keep("d", drivebay.Record{})
	k.Forget("e")
	k.Add(drivebay.Event{Cause: "new"})
	st.recordsFail = nil
	k.flush()
	k.check()
	if err := k.Stored(t.Context(), nil); err == nil {
		t.Error("a record that is not written counts as stored")
	}
	if len(st.records) != 2 || !st.records["d"].Cordoned {
		t.Errorf("the store has %+v", st.records)
	}
	if len(st.events) != 2 || st.events[1].Seq != 2 {
		t.Errorf("the store has the events %+v", st.events)
	}
}

// TestKeeperStoredWhileRetrying: what a retry is writing is not stored yet.
func TestKeeperStoredWhileRetrying(t *testing.T) {
	st := &sick{broken: true, records: map[string]drivebay.Record{}}
	k := New(st, slog.New(slog.DiscardHandler))
	k.Keep("a", drivebay.Record{})
	k.flush()
	k.mu.Lock()
	k.Records = map[string]*drivebay.Record{} // as while it is written
	k.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Stored(ctx, stillClock{}); err == nil {
		t.Error("it counts as stored")
	}
}
