package history

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
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
