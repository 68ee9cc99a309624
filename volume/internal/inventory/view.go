package inventory

import (
	"maps"

	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// PlacementView returns everything that the choice of a place depends on.
func (e *Inventory) PlacementView() PlacementView {
	records := e.Ledger.All()
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	s := PlacementView{Drives: e.Drives.Snapshot(), Index: e.Partitions.Index, blankPVs: e.Groups.BlankPVs, Moving: map[string]string{}, volumes: records, tables: maps.Clone(e.Partitions.Tables), unmoved: e.Moves.Moves.Unmoved(e.Machine.Now())}
	for _, r := range records {
		if l := r.Volume.Location; ledger.IsMoving(l) {
			for _, id := range l.Drives {
				s.Moving[id] = l.VG
			}
		}
		if r.Work != nil {
			s.records = append(s.records, r)
		}
	}
	for _, r := range e.Ledger.Snapshots {
		s.snaps = append(s.snaps, r)
		if l := r.Snapshot.Location; ledger.IsMoving(l) {
			for _, id := range l.Drives {
				s.Moving[id] = l.VG
			}
		}
	}
	s.uses, s.layouts = recordedUses(records, s.snaps, e.mayHaveMoved), map[string]string{}
	for _, d := range s.Drives.Drives {
		s.layouts[d.ID] = e.Partitions.IssueOn(d.ID)
	}
	return s
}
