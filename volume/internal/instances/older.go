package instances

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// A record store that was restored from a backup, or rolled back with its machine, is older than the
// drives. The content of the drives counts, and an event reports the older store.

// knownSince is how long before the engine a drive must have been known to prove that the store is
// from an earlier run.
const knownSince = time.Minute

// NoteOlder reports that a volume which is adopted from a drive is newer than the store: a record
// names another volume of its id, or the store knew its drives and not the volume. It ignores a
// volume that was forgotten, or shown as found on a drive without a claim.
func (e *Finder) NoteOlder(v *drivebay.Volume) {
	s := e.Drives.Snapshot()
	older := e.Recorded(v.ID) || slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		d, known := steps.DriveOf(s, id)
		return known && d.FirstSeen.Before(e.FirstListedAt.Add(-knownSince))
	})
	if _, forgotten := e.WasForgotten(v.ID, v.Location); !older || forgotten {
		return
	}
	e.Ledger.Mu.Lock()
	if e.Ledger.Records[v.ID] == nil && slices.ContainsFunc(e.Found, func(f drivebay.FoundVolume) bool { return f.ID == v.ID }) {
		e.Ledger.Mu.Unlock()
		return
	}
	e.Ledger.Mu.Unlock()
	e.NoteNewer(v, fmt.Sprintf("the record store knows drive %s and not this volume of it", strings.Join(v.Location.Drives, ", ")))
}

// NoteNewer remembers that a volume is newer than the store, and sends an event for the first one.
func (e *Finder) NoteNewer(v *drivebay.Volume, why string) {
	e.Ledger.Mu.Lock()
	first := len(e.NewerIDs) == 0
	e.NewerIDs[v.ID] = true
	e.Ledger.Mu.Unlock()
	if first {
		e.Ledger.Note(drivebay.EventStoreOlder, v, why+", as after a backup was restored or a machine rolled back: what the drives carry counts")
	}
}

// Newer returns the ids of the volumes that were adopted since the start because the record store was
// older than their drives.
func (e *Finder) Newer() []string {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return slices.Sorted(maps.Keys(e.NewerIDs))
}
