package groups

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/capabilities"
	"github.com/drivebay/drivebay/volume/internal/env"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Groups holds the recent reports of single groups and the moves of groups.
type Groups struct {
	*env.Env
	Ledger       *ledger.Ledger
	Steps        *steps.Runner
	Capabilities *capabilities.Prober
	Partitions   *partitions.Catalog

	GroupMoves map[string]*moves.GroupMove // of groups that move, by name; guarded by Ledger.Mu
	LVMChanges atomic.Uint64               // grows with each change of logical volumes
	Reports    sync.Map                    // name of a group -> reported
	// BlankPVs are partitions for a physical volume that read back blank at the last listing, by drive;
	// guarded by Ledger.Mu.
	BlankPVs map[string]partitions.Part
}

// HasPart reports whether a drive has the partition of the volume's physical volume.
func (e *Groups) HasPart(v *drivebay.Volume, drive string) bool {
	if !v.Location.OnLVM() {
		_, ok := e.Partitions.Partition(v)
		return ok
	}
	_, ok := e.PVPart(drive)
	return ok
}

// StoodOn returns the kernel names of the partitions that a volume has on its drives.
func (e *Groups) StoodOn(v *drivebay.Volume) map[string]bool {
	out := map[string]bool{}
	if p, ok := e.Partitions.Partition(v); ok && !v.Location.OnLVM() {
		out[p.Name] = true
	}
	for _, id := range v.Location.Drives {
		if p, ok := e.PVPart(id); ok && v.Location.OnLVM() {
			out[p.Name] = true
		}
	}
	return out
}

// PVIn returns the physical volume that a group has on a drive, or "". For a
// drive that is not here, it is the one that is missing.
func (e *Groups) PVIn(r *lvm.Report, g *lvm.Group, drive string) string {
	if p, ok := e.PVPart(drive); ok {
		if pv, on := r.On(p.Dev); on != nil && on.Name == g.Name {
			return pv.UUID
		}
		return ""
	}
	if _, gone := e.Partitions.Drive(drive); gone == nil {
		return ""
	}
	if missing := g.Missing(); len(missing) == 1 {
		return missing[0]
	}
	return ""
}

// LVMNow returns the newest report of LVM; nil before the first.
func (e *Groups) LVMNow() *partitions.LVMIndex {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.Partitions.Index.LVM
}

// LVMLate returns since when LVM has made no report; "" while the newest is new enough.
func (e *Groups) LVMLate() string {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.Partitions.Index.LVM.UnknownSince(e.Machine.Now(), e.Partitions.Index.LVMError)
}

// Gone reports whether a complete listing of the volume's drives lacks it, or a part of it.
func (e *Groups) Gone(v *drivebay.Volume) bool { return e.Lacks(v, false) }

// Lacks is Gone; with made, a newer volume was made with the id of this one (see MayHavePV).
func (e *Groups) Lacks(v *drivebay.Volume, made bool) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for _, id := range v.Location.Drives {
		if _, listed := e.Partitions.Index.Parts[id]; !listed || e.Partitions.IssueOn(id) != "" {
			return false
		}
	}
	if e.Steps.Shrank(v.Location.Drives) { // the kernel may reject a sound table
		return false
	}
	switch {
	case e.smaller(v) != "":
		return true
	case v.Location.OnLVM():
		return e.lvGone(v.Location, made)
	case len(v.Location.Drives) == 0:
		return false
	}
	_, there := e.Partitions.Listed(v)
	return !there
}

// lvGone reports whether LVM's report lacks a logical volume. Each of its drives is in the report and can
// be read, for damage hides a volume and removes none, or has no physical volume. Ledger.Mu is held.
func (e *Groups) lvGone(l drivebay.Location, made bool) bool {
	x := e.Partitions.Index.LVM
	if len(l.Drives) == 0 || partitions.LVIn(x.Group(l.VG), l) != nil {
		return false
	}
	return !slices.ContainsFunc(l.Drives, func(id string) bool {
		return e.mayHavePV(l.VG, id, made) && (x == nil || x.PVs[id] == "" || x.Unreadable(id) != "")
	})
}

// MayHavePV reports whether a drive may have a physical volume of a group: it has a partition for one. A
// partition that reads back blank has none, if LVM shows every physical volume of the group on other
// drives: a move that has only begun leaves such a partition. With made, a newer volume was made with the id
// of the one that is looked for, and such a partition has none anyway: a record of an older store had held
// it when the group was removed.
func (e *Groups) MayHavePV(vg, drive string, made bool) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.mayHavePV(vg, drive, made)
}

// mayHavePV is MayHavePV with Ledger.Mu held.
func (e *Groups) mayHavePV(vg, drive string, made bool) bool {
	p, has := partitions.PVOn(e.Partitions.Index.Parts[drive])
	blank, is := e.BlankPVs[drive]
	g := e.Partitions.Index.LVM.Group(vg)
	return has && !((made || g != nil && g.Whole()) && is && blank == p)
}

// Elsewhere reports whether LVM has a volume on drives that its record does not name, for
// example after a pvmove by hand. A move of the engine that the record does not show yet is
// no such case: the engine gives the physical volume on its target a UUID of its own.
func (e *Groups) Elsewhere(v *drivebay.Volume) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	x, l := e.Partitions.Index.LVM, v.Location
	g := x.Group(l.VG)
	unlisted := func(id string) bool { _, listed := e.Partitions.Index.Parts[id]; return !listed }
	if partitions.LVIn(g, l) == nil || slices.ContainsFunc(l.Drives, unlisted) {
		return false
	}
	return !slices.ContainsFunc(g.PVs, func(pv lvm.PV) bool {
		if pv.Missing {
			return true
		}
		for id, dev := range x.PVs {
			if dev == pv.Device && (slices.Contains(l.Drives, id) || pv.UUID == PVUUID(l.VG, id)) {
				return true
			}
		}
		return false
	})
}

// PVPart returns the partition of the physical volume on a drive.
func (e *Groups) PVPart(drive string) (partitions.Part, bool) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return partitions.PVOn(e.Partitions.Index.Parts[drive])
}
