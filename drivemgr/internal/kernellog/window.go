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
	returns []time.Time // when the drive was back
	last    string
	number  uint64 // of the newest error
	marks   uint64 // grows with what becomes known of errors that are kept
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
		if _, known := w.sectors[e.Sector]; known || len(w.sectors) < maxLogKept || w.dropSector(e) {
			w.sectors[e.Sector] = e
		}
	case Reset, Timeout:
		w.resets = append(w.resets, l.At)
	default:
		e.proved = kind == Corruption // it is a finding of the volume with that filesystem, and the volumes beside it are sound
		w.Errors = append(w.Errors, e)
	}
	w.resets = w.resets[max(0, len(w.resets)-maxLogKept):]
	for len(w.Errors) > maxLogKept {
		i := slices.IndexFunc(w.Errors, func(e Error) bool { return e.proved })
		if i < 0 { // the oldest stand as well: what a drive logs while it is pulled ends when it is back, what it logged before may not
			i = maxLogKept / 2
		}
		w.Errors = slices.Delete(w.Errors, i, i+1)
	}
}

// AddReturn counts that the drive left by itself, or was given up by the kernel, and is back.
func (w *Window) AddReturn(now time.Time) {
	w.returns = append(w.returns[max(0, len(w.returns)+1-maxLogKept):], now)
}

// Returns returns how often the drive was back within a day.
func (w *Window) Returns(now time.Time) uint64 {
	w.returns = slices.DeleteFunc(w.returns, func(at time.Time) bool { return now.Sub(at) > LogDay })
	return uint64(len(w.returns))
}

// Changes grows with what is worth being stored.
func (w *Window) Changes() uint64 { return w.number + w.marks + uint64(len(w.returns)) }

// dropSector makes room for a medium error among those that are kept, and reports whether there is: one that is proved gone
// is dropped, else one for which another one of its kind at most a MiB before it stands. The proof of that one reads the dropped
// sector too, and volumes begin and end at whole MiB.
func (w *Window) dropSector(e Error) bool {
	type place struct {
		mib   uint64
		wrote bool
	}
	of := func(e Error) place { return place{e.Sector / (1 << 20 / 512), e.Wrote} }
	first := map[place]uint64{of(e): e.Sector}
	for s, o := range w.sectors {
		if o.proved {
			delete(w.sectors, s)
			return true
		}
		if at, known := first[of(o)]; !known || s < at {
			first[of(o)] = s
		}
	}
	if first[of(e)] != e.Sector {
		return false
	}
	for s, o := range w.sectors {
		if first[of(o)] != s {
			delete(w.sectors, s)
			return true
		}
	}
	return false
}

// Count writes the recent counts into k and drops what is too old.
func (w *Window) Count(k *drivebay.Kernel, now time.Time) {
	old := func(e Error) bool { return now.Sub(e.At) > LogDay }
	maps.DeleteFunc(w.sectors, func(_ uint64, e Error) bool { return old(e) && !e.provable() }) // a sector that can be read is read
	w.Errors = slices.DeleteFunc(w.Errors, func(e Error) bool { return now.Sub(e.At) > LogDay })
	w.resets = slices.DeleteFunc(w.resets, func(at time.Time) bool { return now.Sub(at) > time.Hour })
	k.MediaErrors24h, k.OtherErrors24h, k.LeftErrors, k.Resets1h = 0, uint64(len(w.Errors)), 0, uint64(len(w.resets))
	for _, e := range w.Errors {
		if e.Left && !e.failed {
			k.LeftErrors++
		}
	}
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
