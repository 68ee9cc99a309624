package erase

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// A logical volume that moves leaves its data on the old extents, a canceled move leaves
// it on the new ones, and a leg of a mirror that is created again elsewhere leaves it too.
// The engine records the ranges before LVM frees them, and wipes them as the volume's
// class says once they are free. A range that another volume has got is kept until that
// volume is gone: not every volume overwrites all of its extents.

// LeavesData records what a logical volume will leave on a physical volume.
func (e *Eraser) LeavesData(h *groups.VolumeGroup, g *lvm.Group, lv, drive, pv string) error {
	return e.LeavesExtents(g, h.WipeOf(lv), drive, pv, g.ExtentsOn(lv, pv))
}

// LeavesExtents records extents of a physical volume that will be freed with data of
// volumes in them.
func (e *Eraser) LeavesExtents(g *lvm.Group, wipe drivebay.Wipe, drive, pv string, extents []lvm.Allocation) error {
	if wipe == drivebay.WipeNone || drive == "" || len(extents) == 0 {
		return nil
	}
	ranges, err := rangesOf(g, pv, wipe, extents)
	if err != nil {
		return err
	}
	return e.addRanges(drive, pv, ranges)
}

// LeavesFree records that any free extent of a physical volume can have data of volumes.
func (e *Eraser) LeavesFree(g *lvm.Group, wipe drivebay.Wipe, drive, pv string) error {
	i := slices.IndexFunc(g.PVs, func(p lvm.PV) bool { return p.UUID == pv })
	if wipe == drivebay.WipeNone || i < 0 {
		return nil
	}
	return e.addRanges(drive, pv, freeOf(g, pv, []drivebay.RemainsRange{{Start: g.PVs[i].DataStart, Size: g.PVs[i].Size, Wipe: wipe}}))
}

func (e *Eraser) addRanges(drive, pv string, ranges []drivebay.RemainsRange) error {
	return e.changeRemains(drive, e.partitionOfPV(drive, pv), func(r *drivebay.Remains) {
		for _, x := range ranges {
			r.Ranges = AddRange(r.Ranges, x)
		}
	})
}

// partitionOfPV returns the GUID of a physical volume's partition, also if its drive is
// not there.
func (e *Eraser) partitionOfPV(drive, pv string) string {
	if p, here := e.Groups.PVPart(drive); here {
		return p.GUID
	}
	return partitions.PVGUID(pv)
}

// rangesOf returns the extents on a physical volume as byte ranges of its partition.
func rangesOf(g *lvm.Group, pv string, wipe drivebay.Wipe, extents []lvm.Allocation) ([]drivebay.RemainsRange, error) {
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
func (e *Eraser) changeRemains(drive, partition string, change func(*drivebay.Remains)) error {
	e.remainsMu.Lock()
	defer e.remainsMu.Unlock()
	all, err := e.Store.Remains()
	if err != nil {
		return fmt.Errorf("drive %s: what volumes have left on it: %w", drive, err)
	}
	r, known := all[partition]
	r.Drive, r.Partition, r.Ranges = drive, partition, slices.Clone(r.Ranges)
	change(&r)
	switch {
	case len(r.Ranges) > 0:
		err = e.Store.PutRemains(r)
	case known:
		err = e.Store.DeleteRemains(partition)
	}
	if err != nil {
		return fmt.Errorf("drive %s: write down what volumes leave on it: %w", drive, err)
	}
	return nil
}

// CutRange removes a range from others.
func CutRange(list []drivebay.RemainsRange, start, size uint64) (out []drivebay.RemainsRange) {
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

// AddRange adds a range to others. Where two overlap, a wipe with zeros wins.
func AddRange(list []drivebay.RemainsRange, add drivebay.RemainsRange) []drivebay.RemainsRange {
	more := []drivebay.RemainsRange{add}
	if add.Wipe == drivebay.WipeZero {
		list = CutRange(list, add.Start, add.Size)
	} else {
		for _, x := range list {
			more = CutRange(more, x.Start, x.Size)
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

// RemainsOn returns what volumes left in partitions of a drive, which need not be here.
func (e *Eraser) RemainsOn(drive string) ([]drivebay.Remains, error) {
	all, err := e.Store.Remains()
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

// LeavesCopy records what a canceled move leaves on the drive that it was copying to.
func (e *Eraser) LeavesCopy(ctx context.Context, h *groups.VolumeGroup, from string) error {
	e.Groups.Reports.Delete(h.VG)
	r, err := e.Groups.ReportOf(ctx, h.Location)
	if err != nil {
		return err
	}
	g := r.Group(h.VG)
	if g == nil || g.Move(from) == nil {
		return nil
	}
	move := g.Move(from)
	return e.leavesOthers(h, r, g, from, h.WipeOf(g.Moved(move)...), g.ExtentsOn(move.Name, ""))
}

// LeavesLost records what stays on the remaining drive when a group loses the other one:
// data of the lost volumes, and of the move.
func (e *Eraser) LeavesLost(h *groups.VolumeGroup, r *lvm.Report, g *lvm.Group, gone string) error {
	var lost []lvm.Allocation
	names := g.LostWith(gone)
	for _, name := range names {
		lost = append(lost, g.ExtentsOn(name, "")...)
	}
	err := e.leavesOthers(h, r, g, gone, h.WipeOf(names...), lost)
	move := g.AnyMove()
	if err != nil || move == nil {
		return err
	}
	return e.leavesOthers(h, r, g, move.MovesFrom, h.WipeOf(g.Moved(move)...), g.ExtentsOn(move.Name, ""))
}

// leavesOthers records extents on all physical volumes of a group but one.
func (e *Eraser) leavesOthers(h *groups.VolumeGroup, r *lvm.Report, g *lvm.Group, but string, wipe drivebay.Wipe, extents []lvm.Allocation) error {
	for _, id := range h.Drives {
		if pv := e.Groups.PVIn(r, g, id); pv != "" && pv != but {
			if err := e.LeavesExtents(g, wipe, id, pv, extents); err != nil {
				return err
			}
		}
	}
	return nil
}

// StrikeOut drops extents that were wiped as part of a volume from the records.
func (e *Eraser) StrikeOut(g *lvm.Group, wipe drivebay.Wipe, drive, pv string, extents []lvm.Allocation) error {
	ranges, err := rangesOf(g, pv, wipe, extents)
	if err != nil || drive == "" {
		return err
	}
	return e.changeRemains(drive, e.partitionOfPV(drive, pv), func(r *drivebay.Remains) {
		var rest []drivebay.RemainsRange
		for _, x := range r.Ranges {
			parts := []drivebay.RemainsRange{x}
			for i := 0; i < len(ranges) && (wipe == drivebay.WipeZero || x.Wipe != drivebay.WipeZero); i++ {
				parts = CutRange(parts, ranges[i].Start, ranges[i].Size)
			}
			rest = append(rest, parts...)
		}
		r.Ranges = rest
	})
}
