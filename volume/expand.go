package volume

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// ExpandVolume grows a volume; node reports whether its filesystem has to be grown next.
func (e *Engine) ExpandVolume(ctx context.Context, id string, r drivebay.SizeRange) (v drivebay.Volume, node bool, err error) {
	rec, err := e.record(id)
	if err != nil {
		return v, false, err
	}
	if growsByMove(&rec, r.Required) { // the call must not end the copy
		return v, false, fmt.Errorf("expand volume %s: %w: %s", id, drivebay.ErrPending, movesItself(rec.Work.Size))
	}
	err = e.work(ctx, id, func(ctx context.Context) error {
		if err := e.mayChange(id); err != nil {
			return err
		}
		if rec, err := e.record(id); err == nil && rec.Volume.Size < r.Required {
			if err := e.endMoveFirst(ctx, id, false); err != nil {
				return err
			}
			if err := e.bothLegs(ctx, &rec.Volume, r.Required); err != nil {
				return err
			}
		}
		due, err := e.wantSize(id, r)
		switch {
		case err != nil:
			return err
		case due:
			return e.enlarge(ctx, id)
		}
		rec, err := e.record(id)
		if err != nil {
			return err
		}
		return e.verifyOnDrives(&rec.Volume)
	})
	if err != nil {
		return v, false, fmt.Errorf("expand volume %s: %w", id, err)
	}
	rec, err = e.record(id)
	return rec.Volume, growsInUse(&rec.Volume), err
}

// wantSize records how large a volume is to be; due reports whether there is work to do. Where
// there is no room, it may start a move that makes room.
func (e *Engine) wantSize(id string, r drivebay.SizeRange) (due bool, err error) {
	e.placing.Lock()
	defer e.placing.Unlock()
	rec, err := e.record(id)
	if err != nil {
		return false, err
	}
	v := &rec.Volume
	u := uint64(mib)
	if v.Location.VG != "" {
		u = lvm.ExtentSize
	}
	switch why := v.Undecided(); {
	case why != "":
		return false, fmt.Errorf("%w: %s", drivebay.ErrRefused, why)
	case r.Limit > 0 && r.Required > r.Limit:
		return false, fmt.Errorf("%w: the required size %s is larger than the limit %s", drivebay.ErrInvalid, sizeText(r.Required), sizeText(r.Limit))
	case r.Limit > 0 && v.Size > r.Limit:
		return false, fmt.Errorf("%w: the volume already has %s, more than the limit %s, and a volume never shrinks", drivebay.ErrRange, sizeText(v.Size), sizeText(r.Limit))
	case r.Required > most:
		return false, fmt.Errorf("%w: requested %s, larger than any volume", drivebay.ErrRange, sizeText(r.Required))
	case v.Size >= r.Required:
		return false, nil
	case v.CSIStatus == drivebay.CSIResizing: // and no call works on it
		return false, fmt.Errorf("%w: its growth was cut short, and is taken up when its drives have been listed", drivebay.ErrPending)
	}
	size := (max(r.Required, smallest(drivebay.Class{FSType: v.FSType}, v.Mode != drivebay.ModeFS)) + u - 1) / u * u
	if r.Limit > 0 && size > r.Limit {
		return false, fmt.Errorf("%w: the smallest possible size is %s, larger than the limit %s", drivebay.ErrRange, sizeText(size), sizeText(r.Limit))
	}
	if err := refuseMoving(v.Location); err != nil {
		return false, err
	}
	s := e.placementView()
	have, err := s.growsTo(v)
	switch {
	case err != nil:
		return false, err
	case have < size && v.Location.VG != "":
		return false, fmt.Errorf("%w: requested %s, but the volume can have at most %s in its volume group", drivebay.ErrRange, sizeText(size), sizeText(have))
	case have < size:
		return false, e.makeRoom(s, v, have, size)
	}
	_, err = e.change(id, func(rec *drivebay.VolumeRecord) error {
		v, err := rec.Volume.Moved(drivebay.CSIResize)
		if err != nil {
			return err
		}
		rec.Volume = v
		rec.Work = &drivebay.Work{Op: drivebay.WorkExpand, Since: e.machine.Now(), Size: size}
		return nil
	})
	return true, err
}

// growsTo returns the largest size that a volume can have where it is. Space that is kept for
// its own growth is free.
func (s placementView) growsTo(v *drivebay.Volume) (uint64, error) {
	if len(v.Location.Drives) == 0 {
		return 0, fmt.Errorf("%w: where it is, is not known", drivebay.ErrNotFound)
	}
	more := uint64(most)
	for _, id := range v.Location.Drives {
		parts, listed := s.index.parts[id]
		d, ok := driveOf(s.drives, id)
		if !ok || !listed {
			return 0, fmt.Errorf("drive %s: %w", id, drivebay.ErrNotFound)
		}
		if err := s.doubt(d, parts); err != nil {
			return 0, err
		}
		if v.Location.VG == "" {
			return s.partitionGrowsTo(v, d, parts), nil
		}
		if r := s.room(d, parts); r.pv == nil || r.pv.group != v.Location.VG {
			more = 0
		} else {
			more = min(more, r.pv.extents*lvm.ExtentSize)
		}
	}
	return v.Size + more, nil
}

// partitionGrowsTo is growsTo for a partition, on a drive with these partitions.
func (s placementView) partitionGrowsTo(v *drivebay.Volume, d *drivebay.Drive, parts []part) uint64 {
	p, ok := instanced(parts, partitionName(v.ID), v.Location.Partition)
	if !ok {
		return 0
	}
	have := p.size
	s.grows = v.ID
	for _, f := range s.room(d, parts).free {
		if f.start == p.start+p.size {
			have += f.size()
		}
	}
	return have - min(have, overhead(v.LUKSUUID))
}

// enlarge completes the growth of a volume.
func (e *Engine) enlarge(ctx context.Context, id string) error {
	rec, err := e.record(id)
	if err != nil {
		return err
	}
	if rec.Work == nil || rec.Work.Op != drivebay.WorkExpand {
		return e.failed(ctx, id, fmt.Errorf("%w: its size is not written down", drivebay.ErrInvalid))
	}
	plan := e.growPartition(&rec)
	if rec.Volume.Location.VG != "" {
		plan = e.growLogical(&rec)
	}
	if err := e.run(ctx, id, plan); err != nil {
		if needsZeroes(&rec.Volume) && ctx.Err() == nil && !errors.Is(err, errStopped) {
			err = errors.Join(err, e.run(ctx, id, []step{e.dropReservations(&rec.Volume)}))
		}
		return e.failed(ctx, id, err)
	}
	if v := &rec.Volume; v.Location.VG != "" && v.Rest() == drivebay.CSICreated {
		e.stopScrub(ctx, id)
		if err := e.deactivateUnused(ctx, v); err != nil {
			return e.failed(ctx, id, err)
		}
	}
	done, err := e.change(id, func(r *drivebay.VolumeRecord) (err error) {
		r.Volume, err = grownDone(r.Volume, r.Work.Size)
		r.Work = nil
		return err
	})
	if err == nil {
		e.noteGrown(&done.Volume)
	}
	return err
}

// grownDone returns a growing volume as it is once its device has grown.
func grownDone(v drivebay.Volume, size uint64) (drivebay.Volume, error) {
	v.Size = size
	v, err := v.Moved(drivebay.CSIDone)
	if err == nil && !growsInUse(&v) {
		v, err = v.Moved(drivebay.CSIDone)
	}
	return v, err
}

func (e *Engine) noteGrown(v *drivebay.Volume) {
	e.note(drivebay.EventVolumeExpanded, v, fmt.Sprintf("volume %q was expanded to %s", v.Name, sizeText(v.Size)))
}

// growPartition plans to grow a partition in place. The new range is zeroed first if users can
// read it as it is.
func (e *Engine) growPartition(rec *drivebay.VolumeRecord) []step {
	v, size := &rec.Volume, sizeOfWork(rec)
	n := ofVolume(rec)
	var plan []step
	if v.Mode != drivebay.ModeFS && v.LUKSUUID == "" {
		plan = append(plan, e.made(v.ID, "zero", func(ctx context.Context) error { return e.zeroBehind(ctx, n, size) }))
	}
	return append(plan, step{
		name: "table",
		done: e.inTable(n, func(t *gpt.Table) (bool, error) {
			p, _ := n.find(t)
			return p.Size >= size, nil
		}),
		do: func(ctx context.Context) error {
			return e.withTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, _ := n.find(t)
				if err := t.Grow(p.GUID, size); err != nil {
					return noRoom(err)
				}
				return t.Write(disk)
			})
		},
	}, e.addKernelPartition(n))
}

// zeroBehind zeroes what a partition is to grow into, on the drive itself: the range is in no
// partition yet. The record of the growth keeps the range free.
func (e *Engine) zeroBehind(ctx context.Context, n entry, size uint64) error {
	var from, to uint64
	err := e.withTable(ctx, n.drive, func(ctx context.Context, _ host.Disk, t *gpt.Table) error {
		p, ok := n.find(t)
		if !ok {
			return fmt.Errorf("partition %s: %w", n.name, drivebay.ErrNotFound)
		}
		from, to = p.Start+p.Size, p.Start+size
		return noRoom(t.Grow(p.GUID, max(size, p.Size)))
	})
	if err != nil {
		return err
	}
	for at := from; at < to; at += piece {
		_, err := through(ctx, e, "zero "+n.drive, pieceTime, func(ctx context.Context) (struct{}, error) {
			disk, d, err := e.openDrive(ctx, n.drive)
			if err != nil {
				return struct{}{}, err
			}
			defer disk.Close()
			if err := e.stillBehind(disk, d, n, from, size); err != nil {
				return struct{}{}, err
			}
			return struct{}{}, errors.Join(disk.Zero(ctx, at, min(piece, to-at)), disk.Sync())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stillBehind reads the partition table once more on the open drive: the range that a partition
// is to grow into must still be free.
func (e *Engine) stillBehind(disk host.Disk, d *drivebay.Drive, n entry, from, size uint64) error {
	t, err := e.readOurs(disk, d)
	if err != nil {
		return err
	}
	p, ok := n.find(t)
	if !ok || p.Start+p.Size != from {
		return fmt.Errorf("partition %s: %w: it does not end at byte %d any more", n.name, drivebay.ErrRefused, from)
	}
	return noRoom(t.Grow(p.GUID, size))
}

// growLogical plans to extend a logical volume. If users can read its extents as they are, new
// ones are zeroed (newextents.go).
func (e *Engine) growLogical(rec *drivebay.VolumeRecord) []step {
	v, size := &rec.Volume, sizeOfWork(rec)
	legs := step{name: "legs", done: func(ctx context.Context) (bool, error) {
		err := e.bothLegs(ctx, v, size)
		return err == nil, err
	}}
	if needsZeroes(v) {
		return []step{legs, e.extentsZeroed(v, size), legs, e.lvmStep("volume", v.Location, new(atomic.Bool), e.extendOverZeroes(v, size))}
	}
	steps := lvm.Extend(v.Location.VG, v.Location.LV, size)
	return []step{legs, e.lvmStep("volume", v.Location, new(atomic.Bool), func(*lvm.Report) ([]lvm.Step, error) { return steps, nil })}
}
