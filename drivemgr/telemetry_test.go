package drivemgr_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
)

// countingStore counts the writes of each drive's record.
type countingStore struct {
	*store.Mem
	mu     sync.Mutex
	writes map[string]int
}

func (c *countingStore) PutRecords(all map[string]drivebay.Record) error {
	c.mu.Lock()
	for id := range all {
		c.writes[id]++
	}
	c.mu.Unlock()
	return c.Mem.PutRecords(all)
}

// counted returns the writes since the last call.
func (c *countingStore) counted() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.writes
	c.writes = map[string]int{}
	return out
}

// crashed returns a store with what c has now: what a daemon finds after one that was killed.
func (c *countingStore) crashed(t *testing.T) *store.Mem {
	t.Helper()
	records, err := c.Records()
	st := store.Memory()
	if err == nil {
		err = st.PutRecords(records)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestTelemetryIsNotWritten: drives that only get older, warmer and fuller cause no write of their
// records at the polls, and one write a day. A counter that grew is written at the next poll, and
// after a crash the records are as good as those that were written at each poll.
func TestTelemetryIsNotWritten(t *testing.T) {
	st := &countingStore{Mem: store.Memory(), writes: map[string]int{}}
	onRack(t, 9, st, drivemgr.Options{Tick: time.Minute}, func(r *rig) {
		warm := r.pick(drivebay.ProtocolSCSI, 0)
		time.Sleep(30 * time.Minute) // all drives were read a second time
		st.counted()
		hours := *r.drive(warm.ID).PowerOnHours
		for hour := range 20 {
			r.inject(warm.Serial, "heat", fmt.Sprint("celsius=", 36+hour%5))
			time.Sleep(time.Hour)
		}
		if d := r.drive(warm.ID); *d.PowerOnHours < hours+19 || *d.Temperature == *warm.Temperature {
			r.Fatalf("the drive does not change: %d h, %d C", *d.PowerOnHours, *d.Temperature)
		}
		if n := st.counted(); len(n) > 0 {
			r.Errorf("records written in 20 h in which nothing changed: %v", n)
		}
		time.Sleep(24 * time.Hour)
		for id, n := range st.counted() {
			if n != 1 {
				r.Errorf("drive %s: %d writes of its telemetry in a day, want 1", id, n)
			}
		}
		d := r.pick(drivebay.ProtocolATA, 0)
		time.Sleep(12 * time.Hour)
		st.counted()
		r.inject(d.Serial, "crc", "n=3")
		time.Sleep(11 * time.Minute)
		if n := st.counted(); len(n) != 1 || n[d.ID] != 1 {
			r.Errorf("a counter of drive %s grew, and these were written: %v", d.ID, n)
		}
		time.Sleep(11 * time.Hour)
		r.afterCrash(st.crashed(t))
	})
}

// afterCrash compares a manager that starts with the records of a killed one with the manager that
// still runs.
func (r *rig) afterCrash(st *store.Mem) {
	r.Helper()
	next := drivemgr.New(r.sim, st, drivemgr.Options{})
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan error)
	go func() { done <- next.Run(ctx) }()
	time.Sleep(20 * time.Second)
	for _, was := range r.mgr.Snapshot().Drives {
		d, ok := next.Snapshot().Find(was.ID)
		if !ok || d.Health != was.Health || !d.FirstSeen.Equal(was.FirstSeen) || d.Evidence.At.Before(was.Evidence.At) {
			r.Errorf("drive %s after a crash: %+v, before it %+v", was.ID, d, was)
		}
	}
	for _, e := range next.Events(0, 0) {
		if e.Kind == drivebay.EventFinding || e.Kind == drivebay.EventHealth {
			r.Errorf("after a crash: %+v", e)
		}
	}
	cancel()
	if err := <-done; err != nil {
		r.Error(err)
	}
}
