package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// A logical volume that moves leaves its data where it was. The ranges are written down
// before it moves, and wiped as its class says before its group gives the drive back.

// leavesData writes down what a logical volume is to leave on a physical volume.
func (e *Engine) leavesData(h *herd, g *lvm.Group, lv, drive, pv string) error {
	p, here := e.pvPart(drive)
	wipe := h.wipeOf(lv)
	i := slices.IndexFunc(g.PVs, func(p lvm.PV) bool { return p.UUID == pv })
	if !here || i < 0 || wipe == drivebay.WipeNone {
		return nil
	}
	all, err := e.store.Remains()
	if err != nil {
		return fmt.Errorf("drive %s: what is left of moved volumes: %w", drive, err)
	}
	r := all[p.guid]
	r.Drive, r.Partition = drive, p.guid
	for _, x := range g.ExtentsOn(lv, pv) {
		left := drivebay.RemainsRange{Start: g.PVs[i].DataStart + x.Start*g.ExtentSize, Size: x.Count * g.ExtentSize, Wipe: wipe}
		if !slices.Contains(r.Ranges, left) {
			r.Ranges = append(r.Ranges, left)
		}
	}
	if err := e.store.PutRemains(r); err != nil {
		return fmt.Errorf("drive %s: write down what is left of volume %s/%s: %w", drive, g.Name, lv, err)
	}
	return nil
}

// wipeOf is the most thorough wipe of the volumes that a logical volume carries.
func (h *herd) wipeOf(lv string) drivebay.Wipe {
	most := drivebay.WipeNone
	for _, r := range h.carries([]string{lv}) {
		switch w := wipeOf(&r.Volume); {
		case w == drivebay.WipeZero, most == drivebay.WipeNone:
			most = w
		}
	}
	if slices.ContainsFunc(h.snaps, func(r *drivebay.SnapshotRecord) bool { return r.Snapshot.Location.Pool == lv }) && most == drivebay.WipeNone {
		return wipeOf(&drivebay.Volume{}) // a snapshot may be of a volume that is no more
	}
	return most
}

// remainsOn are the remains in partitions of a drive that is here or not.
func (e *Engine) remainsOn(drive string) ([]drivebay.Remains, error) {
	all, err := e.store.Remains()
	if err != nil {
		return nil, fmt.Errorf("drive %s: what is left of moved volumes: %w", drive, err)
	}
	var out []drivebay.Remains
	for _, r := range all {
		if r.Drive == drive {
			out = append(out, r)
		}
	}
	return out, nil
}

// wipeRemains wipes what volumes of a group have left on a drive when they moved, before
// the group gives it back. A drive that cannot be written is given back all the same,
// which is said.
func (e *Engine) wipeRemains(ctx context.Context, l drivebay.Location, drive string) error {
	left, err := e.remainsOn(drive)
	if err != nil {
		return err
	}
	for _, r := range left {
		e.waits(l.VG, fmt.Sprintf("what its volumes have left on drive %s is being wiped", drive))
		err := e.wipeRanges(ctx, l, r)
		if err == nil {
			if err := e.store.DeleteRemains(r.Partition); err != nil {
				return err
			}
			if err := e.opt.After(l.VG, "wipe what is left on "+drive); err != nil {
				return fmt.Errorf("%w: %w", errStopped, err)
			}
			continue
		}
		if ctx.Err() != nil || errors.Is(err, errStopped) || errors.Is(err, drivebay.ErrPending) {
			return err
		}
		d, known := driveOf(e.drives.Snapshot(), drive)
		here := known && d.Status == drivebay.StatusOnline
		if r.Tries++; here && d.Health != drivebay.HealthBad && r.Tries < maxCleanUps {
			return errors.Join(err, e.store.PutRemains(r))
		}
		e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive,
			Cause: fmt.Sprintf("what volumes have left on it when they moved was not wiped: wipe or destroy the drive before you give it away: %v", err)})
		if err := e.store.DeleteRemains(r.Partition); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) wipeRanges(ctx context.Context, l drivebay.Location, r drivebay.Remains) error {
	for _, left := range r.Ranges {
		for at := left.Start; at < left.Start+left.Size; at += piece {
			part := drivebay.RemainsRange{Start: at, Size: min(piece, left.Start+left.Size-at), Wipe: left.Wipe}
			_, err := through(ctx, e, "vg "+l.VG, programTime, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, e.wipePiece(ctx, l, r, part)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// wipePiece wipes extents that LVM reports as free, while the group cannot be changed.
func (e *Engine) wipePiece(ctx context.Context, l drivebay.Location, r drivebay.Remains, left drivebay.RemainsRange) error {
	p, here := e.pvPart(r.Drive)
	if !here || p.guid != r.Partition {
		return fmt.Errorf("drive %s: partition %s: %w", r.Drive, r.Partition, drivebay.ErrNotFound)
	}
	do := rangeWipe(left.Wipe)
	if do == nil || left.Start > p.size || left.Size > p.size-left.Start {
		return fmt.Errorf("drive %s: %w: %d bytes at %d of a partition of %d, wiped as %q", r.Drive, drivebay.ErrInvalid, left.Size, left.Start, p.size, left.Wipe)
	}
	devices, err := e.lvmDevices(l)
	if err != nil {
		return err
	}
	report, err := e.lvm.Read(ctx, devices)
	if err != nil {
		return inOurWords(ourError(err))
	}
	pv, g := report.On(p.dev)
	switch {
	case g == nil || g.Name != l.VG:
		return fmt.Errorf("drive %s: %w: its physical volume is not one of group %s", r.Drive, drivebay.ErrRefused, l.VG)
	case left.Start < pv.DataStart || g.Taken(pv.UUID) > 0:
		return fmt.Errorf("drive %s: %w: what is left of moved volumes is wiped when nothing lies on it any more", r.Drive, drivebay.ErrPending)
	}
	disk, err := e.openForWriting(ctx, writeTarget{device: p.device, drives: []string{r.Drive}, on: r.Drive, alone: true})
	if err != nil {
		return err
	}
	defer disk.Close()
	return errors.Join(do(ctx, disk, left.Start, left.Size), disk.Sync())
}

// noRemains ends the removal of a volume of a group on its way only when what its volumes
// have left elsewhere is wiped: some of it may be of this one.
func (e *Engine) noRemains(l drivebay.Location) step {
	return step{name: "nothing left elsewhere", done: func(context.Context) (bool, error) {
		if !travels(l) {
			return true, nil
		}
		for _, id := range l.Drives {
			left, err := e.remainsOn(id)
			if err != nil {
				return false, err
			}
			if len(left) > 0 {
				return false, fmt.Errorf("volume group %s: %w: what its volumes leave on drive %s is wiped when it has moved", l.VG, drivebay.ErrPending, id)
			}
		}
		return true, nil
	}}
}
