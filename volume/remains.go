package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// A logical volume that moves leaves its data where it was, and a move that is called off
// leaves them where it was to go; so does a leg of a mirror that is made anew elsewhere.
// The ranges are written down before LVM frees them, and wiped as the volume's class says
// once they are free. A range that another volume has is kept until that one is gone:
// not every volume overwrites all of its extents.

// leavesData writes down what a logical volume is to leave on a physical volume.
func (e *Engine) leavesData(h *herd, g *lvm.Group, lv, drive, pv string) error {
	return e.leavesExtents(g, h.wipeOf(lv), drive, pv, g.ExtentsOn(lv, pv))
}

// leavesExtents writes down extents of a physical volume that are to be freed with data of
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

// partitionOfPV is the GUID of the partition of a physical volume, also of one on a drive
// that is not there.
func (e *Engine) partitionOfPV(drive, pv string) string {
	if p, here := e.pvPart(drive); here {
		return p.guid
	}
	return pvGUID(pv)
}

// rangesOf are extents of a physical volume in bytes of its partition.
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

// changeRemains changes what is written down of one partition.
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

// cutRange takes a range out of others.
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

// addRange adds a range to others: zeros wherever one of them asks for zeros.
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

// wipeOf is the most thorough wipe of the volumes that logical volumes carry.
func (h *herd) wipeOf(lvs ...string) drivebay.Wipe {
	most := drivebay.WipeNone
	for _, r := range h.carries(lvs) {
		switch w := wipeOf(&r.Volume); {
		case w == drivebay.WipeZero, most == drivebay.WipeNone:
			most = w
		}
	}
	if slices.ContainsFunc(h.snaps, func(r *drivebay.SnapshotRecord) bool { return slices.Contains(lvs, r.Snapshot.Location.Pool) }) && most == drivebay.WipeNone {
		return wipeOf(&drivebay.Volume{}) // a snapshot may be of a volume that is no more
	}
	return most
}

// remainsOn are the remains in partitions of a drive that is here or not.
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

// wipeAllRemains wipes what volumes of a group have left on a drive, before the group
// gives it back. A drive that cannot be written is given back all the same, which is said.
func (e *Engine) wipeAllRemains(ctx context.Context, l drivebay.Location, drive string) error {
	if err := e.wipeRemains(ctx, l, drive); err != nil {
		return err
	}
	left, err := e.remainsOn(drive)
	if err == nil && len(left) > 0 {
		return fmt.Errorf("drive %s: %w: what volumes have left on it is wiped when nothing lies on it any more", drive, drivebay.ErrPending)
	}
	return err
}

// wipeRemains wipes what volumes of a group have left in free extents of a drive. What
// cannot be wiped stays, and VolumeLeft says so.
func (e *Engine) wipeRemains(ctx context.Context, l drivebay.Location, drive string) error {
	left, err := e.remainsOn(drive)
	if err == nil && len(left) > 0 {
		err = e.mayWrite(drive)
	}
	if err != nil {
		return err
	}
	for _, r := range left {
		e.waits(l.VG, fmt.Sprintf("what its volumes have left on drive %s is being wiped", drive))
		wiped, err := e.wipeRanges(ctx, l, r)
		if err == nil {
			if err := e.opt.After(l.VG, "wipe what is left on "+drive); wiped && err != nil {
				return fmt.Errorf("%w: %w", errStopped, err)
			}
			continue
		}
		if ctx.Err() != nil || errors.Is(err, errStopped) || errors.Is(err, drivebay.ErrPending) {
			return err
		}
		if err := e.notWiped(r, err); err != nil {
			return err
		}
	}
	return nil
}

// notWiped counts a wipe that failed. On a drive that is gone, is BAD or has failed often
// enough the data stay, and VolumeLeft says so.
func (e *Engine) notWiped(r drivebay.Remains, why error) error {
	d, known := driveOf(e.drives.Snapshot(), r.Drive)
	here := known && d.Status == drivebay.StatusOnline
	if here && d.Health != drivebay.HealthBad && r.Tries+1 < maxCleanUps {
		return errors.Join(why, e.changeRemains(r.Drive, r.Partition, func(r *drivebay.Remains) { r.Tries++ }))
	}
	e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: r.Drive,
		Cause: fmt.Sprintf("what volumes have left on it was not wiped: wipe or destroy the drive before you give it away: %v", why)})
	return e.changeRemains(r.Drive, r.Partition, func(r *drivebay.Remains) { r.Ranges = nil })
}

// wipeRanges wipes what is free of some ranges, and strikes it out.
func (e *Engine) wipeRanges(ctx context.Context, l drivebay.Location, r drivebay.Remains) (any bool, err error) {
	for _, left := range r.Ranges {
		for at := left.Start; at < left.Start+left.Size; at += piece {
			part := drivebay.RemainsRange{Start: at, Size: min(piece, left.Start+left.Size-at), Wipe: left.Wipe}
			wiped, err := through(ctx, e, "vg "+l.VG, programTime, func(ctx context.Context) ([]drivebay.RemainsRange, error) {
				return e.wipePiece(ctx, l, r, part)
			})
			if err != nil {
				return any, err
			}
			if len(wiped) == 0 {
				continue
			}
			any = true
			err = e.changeRemains(r.Drive, r.Partition, func(r *drivebay.Remains) {
				for _, x := range wiped {
					r.Ranges, r.Tries = cutRange(r.Ranges, x.Start, x.Size), 0
				}
			})
			if err != nil {
				return any, err
			}
		}
	}
	return any, nil
}

// wipePiece wipes those extents of a range that LVM reports as free, while the group cannot
// be changed. A move is begun outside the lane of its group: so what is left in a group that
// moves is wiped by its move alone, which knows it by the drives of the location.
func (e *Engine) wipePiece(ctx context.Context, l drivebay.Location, r drivebay.Remains, left drivebay.RemainsRange) ([]drivebay.RemainsRange, error) {
	p, here := e.pvPart(r.Drive)
	if !here || p.guid != r.Partition {
		return nil, fmt.Errorf("drive %s: partition %s: %w", r.Drive, r.Partition, drivebay.ErrNotFound)
	}
	do := rangeWipe(left.Wipe)
	if do == nil || left.Start > p.size || left.Size > p.size-left.Start {
		return nil, fmt.Errorf("drive %s: %w: %d bytes at %d of a partition of %d, wiped as %q", r.Drive, drivebay.ErrInvalid, left.Size, left.Start, p.size, left.Wipe)
	}
	if h := e.herds()[l.VG]; h != nil && travels(h.Location) && !travels(l) {
		return nil, fmt.Errorf("volume group %s: %w: it moves", l.VG, drivebay.ErrPending)
	}
	devices, err := e.lvmDevices(l)
	if err != nil {
		return nil, err
	}
	report, err := e.lvm.Read(ctx, devices)
	if err != nil {
		return nil, inOurWords(ourError(err))
	}
	pv, g := report.On(p.dev)
	switch {
	case g == nil || g.Name != l.VG:
		return nil, fmt.Errorf("drive %s: %w: its physical volume is not one of group %s", r.Drive, drivebay.ErrRefused, l.VG)
	case left.Start < pv.DataStart:
		return nil, fmt.Errorf("drive %s: %w: %d bytes at %d are not in extents of its physical volume", r.Drive, drivebay.ErrInvalid, left.Size, left.Start)
	}
	if taken := g.Taken(pv.UUID); taken+pv.Free != pv.Size {
		return nil, fmt.Errorf("drive %s: %w: LVM reports %d bytes free of %d, and %d in use", r.Drive, drivebay.ErrRefused, pv.Free, pv.Size, taken)
	}
	free := freeOf(g, pv.UUID, []drivebay.RemainsRange{left})
	if len(free) == 0 {
		return nil, nil
	}
	// LVM's devices hold the partition open, while any of its volumes is active.
	disk, err := e.openForWriting(ctx, writeTarget{device: p.device, drives: []string{r.Drive}, on: r.Drive, alone: !g.Uses(pv.UUID)})
	if err != nil {
		return nil, err
	}
	defer disk.Close()
	for _, x := range free {
		if err := do(ctx, disk, x.Start, x.Size); err != nil {
			return nil, err
		}
	}
	return free, disk.Sync()
}

// freeOf is what of some ranges of a physical volume no volume, and no move, has.
func freeOf(g *lvm.Group, pv string, ranges []drivebay.RemainsRange) []drivebay.RemainsRange {
	for i := range g.LVs {
		taken, err := rangesOf(g, pv, drivebay.WipeNone, g.LVs[i].Extents)
		if err != nil {
			return nil
		}
		for _, x := range taken {
			ranges = cutRange(ranges, x.Start, x.Size)
		}
	}
	return ranges
}

// unwiped says what volumes have left in extents of a group that a report shows as free.
func (e *Engine) unwiped(l drivebay.Location, report *lvm.Report) error {
	for _, id := range l.Drives {
		left, err := e.remainsOn(id)
		if err != nil {
			return err
		}
		p, here := e.pvPart(id)
		for _, r := range left {
			if pv, g := report.On(p.dev); here && p.guid == r.Partition && g != nil && g.Name == l.VG && len(freeOf(g, pv.UUID, r.Ranges)) > 0 {
				return fmt.Errorf("volume group %s: %w: what its volumes have left on drive %s is being wiped", l.VG, drivebay.ErrPending, id)
			}
		}
	}
	return nil
}

// wipeFree wipes what volumes have left in free extents of a group.
func (e *Engine) wipeFree(ctx context.Context, l drivebay.Location) error {
	for _, id := range l.Drives {
		if _, here := e.pvPart(id); !here {
			continue
		}
		if err := e.wipeRemains(ctx, l, id); err != nil {
			return err
		}
	}
	return nil
}

// wipeLeft wipes beside the rounds what volumes have left in free extents of groups. In a
// group that moves its move does so: it is begun outside the lane of the group.
func (e *Engine) wipeLeft() {
	all, err := e.store.Remains()
	if err != nil || len(all) == 0 || e.lvm == nil || e.unreadDrives(e.unlistedInUse) != nil || !e.wiping.CompareAndSwap(false, true) {
		return
	}
	e.running.Go(func() {
		defer e.wiping.Store(false)
		for vg, h := range e.herds() {
			if travels(h.Location) || e.unwiped(h.Location, e.lvmNow().reported()) == nil {
				continue
			}
			if err := e.wipeFree(e.ctx, h.Location); err != nil && e.ctx.Err() == nil {
				e.log.Warn("what volumes have left is not wiped", "op", "wipe", "group", vg, "err", err)
				select {
				case <-e.machine.After(tripAgain):
				case <-e.ctx.Done():
				}
			}
		}
	})
}

// leavesCopy writes down what a move that is called off leaves where it was copying to.
func (e *Engine) leavesCopy(ctx context.Context, h *herd, from string) error {
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

// leavesLost writes down what is left on the drive that stays of the volumes that a group
// loses with another drive, and of its move.
func (e *Engine) leavesLost(h *herd, r *lvm.Report, g *lvm.Group, gone string) error {
	var lost []lvm.Extent
	names := g.Lost(gone)
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

// leavesOthers writes down extents on all physical volumes of a group but one.
func (e *Engine) leavesOthers(h *herd, r *lvm.Report, g *lvm.Group, but string, wipe drivebay.Wipe, extents []lvm.Extent) error {
	for _, id := range h.Drives {
		if pv := e.pvIn(r, g, id); pv != "" && pv != but {
			if err := e.leavesExtents(g, wipe, id, pv, extents); err != nil {
				return err
			}
		}
	}
	return nil
}

// leavesLegs follows the wipe of a volume that is being removed: what is written down of its
// extents is done, but for those of a leg of a mirror that does not hold all that was
// written. They are written down.
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

// strikeOut drops extents that were wiped as part of a volume.
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

// noRemains ends the removal of a volume of a volume group only when what its volumes have
// left in free extents is wiped: some of it may be of this one.
func (e *Engine) noRemains(l drivebay.Location) step {
	return step{name: "nothing left elsewhere",
		done: func(ctx context.Context) (bool, error) {
			for _, id := range l.Drives {
				left, err := e.remainsOn(id)
				switch {
				case err != nil:
					return false, err
				case len(left) > 0 && travels(l):
					return false, fmt.Errorf("volume group %s: %w: what its volumes leave on drive %s is wiped when it has moved", l.VG, drivebay.ErrPending, id)
				case len(left) > 0:
					r, err := e.maybeReport(ctx, l)
					if err != nil {
						return false, err
					}
					if err := e.unwiped(l, r); err != nil {
						return false, nil
					}
				}
			}
			return true, nil
		},
		do: func(ctx context.Context) error { return e.wipeFree(ctx, l) },
	}
}
