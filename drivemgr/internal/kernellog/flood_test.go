package kernellog

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// flooded is a window that got more lines than it keeps.
type flooded struct {
	Window
	now time.Time
}

func (w *flooded) add(kind Kind, sector uint64, wrote bool) {
	w.Add(kind, Error{At: w.now, Sector: sector, Placed: true, Wrote: wrote}, host.LogLine{At: w.now, Text: "line"})
}

// proveAll ends the errors that a read of the whole drive ends.
func (w *flooded) proveAll() {
	p := w.ProofOf()
	got := Proved{places: map[uint64]bool{}, All: true}
	for _, at := range p.places {
		got.places[at] = true
	}
	w.Resolve(p, got)
}

func (w *flooded) count() *drivebay.Kernel {
	k := &drivebay.Kernel{}
	w.Count(k, w.now)
	return k
}

func newFlooded() *flooded {
	return &flooded{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// TestBadSectorAfterMany: sectors that can be read again leave room for one that cannot be read.
func TestBadSectorAfterMany(t *testing.T) {
	w := newFlooded()
	for i := range uint64(2 * maxLogKept) {
		w.add(Medium, i*4096, false)
	}
	w.proveAll()
	const bad = 1 << 30
	w.add(Medium, bad, false)
	if k := w.count(); !slices.Equal(k.BadSectors, []uint64{bad}) || k.UnresolvedErrors != 1 {
		t.Errorf("bad sectors %v, %d errors", k.BadSectors, k.UnresolvedErrors)
	}
}

// TestBadSectorsOfTwoVolumes: more bad sectors in one place than are kept do not hide one elsewhere, in the range of another volume.
func TestBadSectorsOfTwoVolumes(t *testing.T) {
	w := newFlooded()
	for i := range uint64(2 * maxLogKept) {
		w.add(Medium, 1<<20+8*i, false)
	}
	const bad = 1 << 30
	w.add(Medium, bad, false)
	w.add(Medium, 4096, false)
	k := w.count()
	if !slices.Contains(k.BadSectors, bad) || !slices.Contains(k.BadSectors, 4096) || len(k.BadSectors) != maxLogKept {
		t.Errorf("%d bad sectors, %d to %d", len(k.BadSectors), k.BadSectors[0], k.BadSectors[len(k.BadSectors)-1])
	}
	for at := uint64(1 << 20); at < 1<<20+8*2*maxLogKept; at += 2048 { // each MiB
		if !slices.ContainsFunc(k.BadSectors, func(s uint64) bool { return s >= at && s < at+2048 }) {
			t.Errorf("no bad sector is left of those from %d", at)
		}
	}
}

// TestFailedWriteBeforeFlood: the errors of a drive that is pulled do not push out a write that failed long before, which no read ends.
func TestFailedWriteBeforeFlood(t *testing.T) {
	w := newFlooded()
	w.add(IO, 4096, true)
	w.now = w.now.Add(time.Hour)
	for i := range uint64(3 * maxLogKept) {
		w.add(IO, 1<<20+8*i, true)
	}
	w.MarkLeft(w.now)
	w.proveAll()
	if k := w.count(); k.UnresolvedErrors != 1 {
		t.Errorf("%d errors stand", k.UnresolvedErrors)
	}
}
