package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// The engine wipes what volumes have left in extents of a group (remains.go) once LVM
// reports the extents as free.

// wipeAllRemains wipes what volumes of a group have left on a drive, before the drive
// leaves the group. A drive that cannot be written leaves all the same, with an event.
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

// wipeRemains wipes what volumes of a group have left in free extents of a drive. Data
// that cannot be wiped stays, and the event VolumeLeft reports it.
func (e *Engine) wipeRemains(ctx context.Context, l drivebay.Location, drive string) error {
	left, err := e.remainsOn(drive)
	if err == nil && len(left) > 0 {
		err = e.mayWrite(drive)
	}
	if err != nil {
		return err
	}
	for _, r := range left {
		e.setWaitReason(l.VG, fmt.Sprintf("what its volumes have left on drive %s is being wiped", drive))
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

// notWiped counts a failed wipe. If the drive is gone or BAD, or the wipe has failed
// maxCleanUps times, the data stays and the event VolumeLeft reports it.
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

// wipeRanges wipes the free parts of some ranges and drops them from the record.
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

// wipePiece wipes the extents of a range that LVM reports as free. Its caller holds the
// group's lane, so the group does not change. But a move starts outside that lane: in a
// moving group only the move itself wipes, which passes a location with all its drives.
func (e *Engine) wipePiece(ctx context.Context, l drivebay.Location, r drivebay.Remains, left drivebay.RemainsRange) ([]drivebay.RemainsRange, error) {
	p, here := e.pvPart(r.Drive)
	if !here || p.guid != r.Partition {
		return nil, fmt.Errorf("drive %s: partition %s: %w", r.Drive, r.Partition, drivebay.ErrNotFound)
	}
	do := rangeWipe(left.Wipe)
	if do == nil || left.Start > p.size || left.Size > p.size-left.Start {
		return nil, fmt.Errorf("drive %s: %w: %d bytes at %d of a partition of %d, wiped as %q", r.Drive, drivebay.ErrInvalid, left.Size, left.Start, p.size, left.Wipe)
	}
	if h := e.groupsByName()[l.VG]; h != nil && isMoving(h.Location) && !isMoving(l) {
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
	if taken := g.AllocatedOn(pv.UUID); taken+pv.Free != pv.Size {
		return nil, fmt.Errorf("drive %s: %w: LVM reports %d bytes free of %d, and %d in use", r.Drive, drivebay.ErrRefused, pv.Free, pv.Size, taken)
	}
	free := freeOf(g, pv.UUID, []drivebay.RemainsRange{left})
	if len(free) == 0 {
		return nil, nil
	}
	// Active logical volumes hold the partition open.
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

// freeOf returns the parts of some ranges of a physical volume that no volume and no move has.
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

// unwiped refuses while volumes have left data in extents of a group that a report shows as free.
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

// wipeLeft wipes, in the background, what volumes have left in free extents of groups. In a
// moving group the move does it, because a move starts outside the group's lane.
func (e *Engine) wipeLeft() {
	all, err := e.store.Remains()
	if err != nil || len(all) == 0 || e.lvm == nil || e.unreadDrives(e.unlistedInUse) != nil || !e.wiping.CompareAndSwap(false, true) {
		return
	}
	e.inBackground("wipe", func() {
		defer e.wiping.Store(false)
		for vg, h := range e.groupsByName() {
			if isMoving(h.Location) || e.unwiped(h.Location, e.lvmNow().reported()) == nil {
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

// noRemains returns the last step of removing a logical volume: it waits until what the
// group's volumes have left in free extents is wiped. Some of it may be this volume's.
func (e *Engine) noRemains(l drivebay.Location) step {
	return step{name: "nothing left elsewhere",
		done: func(ctx context.Context) (bool, error) {
			for _, id := range l.Drives {
				left, err := e.remainsOn(id)
				switch {
				case err != nil:
					return false, err
				case len(left) > 0 && isMoving(l):
					waits := e.waitReason(l.VG)
					if waits != "" {
						waits = ". It has not moved yet: " + waits
					}
					return false, fmt.Errorf("volume group %s: %w: what its volumes leave on drive %s is wiped when it has moved%s", l.VG, drivebay.ErrPending, id, waits)
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
