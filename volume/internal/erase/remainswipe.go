package erase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// MaxCleanUps is how many attempts to remove an old copy may fail before it stays: its drive
// has to leave because it fails.
const MaxCleanUps = 3

// wipeAgain is the wait before what a group's volumes have left is wiped again, after that failed.
var wipeAgain = backoff.Backoff{First: 10 * time.Second, Most: 5 * time.Minute}

// failedWipe is what is known of the wipes of a group that failed.
type failedWipe struct {
	times int // in a row
	next  time.Time
	said  string
}

// The engine wipes what volumes have left in extents of a group (remains.go) once LVM
// reports the extents as free.

// WipeAllRemains wipes what volumes of a group have left on a drive, before the drive
// leaves the group. A drive that cannot be written leaves all the same, with an event.
func (e *Eraser) WipeAllRemains(ctx context.Context, l drivebay.Location, drive string) error {
	if err := e.wipeRemains(ctx, l, drive, e.Inventory.Intact); err != nil {
		return err
	}
	left, err := e.RemainsOn(drive)
	if err == nil && len(left) > 0 {
		return fmt.Errorf("drive %s: %w: what volumes have left on it is wiped when nothing lies on it any more", drive, drivebay.ErrPending)
	}
	return err
}

// WipeRemains wipes what volumes of a group have left in free extents of a drive. Data
// that cannot be wiped stays, and the event VolumeLeft reports it. The group has lost
// volumes for good that the records still have.
func (e *Eraser) WipeRemains(ctx context.Context, l drivebay.Location, drive string) error {
	return e.wipeRemains(ctx, l, drive, func(drivebay.Location, *lvm.Report) error { return nil })
}

// wipeRemains is WipeRemains if may allows it by the report of the group. Extents of a volume that LVM does not show look
// free, and may be ranges that a move was to leave and that was called off: their record reserves them.
func (e *Eraser) wipeRemains(ctx context.Context, l drivebay.Location, drive string, may func(drivebay.Location, *lvm.Report) error) error {
	left, err := e.RemainsOn(drive)
	if err == nil && len(left) > 0 {
		err = e.Device.MayWrite(drive)
	}
	if err != nil {
		return err
	}
	for _, r := range left {
		e.Groups.SetWaitReason(l.VG, fmt.Sprintf("what its volumes have left on drive %s is being wiped", drive))
		wiped, err := e.wipeRanges(ctx, l, r, may)
		if err == nil {
			if err := e.Opt.After(l.VG, "wipe what is left on "+drive); wiped && err != nil {
				return fmt.Errorf("%w: %w", ledger.ErrStopped, err)
			}
			continue
		}
		if ctx.Err() != nil || errors.Is(err, ledger.ErrStopped) || errors.Is(err, drivebay.ErrPending) || errors.Is(err, inventory.ErrLacking) {
			return err
		}
		if err := e.notWiped(r, err); err != nil {
			return err
		}
	}
	return nil
}

// untried are the errors of a wipe that has written nothing: the drive may not be listed yet, or again.
var untried = []error{drivebay.ErrNotFound, drivebay.ErrRefused, drivebay.ErrUnavailable, drivebay.ErrBusy}

// notWiped counts a failed wipe. If the drive is gone or BAD, has not that partition any more, or the wipe has failed
// MaxCleanUps times, the data stays and the event VolumeLeft reports it.
func (e *Eraser) notWiped(r drivebay.Remains, why error) error {
	d, known := steps.DriveOf(e.Drives.Snapshot(), r.Drive)
	lacks := e.Inventory.Partitions.Lacks(r.Drive, r.Partition) // as in a store that was restored: the partition was wiped and removed since
	if known && d.Status == drivebay.StatusOnline && d.Health != drivebay.HealthBad && !lacks {
		if slices.ContainsFunc(untried, func(e error) bool { return errors.Is(why, e) }) {
			return why
		}
		if r.Tries+1 < MaxCleanUps {
			return errors.Join(why, e.changeRemains(r.Drive, r.Partition, func(r *drivebay.Remains) { r.Tries++ }))
		}
	}
	e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: r.Drive,
		Cause: fmt.Sprintf("what volumes have left on it was not wiped: wipe or destroy the drive before you give it away: %v", why)})
	return e.changeRemains(r.Drive, r.Partition, func(r *drivebay.Remains) { r.Ranges = nil })
}

// wipeRanges wipes the free parts of some ranges and drops them from the record.
func (e *Eraser) wipeRanges(ctx context.Context, l drivebay.Location, r drivebay.Remains, may func(drivebay.Location, *lvm.Report) error) (any bool, err error) {
	for _, left := range r.Ranges {
		for at := left.Start; at < left.Start+left.Size; at += Piece {
			part := drivebay.RemainsRange{Start: at, Size: min(Piece, left.Start+left.Size-at), Wipe: left.Wipe}
			wiped, err := steps.Through(ctx, e.Steps, "vg "+l.VG, steps.ProgramTime, func(ctx context.Context) ([]drivebay.RemainsRange, error) {
				return e.wipePiece(ctx, l, r, part, may)
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
					r.Ranges, r.Tries = CutRange(r.Ranges, x.Start, x.Size), 0
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
func (e *Eraser) wipePiece(ctx context.Context, l drivebay.Location, r drivebay.Remains, left drivebay.RemainsRange, may func(drivebay.Location, *lvm.Report) error) ([]drivebay.RemainsRange, error) {
	p, here := e.Groups.PVPart(r.Drive)
	if !here || p.GUID != r.Partition {
		return nil, fmt.Errorf("drive %s: partition %s: %w", r.Drive, r.Partition, drivebay.ErrNotFound)
	}
	do := RangeWipe(left.Wipe)
	if do == nil || left.Start > p.Size || left.Size > p.Size-left.Start {
		return nil, fmt.Errorf("drive %s: %w: %d bytes at %d of a partition of %d, wiped as %q", r.Drive, drivebay.ErrInvalid, left.Size, left.Start, p.Size, left.Wipe)
	}
	if h := e.Groups.GroupsByName()[l.VG]; h != nil && ledger.IsMoving(h.Location) && !ledger.IsMoving(l) {
		return nil, fmt.Errorf("volume group %s: %w: it moves", l.VG, drivebay.ErrPending)
	}
	devices, err := e.Groups.LVMDevices(l)
	if err != nil {
		return nil, err
	}
	report, err := e.LVM.Read(ctx, devices)
	if err != nil {
		return nil, steps.InOurWords(groups.OurError(err))
	}
	if err := may(l, report); err != nil {
		return nil, err
	}
	pv, g := report.On(p.Dev)
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
	disk, err := e.Device.OpenForWriting(ctx, device.WriteTarget{Device: p.Device, Drives: []string{r.Drive}, On: r.Drive, Alone: !g.Uses(pv.UUID)})
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
			ranges = CutRange(ranges, x.Start, x.Size)
		}
	}
	return ranges
}

// Unwiped refuses while volumes have left data in extents of a group that a report shows as free.
func (e *Eraser) Unwiped(l drivebay.Location, report *lvm.Report) error {
	for _, id := range l.Drives {
		left, err := e.RemainsOn(id)
		if err != nil {
			return err
		}
		p, here := e.Groups.PVPart(id)
		for _, r := range left {
			if pv, g := report.On(p.Dev); here && p.GUID == r.Partition && g != nil && g.Name == l.VG && len(freeOf(g, pv.UUID, r.Ranges)) > 0 {
				return fmt.Errorf("volume group %s: %w: what its volumes have left on drive %s is being wiped", l.VG, drivebay.ErrPending, id)
			}
		}
	}
	return nil
}

// WipeFree wipes what volumes have left in free extents of a group.
func (e *Eraser) WipeFree(ctx context.Context, l drivebay.Location) error {
	for _, id := range l.Drives {
		if _, here := e.Groups.PVPart(id); !here {
			continue
		}
		if err := e.wipeRemains(ctx, l, id, e.Inventory.Intact); err != nil {
			return err
		}
	}
	return nil
}

// WipeLeft wipes, in the background, what volumes have left in free extents of groups. In a
// moving group the move does it, because a move starts outside the group's lane.
func (e *Eraser) WipeLeft() {
	all, err := e.Store.Remains()
	if err != nil || len(all) == 0 || e.LVM == nil || e.Inventory.UnreadDrives(e.Inventory.UnlistedInUse) != nil || !e.wiping.CompareAndSwap(false, true) {
		return
	}
	e.Ledger.InBackground("wipe", func() {
		defer e.wiping.Store(false)
		failed := map[string]failedWipe{}
		for vg, h := range e.Groups.GroupsByName() {
			if ledger.IsMoving(h.Location) || e.Unwiped(h.Location, e.Groups.LVMNow().Reported()) == nil {
				continue
			}
			is := e.failedWipes[vg]
			if e.Machine.Now().Before(is.next) {
				failed[vg] = is
			} else if err := e.WipeFree(e.Ctx, h.Location); err != nil && e.Ctx.Err() == nil {
				if err.Error() != is.said {
					e.Log.Warn("what volumes have left is not wiped", "op", "wipe", "group", vg, "err", err)
				}
				failed[vg] = failedWipe{is.times + 1, e.Machine.Now().Add(wipeAgain.Wait(is.times + 1)), err.Error()}
			}
		}
		e.failedWipes = failed
	})
}
