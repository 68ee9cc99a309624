package kernellog

import (
	"maps"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Window holds the recent lines of the kernel log about one drive.
type Window struct {
	sectors map[uint64]Error // medium errors by sector, the newest of each
	Errors  []Error
	resets  []time.Time
	last    string
	number  uint64 // of the newest error
	turn    uint64 // the place at which the next proof begins
}

const (
	LogDay     = 24 * time.Hour
	maxLogKept = 1024 // a dying drive logs without end
)

// Add counts one line of the kernel log.
func (w *Window) Add(kind Kind, e Error, l host.LogLine) {
	w.last = l.Text
	w.number++
	e.number = w.number
	switch kind {
	case Medium:
		if w.sectors == nil {
			w.sectors = map[uint64]Error{}
		}
		e.Left = false // the drive answered
		if _, known := w.sectors[e.Sector]; known || len(w.sectors) < maxLogKept {
			w.sectors[e.Sector] = e
		}
	case Reset, Timeout:
		w.resets = append(w.resets, l.At)
	default:
		w.Errors = append(w.Errors, e)
	}
	w.resets, w.Errors = lastOf(w.resets), lastOf(w.Errors)
}

func lastOf[T any](list []T) []T { return list[max(0, len(list)-maxLogKept):] }

// Count writes the recent counts into k and drops what is too old.
func (w *Window) Count(k *drivebay.Kernel, now time.Time) {
	old := func(e Error) bool { return now.Sub(e.At) > LogDay }
	maps.DeleteFunc(w.sectors, func(_ uint64, e Error) bool { return old(e) && !e.provable() }) // a sector that can be read is read
	w.Errors = slices.DeleteFunc(w.Errors, func(e Error) bool { return now.Sub(e.At) > LogDay })
	w.resets = slices.DeleteFunc(w.resets, func(at time.Time) bool { return now.Sub(at) > time.Hour })
	k.MediaErrors24h, k.OtherErrors24h, k.Resets1h = 0, uint64(len(w.Errors)), uint64(len(w.resets))
	for _, e := range w.sectors {
		if !old(e) {
			k.MediaErrors24h++
		}
	}
	k.UnresolvedErrors = uint64(len(w.unresolved()))
	for s, e := range w.sectors {
		if e.Placed && !e.proved {
			k.BadSectors = append(k.BadSectors, s)
		}
	}
	slices.Sort(k.BadSectors)
	if len(w.sectors)+len(w.Errors)+len(w.resets) > 0 {
		k.LastLog = w.last
	}
}
