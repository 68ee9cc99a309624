package volume

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// A record store that was restored from a backup, or rolled back with its machine, is older
// than the drives. What the drives carry counts; that the store is older is said.

// knownSince is how long before the engine a drive has to be known for the store to be one of
// an earlier run.
const knownSince = time.Minute

// noteOlder notices that a volume which is taken in from a drive is newer than the store: a
// record names another volume of its id, or the store knew its drives and not the volume. One
// that was forgotten, or shown as found on a drive without a claim, is no news.
func (e *Engine) noteOlder(v *drivebay.Volume) {
	s := e.drives.Snapshot()
	older := e.recorded(v.ID) || slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		d, known := driveOf(s, id)
		return known && d.FirstSeen.Before(e.began.Add(-knownSince))
	})
	if _, forgotten := e.wasForgotten(v.ID, v.Location); !older || forgotten {
		return
	}
	e.mu.Lock()
	if slices.ContainsFunc(e.found, func(f drivebay.FoundVolume) bool { return f.ID == v.ID }) {
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	e.noteNewer(v, fmt.Sprintf("the record store knows drive %s and not this volume of it", strings.Join(v.Location.Drives, ", ")))
}

// noteNewer says that a volume is newer than the store; an event says so of the first one.
func (e *Engine) noteNewer(v *drivebay.Volume, why string) {
	e.mu.Lock()
	first := len(e.newer) == 0
	e.newer[v.ID] = true
	e.mu.Unlock()
	if first {
		e.note(drivebay.EventStoreOlder, v, why+", as after a backup was restored or a machine rolled back: what the drives carry counts")
	}
}

// Newer are the volumes that were taken in since the start because the record store was older
// than their drives, by id.
func (e *Engine) Newer() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.newer))
}
