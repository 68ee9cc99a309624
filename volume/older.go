package volume

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
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

// movedSince corrects records that are older than a move of their group: where LVM shows all
// of the group, and some of it on a drive that no record of it names and for which its physical
// volume was made, it is where LVM shows it. Which leg of a mirror is the newest, its superblocks say anew.
func (e *Engine) movedSince(ctx context.Context, g *lvm.Group, l drivebay.Location) error {
	if h := e.herds()[l.VG]; h == nil || !h.elsewhere(g, l.Drives) || e.untrusted(l.Drives) {
		return nil
	}
	return e.quiet(l.VG, func(h *herd) error {
		r, err := e.reportOf(ctx, l) // what was read before may be older than the records
		if err != nil {
			return err
		}
		now := r.Group(l.VG)
		if now == nil || !h.elsewhere(now, l.Drives) || slices.ContainsFunc(l.Drives, func(id string) bool {
			pv := e.pvIn(r, now, id)
			return pv == "" || !slices.Contains(h.Drives, id) && pv != pvOf(l.VG, id) // a copy of a drive has the physical volume of another
		}) {
			return nil
		}
		was := strings.Join(h.Drives, ", ")
		h.Found = l.Found
		return e.onDrives(h, l.Drives, func(v *drivebay.Volume) {
			v.Mirror = nil
			e.noteNewer(v, fmt.Sprintf("the record store has volume group %s on drive %s, and it is on %s", l.VG, was, strings.Join(l.Drives, ", ")))
		})
	})
}

// elsewhere says of a group of the records that LVM shows it whole, with something of theirs in
// it, and that one of the drives that it is on is none of theirs.
func (h *herd) elsewhere(g *lvm.Group, drives []string) bool {
	whole := len(g.Missing()) == 0 && len(drives) == len(g.PVs)
	unknown := slices.ContainsFunc(drives, func(id string) bool { return !slices.Contains(h.Drives, id) })
	ours := slices.ContainsFunc(h.volumes, func(r *drivebay.VolumeRecord) bool {
		return slices.ContainsFunc(g.LVs, func(lv lvm.LV) bool {
			return idOfLV(&lv) == r.Volume.ID && instanceOfLV(&lv) == r.Volume.Location.Instance
		})
	})
	return whole && unknown && ours
}

// Newer are the volumes that were taken in since the start because the record store was older
// than their drives, by id.
func (e *Engine) Newer() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.newer))
}
