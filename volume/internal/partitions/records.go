package partitions

import (
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
)

// MoveOf returns the move of a volume that is running or was cut short.
func MoveOf(r *drivebay.VolumeRecord) *drivebay.Move {
	if r.Work == nil || r.Work.Op != drivebay.WorkMove {
		return nil
	}
	return r.Work.Move
}

// LostOf returns what a volume has lost once its move has ended, as far as a record knows that is older than the end of the move.
func LostOf(r *drivebay.VolumeRecord) *drivebay.Lost {
	if m := MoveOf(r); m != nil && m.Lost != nil {
		return m.Lost
	}
	return r.Volume.Lost
}

// AllAndBusy returns the records, the ids with work in progress, and how often the partitions
// of the drives have changed, at one moment.
func (e *Catalog) AllAndBusy() (all []*drivebay.VolumeRecord, busy map[string]bool, index uint64) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for id := range e.Ledger.Busy {
		if busy == nil {
			busy = make(map[string]bool, len(e.Ledger.Busy))
		}
		busy[id] = true
	}
	return e.Ledger.SortedRecords(), busy, e.Index.Changes
}

// SnapshotRecords returns the records of snapshots by id.
func (e *Catalog) SnapshotRecords() []*drivebay.SnapshotRecord {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return slices.Collect(maps.Values(e.Ledger.Snapshots))
}

// NeverWhole marks the work of a removal when the volume was never whole: nothing of it
// has to be on its drives.
const NeverWhole = "never whole"

// FoundHalf marks the work on a volume that was found half made or half removed when its record was lost. Which of the two it was is
// not known: it can have the data of a volume that was being removed.
const FoundHalf = "found half"

// IsFoundHalf reports whether a volume was found half made or half removed. A partition that an earlier version found has no mode.
func IsFoundHalf(r *drivebay.VolumeRecord) bool {
	return r.Work != nil && (slices.Contains(r.Work.Made, FoundHalf) || r.Work.Op == drivebay.WorkCreate && r.Volume.Mode == drivebay.ModeUnknown)
}

// Recalled returns the work of a record as it was stored. An earlier version recorded the work on a volume that it had found half made or half
// removed like a creation of its own, but for its time: a creation begins when its volume is recorded.
func Recalled(r *drivebay.VolumeRecord) *drivebay.Work {
	w := r.Work
	if w == nil || w.Op != drivebay.WorkCreate || w.Since.IsZero() || w.Since.Equal(r.Volume.Created) || IsFoundHalf(r) {
		return w
	}
	found := *w
	found.Made = append(slices.Clone(w.Made), FoundHalf)
	return &found
}

// WipeStep marks the work of a removal when the data is wiped: what is removed may be absent from then on.
const WipeStep = "wipe"

// MustBeThere reports whether a volume must be on its drives, whatever a listing shows.
// A volume that is being made may not be there yet, unless it was found, and a volume that is being removed
// may be gone once its data is wiped.
func MustBeThere(w *drivebay.Work) bool {
	switch {
	case w == nil:
		return true
	case w.Op == drivebay.WorkCreate:
		return slices.Contains(w.Made, FoundHalf)
	case w.Op == drivebay.WorkRemove:
		return !slices.Contains(w.Made, WipeStep) && !slices.Contains(w.Made, NeverWhole)
	}
	return true
}

// Devices returns the devices of the physical volumes that the report covers, by drive.
func (x *LVMIndex) Devices() map[string]string {
	if x == nil {
		return nil
	}
	return x.PVs
}
