package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// What volumes have left in extents of a group (remains.go) is wiped once LVM reports the
// extents as free.

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
