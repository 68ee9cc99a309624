package history

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
)

// shelf is a store in memory. It keeps the points as measured, and deletes none.
type shelf struct{ chunks []drivebay.HistoryChunk }

func (s *shelf) PutHistory(add []drivebay.HistoryChunk, _ [drivebay.HistoryLevels]time.Time) error {
	for _, c := range add {
		if c.Level == drivebay.HistoryFine {
			s.chunks = append(s.chunks, c)
		}
	}
	return nil
}

func (s *shelf) History(level drivebay.HistoryLevel, _, until time.Time, drive string) (out []drivebay.HistoryChunk, _ error) {
	for _, c := range s.chunks {
		if c.Level == level && (drive == "" || c.Drive == drive) && (until.IsZero() || c.Start.Before(until)) {
			out = append(out, c)
		}
	}
	return out, nil
}

// TestClockSetBack: a clock that was ahead when the daemon started, or for an hour, ends no recording once it is set back.
func TestClockSetBack(t *testing.T) {
	for name, ahead := range map[string][2]int{"at the start": {0, 1}, "for three hours": {100, 136}} { // steps at which it was ahead
		st := &shelf{}
		r := NewRecorder(st, Step)
		for i := range 600 {
			now := start.Add(time.Duration(i) * Step)
			if i >= ahead[0] && i < ahead[1] {
				now = now.AddDate(1, 0, 0)
			}
			r.Observe(&drivebay.Snapshot{At: now, Drives: []drivebay.Drive{{ID: "d", Status: drivebay.StatusOnline,
				Evidence: &drivebay.Evidence{Temperature: new(40)}}}})
			if err := r.Tick(now); err != nil {
				t.Fatal(err)
			}
		}
		points, err := r.Of("d")
		if err != nil {
			t.Fatal(err)
		}
		is := 0
		for _, p := range points {
			if p.At.Before(start.AddDate(0, 1, 0)) {
				is++
			}
		}
		if want := 600 - (ahead[1] - ahead[0]); is != want {
			t.Errorf("ahead %s: %d points, want %d", name, is, want)
		}
		if waiting := len(r.drives["d"].points); waiting > 24 {
			t.Errorf("ahead %s: %d points are not written", name, waiting)
		}
	}
}

// TestClockAhead: a clock that is ahead for some hours, also across a start, deletes no history. A quarter of a year later the store has no more than 90 days.
func TestClockAhead(t *testing.T) {
	st := store.Memory()
	at := start
	r := NewRecorder(st, Step)
	tick := func(ahead time.Duration) {
		at = at.Add(time.Hour)
		now := at.Add(ahead)
		r.Observe(&drivebay.Snapshot{At: now, Drives: []drivebay.Drive{{ID: "d", Status: drivebay.StatusOnline, Evidence: &drivebay.Evidence{Temperature: new(40)}}}})
		if err := r.Tick(now); err != nil {
			t.Fatal(err)
		}
	}
	days := func() int {
		points, err := r.Of("d")
		if err != nil {
			t.Fatal(err)
		}
		out := map[time.Time]bool{}
		for _, p := range points {
			if p.At.Before(start.AddDate(0, 8, 0)) {
				out[p.At.Truncate(day)] = true
			}
		}
		return len(out)
	}
	for range 60 * 24 {
		tick(0)
	}
	before := days()
	for _, ahead := range []time.Duration{365 * day, 3650 * day} {
		for range 3 {
			tick(ahead)
		}
		r = NewRecorder(st, Step)
		for range 3 {
			tick(ahead)
		}
	}
	tick(0)
	if is := days(); before < 58 || is < before {
		t.Errorf("%d days of history, %d before", is, before)
	}
	for range 120 * 24 {
		tick(0)
	}
	if is := days(); is < 85 || is > KeptDays+4 {
		t.Errorf("%d days of history after half a year", is)
	}
}
