package history

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

const (
	// FineFor is the age up to which points are kept as measured. KeptDays is how many days with points are kept at all, those included: days
	// are counted, not their age, because a clock that is ahead for an hour would else delete them all.
	FineFor  = 48 * time.Hour
	KeptDays = 90
	// Step is the interval of the points as measured.
	Step = 5 * time.Minute

	mostPending = 4096 // points of a drive in memory

	hour = time.Hour
	day  = 24 * time.Hour
)

// Store keeps chunks.
type Store interface {
	// PutHistory adds chunks and deletes those of each level that begin before a time, in one transaction.
	PutHistory(add []drivebay.HistoryChunk, before [drivebay.HistoryLevels]time.Time) error
	// History returns the chunks of a level that begin in an interval, oldest first, of one drive or of all ("").
	History(level drivebay.HistoryLevel, from, until time.Time, drive string) ([]drivebay.HistoryChunk, error)
}

// Recorder collects points in memory and writes those of all drives in one transaction an hour. A crash loses
// the last hour at most.
type Recorder struct {
	store Store
	step  time.Duration

	mu      sync.Mutex
	drives  map[string]*recorded
	flushed time.Time // when the points in memory were written last, in wall time
	tidied  time.Time // the day up to which points were thinned
}

// recorded holds the points of a drive that are not written yet, and the kernel's counters of the last
// measurement of its latency.
type recorded struct {
	points            []drivebay.HistoryPoint
	completed, waited uint64
	known             bool
}

// NewRecorder returns a recorder of points at intervals of a step.
func NewRecorder(store Store, step time.Duration) *Recorder {
	return &Recorder{store: store, step: step, drives: map[string]*recorded{}}
}

// Observe adds what a snapshot says of the drives that are online.
func (r *Recorder) Observe(s *drivebay.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flushed.IsZero() || s.At.Before(r.flushed) { // nothing was written yet, or the clock was set back
		r.flushed = s.At.Round(0)
	}
	for i := range s.Drives {
		if d := &s.Drives[i]; d.Status == drivebay.StatusOnline {
			r.observe(d, s.At)
		}
	}
}

func (r *Recorder) observe(d *drivebay.Drive, at time.Time) {
	of := r.drives[d.ID]
	if of == nil {
		of = &recorded{}
		r.drives[d.ID] = of
	}
	p := drivebay.HistoryPoint{At: at.Truncate(r.step), Latency: of.latency(d.Kernel)}
	if ev := d.Evidence; ev != nil && !ev.Standby {
		p.Temperature, p.PercentUsed = widened(ev.Temperature), widened(ev.PercentUsed)
		counters := health.Counters(ev, nil)
		p.Reallocated, p.MediaErrors = counted(health.Reallocated(counters)), counted(health.MediaErrors(counters))
	}
	if p == (drivebay.HistoryPoint{At: p.At}) {
		return
	}
	of.points = of.points[:pending(of.points, p.At.Add(1))] // later points are of a clock that was set back
	switch n := len(of.points); {
	case n > 0 && of.points[n-1].At.Equal(p.At):
		merge(&of.points[n-1], p)
	default:
		of.points = append(of.points, p)
		if len(of.points) > mostPending { // the store cannot be written
			of.points = slices.Delete(of.points, 0, mostPending/2)
		}
	}
}

// latency returns the mean time of the requests that completed since the last call.
func (r *recorded) latency(k *drivebay.Kernel) *int64 {
	if k == nil {
		return nil
	}
	completed, waited, known := r.completed, r.waited, r.known
	r.completed, r.waited, r.known = k.Completed, k.Waited, true
	if !known || k.Completed <= completed || k.Waited < waited {
		return nil
	}
	mean := int64((k.Waited - waited) * 1000 / (k.Completed - completed))
	return &mean
}

func widened(n *int) *int64 {
	if n == nil {
		return nil
	}
	v := int64(*n)
	return &v
}

func counted(n uint64, ok bool) *int64 {
	if !ok {
		return nil
	}
	v := int64(min(n, 1<<62))
	return &v
}

// Tick writes the points of the hours that have ended, once for each hour: no chunk reaches from one hour, or
// day, into the next.
func (r *Recorder) Tick(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flushed.IsZero() || !now.Truncate(hour).After(r.flushed) {
		return nil
	}
	return r.flush(now, now.Truncate(hour))
}

// Flush writes the points in memory.
func (r *Recorder) Flush(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flush(now, now.Add(r.step))
}

// flush writes the points before a time.
func (r *Recorder) flush(now, end time.Time) error {
	var add []drivebay.HistoryChunk
	for _, id := range slices.Sorted(maps.Keys(r.drives)) {
		points := r.drives[id].points
		if n := pending(points, end); n > 0 {
			add = append(add, chunk(id, drivebay.HistoryFine, points[:n]))
		}
	}
	until := now.Truncate(day).Add(-FineFor)
	before := [drivebay.HistoryLevels]time.Time{drivebay.HistoryFine: until}
	if !until.Equal(r.tidied) { // once a day, after a start, and after the clock was set
		old, err := r.store.History(drivebay.HistoryFine, time.Time{}, until, "")
		if err != nil {
			return err
		}
		add = append(add, coarse(old)...)
		kept, err := r.store.History(drivebay.HistoryCoarse, time.Time{}, time.Time{}, "")
		if err != nil {
			return err
		}
		before[drivebay.HistoryCoarse] = oldest(append(kept, add...))
	}
	if len(add) > 0 {
		if err := r.store.PutHistory(add, before); err != nil {
			return err
		}
	}
	r.flushed, r.tidied = now.Round(0), until
	for id, of := range r.drives {
		if len(of.points) == 0 { // offline for an hour: its memory ends
			delete(r.drives, id)
		}
		of.points = slices.Clone(of.points[pending(of.points, end):])
	}
	return nil
}

// oldest returns the first of the days that are kept with a point an hour; zero: all of these.
func oldest(chunks []drivebay.HistoryChunk) time.Time {
	const most = KeptDays - int(FineFor/day)
	days := map[time.Time]bool{}
	for _, c := range chunks {
		if c.Level == drivebay.HistoryCoarse {
			days[c.Start.Truncate(day)] = true
		}
	}
	if len(days) <= most {
		return time.Time{}
	}
	return slices.SortedFunc(maps.Keys(days), time.Time.Compare)[len(days)-most]
}

// pending returns how many points are before a time.
func pending(points []drivebay.HistoryPoint, end time.Time) int {
	return sort.Search(len(points), func(i int) bool { return !points[i].At.Before(end) })
}

func chunk(drive string, level drivebay.HistoryLevel, points []drivebay.HistoryPoint) drivebay.HistoryChunk {
	return drivebay.HistoryChunk{Drive: drive, Level: level, Start: points[0].At, Data: Encode(points)}
}

// coarse returns the chunks that take the place of fine ones: one for each drive and day. A damaged chunk is
// left out.
func coarse(fine []drivebay.HistoryChunk) (out []drivebay.HistoryChunk) {
	type dayOf struct {
		drive string
		day   time.Time
	}
	days := map[dayOf][]drivebay.HistoryPoint{}
	for _, c := range fine {
		points, err := Decode(c.Data)
		if err != nil {
			continue
		}
		for _, p := range points {
			key := dayOf{c.Drive, p.At.Truncate(day)}
			days[key] = append(days[key], p)
		}
	}
	for key, points := range days {
		out = append(out, chunk(key.drive, drivebay.HistoryCoarse, Thin(points, hour)))
	}
	slices.SortFunc(out, func(a, b drivebay.HistoryChunk) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Drive, b.Drive))
	})
	return out
}

// Of returns the history of a drive, oldest first, with the points in memory.
func (r *Recorder) Of(drive string) ([]drivebay.HistoryPoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []drivebay.HistoryPoint{}
	for level := drivebay.HistoryCoarse + 1; level > 0; level-- {
		chunks, err := r.store.History(level-1, time.Time{}, time.Time{}, drive)
		if err != nil {
			return nil, err
		}
		for _, c := range chunks {
			points, err := Decode(c.Data)
			if err != nil {
				continue // the rest of the history is still of use
			}
			out = append(out, points...)
		}
	}
	if of := r.drives[drive]; of != nil {
		out = append(out, of.points...)
	}
	return out, nil
}
