package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/history"
	"github.com/drivebay/drivebay/internal/store"
)

// rackAt is a snapshot of drives whose values change as those of real ones do.
func rackAt(drives int, at time.Time) *drivebay.Snapshot {
	s := &drivebay.Snapshot{Seq: 1, At: at}
	minutes := uint64(at.Unix() / 60)
	for i := range drives {
		temperature, used := 38+int(minutes/7+uint64(i))%6, 12
		s.Drives = append(s.Drives, drivebay.Drive{
			ID: fmt.Sprintf("eui-0025385a91%06d", i), Status: drivebay.StatusOnline,
			Evidence: &drivebay.Evidence{Temperature: &temperature, PercentUsed: &used, NVMe: &drivebay.NVMe{MediaErrors: uint64(i) + minutes/5000}},
			Kernel:   &drivebay.Kernel{Completed: minutes * 600, Waited: minutes * 70 * (7 + uint64(i)%3)},
		})
	}
	return s
}

// record runs a recorder for some time.
func record(t *testing.T, r *history.Recorder, drives int, from time.Time, length time.Duration) {
	t.Helper()
	for at := from; at.Before(from.Add(length)); at = at.Add(history.Step) {
		r.Observe(rackAt(drives, at))
		if err := r.Tick(at); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Flush(from.Add(length)); err != nil {
		t.Fatal(err)
	}
}

var historyStart = time.Date(2026, 3, 1, 7, 30, 0, 0, time.UTC)

// A hundred drives cost the disk less than 64 KiB an hour, checksums, tree and the thinning of old days
// included: each hour is one transaction, and its chunks are neighbors in the tree.
func TestHistoryWrites(t *testing.T) {
	st, err := store.Open(filepath.Join(t.TempDir(), "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	r := history.NewRecorder(st, history.Step)
	record(t, r, 100, historyStart, 72*time.Hour) // thinning has begun
	const hours = 96
	before := store.Written(st)
	record(t, r, 100, historyStart.Add(72*time.Hour), hours*time.Hour)
	hourly := (store.Written(st) - before) / hours
	t.Logf("%d bytes an hour", hourly)
	if hourly == 0 || hourly > 64<<10 {
		t.Errorf("%d bytes an hour", hourly)
	}
}

// After 100 days a drive has what the 90 newest were, at falling resolution, in much less than 1 MiB; the
// file does not grow any more.
func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	st, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { st.Close() }()
	r := history.NewRecorder(st, history.Step)
	record(t, r, 2, historyStart, 100*24*time.Hour)
	end := historyStart.Add(100 * 24 * time.Hour)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err = store.Open(path); err != nil { // after a restart
		t.Fatal(err)
	}
	id := rackAt(1, end).Drives[0].ID
	points, err := history.NewRecorder(st, history.Step).Of(id)
	if err != nil || len(points) == 0 {
		t.Fatal(err)
	}
	fine := 0
	for i, p := range points {
		if i > 0 && !p.At.After(points[i-1].At) {
			t.Fatalf("%v follows %v", p.At, points[i-1].At)
		}
		if p.Temperature == nil || p.MediaErrors == nil || p.PercentUsed == nil || p.Latency == nil && i > 0 {
			t.Fatalf("%+v", p)
		}
		if i > 0 && p.At.Sub(points[i-1].At) == history.Step {
			fine++
		}
	}
	oldest := end.Sub(points[0].At)
	if oldest < 89*24*time.Hour || oldest > 91*24*time.Hour || fine < 48*12-1 || fine > 73*12 || len(points) > 3000 {
		t.Errorf("%d points, %d of them fine, the oldest %v old", len(points), fine, oldest)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 2<<20 {
		t.Errorf("%v: the file of two drives has %d bytes", err, info.Size())
	}
	t.Logf("%d points a drive, %d bytes for two drives", len(points), info.Size())
}

// Both stores answer alike.
func TestHistoryStores(t *testing.T) {
	bolt, err := store.Open(filepath.Join(t.TempDir(), "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	for name, st := range map[string]history.Store{"bolt": bolt, "memory": store.Memory()} {
		r := history.NewRecorder(st, history.Step)
		record(t, r, 3, historyStart, 5*24*time.Hour)
		all := map[drivebay.HistoryLevel]int{}
		for level := range drivebay.HistoryLevels {
			chunks, err := st.History(level, time.Time{}, time.Time{}, "")
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range chunks {
				if c.Level != level || i > 0 && c.Start.Before(chunks[i-1].Start) {
					t.Errorf("%s: %+v", name, c)
				}
			}
			all[level] = len(chunks)
		}
		if all[drivebay.HistoryCoarse] != 3*3 || all[drivebay.HistoryFine] < 3*48 || all[drivebay.HistoryFine] > 3*73 {
			t.Errorf("%s: %v", name, all)
		}
		from, until := historyStart.Add(4*24*time.Hour), historyStart.Add(4*24*time.Hour+3*time.Hour)
		part, err := st.History(drivebay.HistoryFine, from, until, rackAt(2, from).Drives[1].ID)
		if err != nil || len(part) != 3 {
			t.Errorf("%s: %v: %d chunks in three hours", name, err, len(part))
		}
	}
}

// unwritable is a store that cannot be written for a time.
type unwritable struct {
	*store.Mem
	err error
}

func (f *unwritable) PutHistory(add []drivebay.HistoryChunk, before [drivebay.HistoryLevels]time.Time) error {
	if f.err != nil {
		return f.err
	}
	return f.Mem.PutHistory(add, before)
}

// What could not be written is written later.
func TestHistoryStoreFails(t *testing.T) {
	st := &unwritable{Mem: store.Memory(), err: errors.New("no space")}
	r := history.NewRecorder(st, history.Step)
	at := historyStart
	for range 40 {
		r.Observe(rackAt(1, at))
		at = at.Add(history.Step)
	}
	if err := r.Tick(at); !errors.Is(err, st.err) {
		t.Errorf("%v", err)
	}
	st.err = nil
	if err := r.Tick(at); err != nil {
		t.Error(err)
	}
	points, err := r.Of(rackAt(1, at).Drives[0].ID)
	if err != nil || len(points) != 40 {
		t.Errorf("%v: %d points", err, len(points))
	}
}
