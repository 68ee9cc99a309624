// Package storetest is the one suite that every record store passes.
package storetest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// Store is what the engines need of a record store.
type Store interface {
	Records() (map[string]drivebay.Record, error)
	PutRecords(map[string]drivebay.Record) error
	DeleteRecords(ids []string) error
	AppendEvents([]drivebay.Event) error
	Events(after uint64, limit int) ([]drivebay.Event, error)
	LastEvent() (uint64, error)
	Volumes() (map[string]drivebay.VolumeRecord, error)
	PutVolume(drivebay.VolumeRecord) error
	DeleteVolume(id string) error
	VolumeSnapshots() (map[string]drivebay.SnapshotRecord, error)
	PutVolumeSnapshot(drivebay.SnapshotRecord) error
	DeleteVolumeSnapshot(id string) error
	Forgotten() (map[string]drivebay.ForgottenVolume, error)
	PutForgotten(drivebay.ForgottenVolume) error
	DeleteForgotten(key string) error
	Remains() (map[string]drivebay.Remains, error)
	PutRemains(drivebay.Remains) error
	DeleteRemains(partition string) error
	Close() error
}

// keptEvents is how many events a store must keep, and no more.
const keptEvents = 10_000

// Run shows that a store keeps what it promises. Each case opens an empty one.
func Run(t *testing.T, open func(t *testing.T) Store) {
	cases := map[string]func(*testing.T, Store){
		"empty":            testEmpty,
		"records":          testRecords,
		"record round":     testRecordRound,
		"caller's map":     testCallersMap,
		"all or none":      testAllOrNone,
		"delete":           testDelete,
		"events":           testEvents,
		"events twice":     testEventsTwice,
		"events bounded":   testEventsBounded,
		"events refused":   testEventsRefused,
		"volumes":          testVolumes,
		"volume snapshots": testVolumeSnapshots,
		"forgotten":        testForgotten,
		"remains":          testRemains,
		"used by many":     testConcurrent,
		"nothing to write": testNothing,
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			t.Cleanup(func() {
				if err := st.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			f(t, st)
		})
	}
}

// Record is a record with something in every part of it.
func Record(id string) drivebay.Record {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	temp, days := 41, 812.5
	return drivebay.Record{
		Drive: drivebay.Drive{
			ID: id, Name: "sda", Type: drivebay.TypeHDD, Transport: drivebay.TransportSAS, Protocol: drivebay.ProtocolSCSI,
			Identity: drivebay.Identity{Model: "a \u2028 <b> & \"c\"", Serial: "S-" + id, Size: math.MaxUint64},
			Paths:    []drivebay.Path{{Name: "sda", Dev: "/dev/sda"}},
			Health:   drivebay.HealthSuspect, Status: drivebay.StatusOffline, Temperature: &temp,
			Wear:      &drivebay.Wear{PercentUsed: 88, DaysLeft: &days},
			FirstSeen: at, LastSeen: at.Add(time.Hour),
		},
		History:   []drivebay.Sample{{At: at, Counters: map[string]uint64{"ATA5": math.MaxUint64}}},
		Memory:    drivebay.Memory{Findings: []drivebay.Finding{{Code: "X", Severity: drivebay.HealthBad, Since: at}}, Seen: map[string]int{"Y": 2}, Acked: map[string]uint64{"Z": 7}},
		Cordoned:  true,
		Claim:     &drivebay.Claim{By: drivebay.ClaimedByOperator, Since: at},
		Usage:     drivebay.UsageReleasing,
		LastShort: at,
	}
}

func events(from, to uint64) (out []drivebay.Event) {
	for seq := from; seq <= to; seq++ {
		out = append(out, drivebay.Event{Seq: seq, At: time.Unix(int64(seq), 0).UTC(), Kind: drivebay.EventHealth, Cause: fmt.Sprint("cause ", seq)})
	}
	return out
}

func testEmpty(t *testing.T, st Store) {
	if r := must(st.Records())(t); len(r) != 0 {
		t.Errorf("records of an empty store: %v", r)
	}
	if e := must(st.Events(0, 0))(t); len(e) != 0 {
		t.Errorf("events of an empty store: %v", e)
	}
	if last := must(st.LastEvent())(t); last != 0 {
		t.Errorf("last event of an empty store: %d", last)
	}
}

func testRecords(t *testing.T, st Store) {
	check(t, st.PutRecords(map[string]drivebay.Record{"a": Record("a"), "b": Record("b")}))
	changed := Record("b")
	changed.Cordoned = false
	check(t, st.PutRecords(map[string]drivebay.Record{"b": changed, "c": Record("c")}))
	want := map[string]drivebay.Record{"a": Record("a"), "b": changed, "c": Record("c")}
	if got := must(st.Records())(t); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func testRecordRound(t *testing.T, st Store) {
	for _, id := range []string{"naa-5000c500a1b2c3d4", "with/slash", "ünï code", strings.Repeat("x", 1000)} {
		check(t, st.PutRecords(map[string]drivebay.Record{id: Record(id)}))
		if got := must(st.Records())(t)[id]; !reflect.DeepEqual(got, Record(id)) {
			t.Errorf("%.20q: got %+v\nwant %+v", id, got, Record(id))
		}
	}
}

func testCallersMap(t *testing.T, st Store) {
	r := Record("a")
	check(t, st.PutRecords(map[string]drivebay.Record{"a": r}))
	r.Memory.Acked["Z"] = 8
	*r.Drive.Temperature = 99
	got := must(st.Records())(t)
	got["a"].History[0].Counters["ATA5"] = 0
	if again := must(st.Records())(t); !reflect.DeepEqual(again["a"], Record("a")) {
		t.Errorf("changing what was put or got changed the store: %+v", again["a"])
	}
}

func testAllOrNone(t *testing.T, st Store) {
	nan := math.NaN()
	bad := Record("bad")
	bad.Drive.Wear.DaysLeft = &nan
	err := st.PutRecords(map[string]drivebay.Record{"good": Record("good"), "bad": bad})
	if err == nil || !strings.Contains(err.Error(), "bad") {
		t.Errorf("a record that cannot be stored: error %v does not name it", err)
	}
	if err := st.PutRecords(map[string]drivebay.Record{"": Record("x"), "good": Record("good")}); !errors.Is(err, drivebay.ErrInvalid) {
		t.Errorf("a record without an id: %v", err)
	}
	if got := must(st.Records())(t); len(got) != 0 {
		t.Errorf("half of a refused batch was stored: %v", got)
	}
}

func testDelete(t *testing.T, st Store) {
	check(t, st.PutRecords(map[string]drivebay.Record{"a": Record("a"), "b": Record("b")}))
	check(t, st.DeleteRecords([]string{"a", "never there"}))
	if got := must(st.Records())(t); len(got) != 1 || got["b"].Drive.ID != "b" {
		t.Errorf("after deleting a: %v", got)
	}
}

func testEvents(t *testing.T, st Store) {
	check(t, st.AppendEvents(events(1, 5)))
	check(t, st.AppendEvents(events(6, 300)))
	cases := []struct {
		after       uint64
		limit       int
		first, last uint64
	}{
		{0, 0, 1, 300}, {0, -1, 1, 300}, {0, 7, 1, 7}, {5, 0, 6, 300}, {255, 2, 256, 257},
		{299, 10, 300, 300}, {300, 0, 0, 0}, {math.MaxUint64, 0, 0, 0},
	}
	for _, c := range cases {
		got := must(st.Events(c.after, c.limit))(t)
		var want []drivebay.Event
		if c.first > 0 {
			want = events(c.first, c.last)
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("after %d limit %d: got %d events, want %d..%d", c.after, c.limit, len(got), c.first, c.last)
		}
	}
	if last := must(st.LastEvent())(t); last != 300 {
		t.Errorf("last event %d, want 300", last)
	}
}

func testEventsTwice(t *testing.T, st Store) {
	check(t, st.AppendEvents(events(1, 5)))
	check(t, st.AppendEvents(events(3, 6)))
	if got := must(st.Events(0, 0))(t); !reflect.DeepEqual(got, events(1, 6)) {
		t.Errorf("a batch that was stored twice: %v", got)
	}
}

func testEventsBounded(t *testing.T, st Store) {
	check(t, st.AppendEvents(events(1, keptEvents)))
	if got := must(st.Events(0, 0))(t); len(got) != keptEvents {
		t.Fatalf("%d events kept, want %d", len(got), keptEvents)
	}
	check(t, st.AppendEvents(events(keptEvents+1, keptEvents+25)))
	got := must(st.Events(0, 0))(t)
	if len(got) != keptEvents || got[0].Seq != 26 || got[len(got)-1].Seq != keptEvents+25 {
		t.Errorf("kept %d events from %d on, want %d from 26 on", len(got), got[0].Seq, keptEvents)
	}
	check(t, st.AppendEvents(events(1_000_000, 1_000_000)))
	if got := must(st.Events(0, 0))(t); len(got) != 1 {
		t.Errorf("after a jump of the numbers %d events are kept, want 1", len(got))
	}
}

func testEventsRefused(t *testing.T, st Store) {
	batch := events(1, 3)
	batch[2].Seq = 0
	if err := st.AppendEvents(batch); !errors.Is(err, drivebay.ErrInvalid) {
		t.Errorf("an event without a number: %v", err)
	}
	if got := must(st.Events(0, 0))(t); len(got) != 0 {
		t.Errorf("half of a refused batch was stored: %v", got)
	}
}

func testConcurrent(t *testing.T, st Store) {
	const writers, rounds = 4, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				id := fmt.Sprintf("%d-%d", w, i)
				seq := uint64(w*rounds + i + 1)
				err := errors.Join(st.PutRecords(map[string]drivebay.Record{id: Record(id)}), st.AppendEvents(events(seq, seq)))
				_, rerr := st.Records()
				if _, eerr := st.Events(0, 0); errors.Join(err, rerr, eerr) != nil {
					t.Errorf("%s: %v", id, errors.Join(err, rerr, eerr))
				}
			}
		})
	}
	wg.Wait()
	if got := must(st.Records())(t); len(got) != writers*rounds {
		t.Errorf("%d records, want %d", len(got), writers*rounds)
	}
	if got := must(st.Events(0, 0))(t); !reflect.DeepEqual(got, events(1, writers*rounds)) {
		t.Errorf("%d events, want %d in order", len(got), writers*rounds)
	}
}

func testNothing(t *testing.T, st Store) {
	check(t, errors.Join(st.PutRecords(nil), st.DeleteRecords(nil), st.AppendEvents(nil)))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func testForgotten(t *testing.T, st Store) {
	a := drivebay.ForgottenVolume{ID: "a", Instance: "1", At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	b := drivebay.ForgottenVolume{ID: "a", Instance: "2", At: a.At, Replaced: true}
	check(t, st.PutForgotten(a))
	check(t, st.PutForgotten(b))
	check(t, st.PutForgotten(b))
	if got, want := must(st.Forgotten())(t), map[string]drivebay.ForgottenVolume{"a/1": a, "a/2": b}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	check(t, st.DeleteForgotten(a.Key()))
	check(t, st.DeleteForgotten(a.Key()))
	if got := must(st.Forgotten())(t); len(got) != 1 || !got["a/2"].Replaced {
		t.Errorf("one was dropped, left are %v", got)
	}
}

func testRemains(t *testing.T, st Store) {
	a := drivebay.Remains{Drive: "d", Partition: "p1", Ranges: []drivebay.RemainsRange{{Start: 1 << 20, Size: 4 << 20, Wipe: drivebay.WipeZero}}, Tries: 1}
	b := drivebay.Remains{Drive: "d", Partition: "p2"}
	check(t, st.PutRemains(a))
	check(t, st.PutRemains(b))
	if got, want := must(st.Remains())(t), map[string]drivebay.Remains{"p1": a, "p2": b}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	check(t, st.DeleteRemains("p2"))
	check(t, st.DeleteRemains("p2"))
	if got := must(st.Remains())(t); len(got) != 1 || got["p1"].Tries != 1 {
		t.Errorf("one was dropped, left are %v", got)
	}
}
