package volume

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// A logical volume that moves leaves its data on the old extents, a canceled move leaves
// it on the new ones, and a leg of a mirror that is made anew elsewhere leaves it too.
// The engine records the ranges before LVM frees them, and wipes them as the volume's
// class says once they are free. A range that another volume has got is kept until that
// volume is gone: not every volume overwrites all of its extents.

// leavesData records what a logical volume will leave on a physical volume.
func (e *Engine) leavesData(h *volumeGroup, g *lvm.Group, lv, drive, pv string) error {
	return e.leavesExtents(g, h.wipeOf(lv), drive, pv, g.ExtentsOn(lv, pv))
}

// leavesExtents records extents of a physical volume that will be freed with data of
// volumes in them.
func (e *Engine) leavesExtents(g *lvm.Group, wipe drivebay.Wipe, drive, pv string, extents []lvm.Extent) error {
	if wipe == drivebay.WipeNone || drive == "" || len(extents) == 0 {
		return nil
	}
	ranges, err := rangesOf(g, pv, wipe, extents)
	if err != nil {
		return err
	}
	return e.changeRemains(drive, e.partitionOfPV(drive, pv), func(r *drivebay.Remains) {
		for _, x := range ranges {
			r.Ranges = addRange(r.Ranges, x)
		}
	})
}

// partitionOfPV returns the GUID of a physical volume's partition, also if its drive is
// not there.
func (e *Engine) partitionOfPV(drive, pv string) string {
	if p, here := e.pvPart(drive); here {
		return p.guid
	}
	return pvGUID(pv)
}

// rangesOf returns the extents on a physical volume as byte ranges of its partition.
func rangesOf(g *lvm.Group, pv string, wipe drivebay.Wipe, extents []lvm.Extent) ([]drivebay.RemainsRange, error) {
	i := slices.IndexFunc(g.PVs, func(p lvm.PV) bool { return p.UUID == pv })
	if i < 0 {
		return nil, fmt.Errorf("physical volume %s: %w: it is not one of group %s", pv, drivebay.ErrNotFound, g.Name)
	}
	var out []drivebay.RemainsRange
	for _, x := range extents {
		if x.PV == pv {
			out = append(out, drivebay.RemainsRange{Start: g.PVs[i].DataStart + x.Start*g.ExtentSize, Size: x.Count * g.ExtentSize, Wipe: wipe})
		}
	}
	return out, nil
}

// changeRemains changes the record of what volumes left in one partition.
func (e *Engine) changeRemains(drive, partition string, change func(*drivebay.Remains)) error {
	e.remainsMu.Lock()
	defer e.remainsMu.Unlock()
	all, err := e.store.Remains()
	if err != nil {
		return fmt.Errorf("drive %s: what volumes have left on it: %w", drive, err)
	}
	r, known := all[partition]
	r.Drive, r.Partition, r.Ranges = drive, partition, slices.Clone(r.Ranges)
	change(&r)
	switch {
	case len(r.Ranges) > 0:
		err = e.store.PutRemains(r)
	case known:
		err = e.store.DeleteRemains(partition)
	}
	if err != nil {
		return fmt.Errorf("drive %s: write down what volumes leave on it: %w", drive, err)
	}
	return nil
}

// cutRange removes a range from others.
func cutRange(list []drivebay.RemainsRange, start, size uint64) (out []drivebay.RemainsRange) {
	for _, x := range list {
		end := x.Start + x.Size
		if before := min(end, start); before > x.Start {
			out = append(out, drivebay.RemainsRange{Start: x.Start, Size: before - x.Start, Wipe: x.Wipe})
		}
		if after := max(x.Start, start+size); after < end {
			out = append(out, drivebay.RemainsRange{Start: after, Size: end - after, Wipe: x.Wipe})
		}
	}
	return out
}

// addRange adds a range to others. Where two overlap, a wipe with zeros wins.
func addRange(list []drivebay.RemainsRange, add drivebay.RemainsRange) []drivebay.RemainsRange {
	more := []drivebay.RemainsRange{add}
	if add.Wipe == drivebay.WipeZero {
		list = cutRange(list, add.Start, add.Size)
	} else {
		for _, x := range list {
			more = cutRange(more, x.Start, x.Size)
		}
	}
	list = slices.Concat(list, more)
	slices.SortFunc(list, func(a, b drivebay.RemainsRange) int { return cmp.Compare(a.Start, b.Start) })
	var out []drivebay.RemainsRange
	for _, x := range list {
		if i := len(out) - 1; i >= 0 && out[i].Wipe == x.Wipe && out[i].Start+out[i].Size == x.Start {
			out[i].Size += x.Size
		} else {
			out = append(out, x)
		}
	}
	return out
}

// wipeOf returns the most thorough wipe of the volumes that depend on some logical volumes.
func (h *volumeGroup) wipeOf(lvs ...string) drivebay.Wipe {
	most := drivebay.WipeNone
	for _, r := range h.dependents(lvs) {
		switch w := wipeOf(&r.Volume); {
		case w == drivebay.WipeZero, most == drivebay.WipeNone:
			most = w
		}
	}
	if slices.ContainsFunc(h.snaps, func(r *drivebay.SnapshotRecord) bool { return slices.Contains(lvs, r.Snapshot.Location.Pool) }) && most == drivebay.WipeNone {
		return wipeOf(&drivebay.Volume{}) // the snapshot's source may have been removed
	}
	return most
}

// remainsOn returns what volumes left in partitions of a drive, which need not be here.
func (e *Engine) remainsOn(drive string) ([]drivebay.Remains, error) {
	all, err := e.store.Remains()
	if err != nil {
		return nil, fmt.Errorf("drive %s: what volumes have left on it: %w", drive, err)
	}
	var out []drivebay.Remains
	for _, r := range all {
		if r.Drive == drive {
			out = append(out, r)
		}
	}
	return out, nil
}

// leavesCopy records what a canceled move leaves on the drive that it was copying to.
func (e *Engine) leavesCopy(ctx context.Context, h *volumeGroup, from string) error {
	e.reports.Delete(h.VG)
	r, err := e.reportOf(ctx, h.Location)
	if err != nil {
		return err
	}
	g := r.Group(h.VG)
	if g == nil || g.Move(from) == nil {
		return nil
	}
	move := g.Move(from)
	return e.leavesOthers(h, r, g, from, h.wipeOf(g.Moved(move)...), g.ExtentsOn(move.Name, ""))
}

// leavesLost records what stays on the remaining drive when a group loses the other one:
// data of the lost volumes, and of the move.
func (e *Engine) leavesLost(h *volumeGroup, r *lvm.Report, g *lvm.Group, gone string) error {
	var lost []lvm.Extent
	names := g.LostWith(gone)
	for _, name := range names {
		lost = append(lost, g.ExtentsOn(name, "")...)
	}
	err := e.leavesOthers(h, r, g, gone, h.wipeOf(names...), lost)
	move := g.AnyMove()
	if err != nil || move == nil {
		return err
	}
	return e.leavesOthers(h, r, g, move.MovesFrom, h.wipeOf(g.Moved(move)...), g.ExtentsOn(move.Name, ""))
}

// leavesOthers records extents on all physical volumes of a group but one.
func (e *Engine) leavesOthers(h *volumeGroup, r *lvm.Report, g *lvm.Group, but string, wipe drivebay.Wipe, extents []lvm.Extent) error {
	for _, id := range h.Drives {
		if pv := e.pvIn(r, g, id); pv != "" && pv != but {
			if err := e.leavesExtents(g, wipe, id, pv, extents); err != nil {
				return err
			}
		}
	}
	return nil
}

// leavesLegs is called after a volume that is being removed was wiped. It drops the volume's
// extents from the records. A leg of a mirror that the kernel left out was not wiped with
// the others: its extents are recorded.
func (e *Engine) leavesLegs(ctx context.Context, v *drivebay.Volume) error {
	l := v.Location
	if l.VG == "" || l.Kind == drivebay.LocationThin {
		return nil
	}
	r, err := e.reportOf(ctx, l)
	if err != nil {
		return err
	}
	g := r.Group(l.VG)
	if lvIn(g, l) == nil {
		return nil
	}
	legs := e.mirrorLegs(l, g, r)
	c, _, err := e.live(ctx, v, legs)
	if err != nil {
		return err
	}
	for i, leg := range legs {
		extents := g.ExtentsOn(l.LV, leg.pv)
		if len(legs) > 1 && (i >= len(c.Legs) || c.Legs[i] != 'A' || e.leftOut(l, g, leg, 'A')) {
			err = e.leavesExtents(g, wipeOf(v), leg.drive, leg.pv, extents)
		} else {
			err = e.strikeOut(g, wipeOf(v), leg.drive, leg.pv, g.DataOn(l.LV, leg.pv))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// strikeOut drops extents that were wiped as part of a volume from the records.
func (e *Engine) strikeOut(g *lvm.Group, wipe drivebay.Wipe, drive, pv string, extents []lvm.Extent) error {
	ranges, err := rangesOf(g, pv, wipe, extents)
	if err != nil || drive == "" {
		return err
	}
	return e.changeRemains(drive, e.partitionOfPV(drive, pv), func(r *drivebay.Remains) {
		var rest []drivebay.RemainsRange
		for _, x := range r.Ranges {
			parts := []drivebay.RemainsRange{x}
			for i := 0; i < len(ranges) && (wipe == drivebay.WipeZero || x.Wipe != drivebay.WipeZero); i++ {
				parts = cutRange(parts, ranges[i].Start, ranges[i].Size)
			}
			rest = append(rest, parts...)
		}
		r.Ranges = rest
	})
}
