package volume

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// A record store that was restored from a backup, or rolled back with its machine, is older than the
// drives. The content of the drives counts, and an event reports the older store.

// knownSince is how long before the engine a drive must have been known to prove that the store is
// from an earlier run.
const knownSince = time.Minute

// noteOlder reports that a volume which is adopted from a drive is newer than the store: a record
// names another volume of its id, or the store knew its drives and not the volume. It ignores a
// volume that was forgotten, or shown as found on a drive without a claim.
func (e *Engine) noteOlder(v *drivebay.Volume) {
	s := e.drives.Snapshot()
	older := e.recorded(v.ID) || slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		d, known := driveOf(s, id)
		return known && d.FirstSeen.Before(e.firstListedAt.Add(-knownSince))
	})
	if _, forgotten := e.wasForgotten(v.ID, v.Location); !older || forgotten {
		return
	}
	e.mu.Lock()
	if e.records[v.ID] == nil && slices.ContainsFunc(e.found, func(f drivebay.FoundVolume) bool { return f.ID == v.ID }) {
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	e.noteNewer(v, fmt.Sprintf("the record store knows drive %s and not this volume of it", strings.Join(v.Location.Drives, ", ")))
}

// noteNewer remembers that a volume is newer than the store, and sends an event for the first one.
func (e *Engine) noteNewer(v *drivebay.Volume, why string) {
	e.mu.Lock()
	first := len(e.newer) == 0
	e.newer[v.ID] = true
	e.mu.Unlock()
	if first {
		e.note(drivebay.EventStoreOlder, v, why+", as after a backup was restored or a machine rolled back: what the drives carry counts")
	}
}

// Newer returns the ids of the volumes that were adopted since the start because the record store was
// older than their drives.
func (e *Engine) Newer() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.newer))
}
