package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
)

// daemon is a store of events that a test stops, restarts and replaces.
type daemon struct {
	mu     sync.Mutex // guards all fields
	events []drivebay.Event
	down   bool
	grew   chan struct{}
}

// change changes the daemon, and wakes calls that wait.
func (d *daemon) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	close(d.grew)
	d.grew = make(chan struct{})
}

func (d *daemon) add(at int, cause string) {
	d.change(func() { d.events = append(d.events, event(uint64(len(d.events)+1), at, cause)) })
}

func event(seq uint64, at int, cause string) drivebay.Event {
	return drivebay.Event{Seq: seq, At: time.Unix(int64(at), 0), Kind: drivebay.EventLocate, Cause: cause}
}

var errAway = errors.New("no daemon answers")

func (d *daemon) Events(_ context.Context, after uint64, limit int) ([]drivebay.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return nil, errAway
	}
	var out []drivebay.Event
	for _, e := range d.events {
		if e.Seq > after && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (d *daemon) WaitEvents(ctx context.Context, after uint64) ([]drivebay.Event, error) {
	for {
		d.mu.Lock()
		grew := d.grew
		d.mu.Unlock()
		if list, err := d.Events(ctx, after, page); err != nil || len(list) > 0 {
			return list, err
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (d *daemon) stop() { d.change(func() { d.down = true }) }

// start starts the daemon with one event more.
func (d *daemon) start(at int, cause string) {
	d.change(func() {
		d.down = false
		d.events = append(d.events, event(uint64(len(d.events)+1), at, cause))
	})
}

// TestFollow: each event that a daemon keeps is returned once, also when the daemon restarts with the
// same store, with a store that is older or new, and without a call that failed.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := &daemon{grew: make(chan struct{})}
		d.add(1, "a")
		d.add(2, "b")
		f := New(d)
		var got, said []string
		take := func(list []drivebay.Event) error {
			for _, e := range list {
				got = append(got, e.Cause)
			}
			return nil
		}
		kept, err := f.Kept(ctx)
		if err != nil {
			t.Fatal(err)
		}
		take(kept)
		ended := make(chan error, 1)
		go func() {
			ended <- f.Follow(ctx, Away{func(err error) { said = append(said, err.Error()) }, func() { said = append(said, "back") }}, take)
		}()
		rest := func(want ...string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		d.add(3, "c")
		rest("a", "b", "c")

		d.stop() // the same store, with an event from before the end and one from after the start
		rest("a", "b", "c")
		d.start(4, "d")
		rest("a", "b", "c", "d")

		d.stop() // a backup of the store: the numbers from 3 on are given again
		d.change(func() { d.events = d.events[:2] })
		rest("a", "b", "c", "d")
		d.start(5, "e")
		rest("a", "b", "c", "d", "e")

		d.change(func() { // a new store, and no call failed; by a clock that went back
			d.events = []drivebay.Event{event(1, 0, "f")}
		})
		time.Sleep(pollTime)
		rest("a", "b", "c", "d", "e", "f")

		d.change(func() { // the daemon has read its records, and numbers its own events after those
			for i := range d.events {
				d.events[i].Seq += 10
			}
			d.events = append([]drivebay.Event{event(9, 1, "a"), event(10, 2, "b")}, d.events...)
			d.events = append(d.events, event(12, 6, "g"), event(13, 7, "h"))
		})
		rest("a", "b", "c", "d", "e", "f", "g", "h")
		if want := []string{errAway.Error(), "back", errAway.Error(), "back"}; !slices.Equal(said, want) {
			t.Errorf("said %v, want %v", said, want)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestFollowEnds: an error that another try cannot end, and a failed write, end it.
func TestFollowEnds(t *testing.T) {
	d := &daemon{grew: make(chan struct{})}
	d.add(1, "a")
	f := New(d)
	full := errors.New("disk full")
	if err := f.Follow(t.Context(), Away{}, func([]drivebay.Event) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if err := New(refusing{}).Follow(t.Context(), Away{}, nil); !errors.Is(err, drivebay.ErrPermission) {
		t.Error(err)
	}
}

type refusing struct{}

func (refusing) Events(context.Context, uint64, int) ([]drivebay.Event, error) {
	return nil, drivebay.ErrPermission
}
func (refusing) WaitEvents(context.Context, uint64) ([]drivebay.Event, error) {
	return nil, fmt.Errorf("events: %w", drivebay.ErrPermission)
}

// TestManyEvents: a store with more events than one page is read whole, and what is remembered has a
// bound.
func TestManyEvents(t *testing.T) {
	d := &daemon{grew: make(chan struct{})}
	for i := range maxSeen + 2*page {
		d.events = append(d.events, event(uint64(i+1), i, "x"))
	}
	f := New(d)
	if list, err := f.Kept(t.Context()); err != nil || len(list) != len(d.events) {
		t.Fatalf("%d of %d events, %v", len(list), len(d.events), err)
	}
	if len(f.seen) != maxSeen || len(f.order) != maxSeen {
		t.Errorf("%d and %d events are remembered", len(f.seen), len(f.order))
	}
}

// TestFilter: every field of a filter excludes what it says.
func TestFilter(t *testing.T) {
	list := []drivebay.Event{event(1, 100, "a"), {Seq: 2, At: time.Unix(200, 0), Kind: drivebay.EventHealth, Drive: "d1"}, {Seq: 3, At: time.Unix(300, 0), Kind: drivebay.EventVolumeCreated, Drive: "d1", Volume: "v1"}}
	kinds := []drivebay.EventKind{drivebay.EventHealth, drivebay.EventVolumeCreated}
	withKinds := func(words ...string) Filter {
		var f Filter
		if unknown := f.SetKinds(words, kinds); unknown != "" {
			t.Error(unknown)
		}
		return f
	}
	for _, row := range []struct {
		filter Filter
		want   []uint64
	}{
		{Filter{}, []uint64{1, 2, 3}},
		{Filter{Since: time.Unix(200, 0)}, []uint64{2, 3}},
		{withKinds("healthchanged"), []uint64{2}},
		{withKinds("HealthChanged", " volumecreated"), []uint64{2, 3}},
		{Filter{Drive: "d1"}, []uint64{2, 3}},
		{Filter{Volume: "v1", Since: time.Unix(301, 0)}, nil},
	} {
		var got []uint64
		for _, e := range row.filter.Apply(list) {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%+v: %v, want %v", row.filter, got, row.want)
		}
	}
	if unknown := new(Filter).SetKinds([]string{"HealthChanged", "Health"}, kinds); unknown != "Health" {
		t.Errorf("%q is the unknown kind", unknown)
	}
}

// TestParseSince: durations and times, with and without a zone.
func TestParseSince(t *testing.T) {
	zone := time.FixedZone("there", 2*3600)
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"1h": "2026-11-25T11:00:00+02:00", "90m": "2026-11-25T10:30:00+02:00", "2d": "2026-11-23T12:00:00+02:00", "1.5d": "2026-11-24T00:00:00+02:00", "0s": "2026-11-25T12:00:00+02:00",
		"2026-11-24": "2026-11-24T00:00:00+02:00", "2026-11-24T10:00": "2026-11-24T10:00:00+02:00", "2026-11-24 10:00": "2026-11-24T10:00:00+02:00", "2026-11-24T10:00:05": "2026-11-24T10:00:05+02:00",
		"2026-11-24T10:00:05Z": "2026-11-24T10:00:05Z", "2026-11-24 10:00:05Z": "2026-11-24T10:00:05Z", "2026-11-24T10:00Z": "2026-11-24T10:00:00Z", "2026-11-24T10:00:00+05:00": "2026-11-24T10:00:00+05:00",
	} {
		got, err := ParseSince(text, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s, %v; want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "-1h", "5", "d", "99999999d", "2026-13-01", "2026-11-24T25:00", "10:00"} {
		if got, err := ParseSince(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
