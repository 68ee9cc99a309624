package expand

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/provision"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// WantSize records how large a volume is to be; due reports whether there is work to do. Where
// there is no room, it may start a move that makes room.
func (e *Expander) WantSize(id string, r drivebay.SizeRange) (due bool, err error) {
	e.Provision.Placing.Lock()
	defer e.Provision.Placing.Unlock()
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return false, err
	}
	v := &rec.Volume
	piece := e.piece(v)
	u := piece.unit()
	switch why := v.Undecided(); {
	case why != "":
		return false, fmt.Errorf("%w: %s", drivebay.ErrRefused, why)
	case provision.MadeOrRemoved(v) != nil:
		return false, provision.MadeOrRemoved(v)
	case r.Limit > 0 && r.Required > r.Limit:
		return false, fmt.Errorf("%w: the required size %s is larger than the limit %s", drivebay.ErrInvalid, partitions.SizeText(r.Required), partitions.SizeText(r.Limit))
	case r.Limit > 0 && v.Size > r.Limit:
		return false, fmt.Errorf("%w: the volume already has %s, more than the limit %s, and a volume never shrinks", drivebay.ErrRange, partitions.SizeText(v.Size), partitions.SizeText(r.Limit))
	case r.Required > place.Most:
		return false, fmt.Errorf("%w: requested %s, larger than any volume", drivebay.ErrRange, partitions.SizeText(r.Required))
	case v.Size >= r.Required:
		return false, nil
	case v.CSIStatus == drivebay.CSIResizing: // and no call works on it
		return false, fmt.Errorf("%w: its growth was cut short, and is taken up when its drives have been listed", drivebay.ErrPending)
	}
	size := sizeFor(v, r.Required, u)
	if r.Limit > 0 && size > r.Limit {
		return false, fmt.Errorf("%w: the smallest possible size is %s, larger than the limit %s", drivebay.ErrRange, partitions.SizeText(size), partitions.SizeText(r.Limit))
	}
	if err := errors.Join(groups.RefuseMoving(v.Location), e.Groups.MayExtend(v.Location), fitsMetadata(v, size)); err != nil {
		return false, err
	}
	s := e.Inventory.PlacementView()
	have, err := s.GrowsTo(v)
	switch {
	case err != nil:
		return false, err
	case have < size:
		return false, piece.noRoom(s, have, size)
	}
	_, err = e.Ledger.Change(id, func(rec *drivebay.VolumeRecord) error {
		v, err := rec.Volume.Moved(drivebay.CSIResize)
		if err != nil {
			return err
		}
		rec.Volume = v
		rec.Work = &drivebay.Work{Op: drivebay.WorkExpand, Since: e.Machine.Now(), Size: size}
		return nil
	})
	return true, err
}

// sizeFor returns the size in whole units that a volume gets.
func sizeFor(v *drivebay.Volume, required, unit uint64) uint64 {
	return (max(required, place.Smallest(drivebay.Class{FSType: v.FSType}, !v.HasFilesystem())) + unit - 1) / unit * unit
}

// RoomToGrow returns why a volume cannot get a size now, or the id of the volume that moves first to make
// room; "": none has to. It decides as WantSize does, and changes nothing.
func (e *Expander) RoomToGrow(id string, required uint64) (moves string, err error) {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return "", err
	}
	v := &rec.Volume
	piece := e.piece(v)
	switch why := v.Undecided(); {
	case why != "":
		return "", fmt.Errorf("%w: %s", drivebay.ErrRefused, why)
	case required > place.Most:
		return "", fmt.Errorf("%w: requested %s, larger than any volume", drivebay.ErrRange, partitions.SizeText(required))
	case v.Size >= required:
		return "", nil
	}
	if err := groups.RefuseMoving(v.Location); err != nil {
		return "", err
	}
	s, size := e.Inventory.PlacementView(), sizeFor(v, required, piece.unit())
	have, err := s.GrowsTo(v)
	switch {
	case err != nil || have >= size:
		return "", err
	case v.Location.OnLVM():
		return "", piece.noRoom(s, have, size)
	}
	plan, err := planRoom(s, v, have, size)
	if err != nil {
		return "", err
	}
	return plan.Moves.Volume.ID, nil
}

// Enlarge completes the growth of a volume.
func (e *Expander) Enlarge(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	if rec.Work == nil || rec.Work.Op != drivebay.WorkExpand {
		return e.Ledger.Failed(ctx, id, fmt.Errorf("%w: its size is not written down", drivebay.ErrInvalid))
	}
	if err := e.Device.Stack(&rec.Volume).Piece().Grow(ctx, device.Opening{}); err != nil {
		return e.Ledger.Failed(ctx, id, err)
	}
	done, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		r.Volume, err = e.grownDone(r.Volume, r.Work.Size)
		r.Work = nil
		return err
	})
	if err == nil {
		e.NoteGrown(&done.Volume)
	}
	return err
}

// grownDone returns a growing volume as it is once its device has grown.
func (e *Expander) grownDone(v drivebay.Volume, size uint64) (drivebay.Volume, error) {
	v.Size = size
	v, err := v.Moved(drivebay.CSIDone)
	if err == nil && !e.Device.GrowsInUse(&v) {
		v, err = v.Moved(drivebay.CSIDone)
	}
	return v, err
}

// NoteGrown sends the event that a volume was expanded.
func (e *Expander) NoteGrown(v *drivebay.Volume) {
	e.Ledger.Note(drivebay.EventVolumeExpanded, v, fmt.Sprintf("volume %q was expanded to %s", v.Name, partitions.SizeText(v.Size)))
}

// growPartition plans to grow a partition in place. The new range is zeroed first if users can
// read it as it is.
func (e *Expander) growPartition(rec *drivebay.VolumeRecord) []steps.Step {
	v, size := &rec.Volume, inventory.SizeOfWork(rec)
	n := write.OfVolume(rec)
	grown := e.Write.InTable(n, func(t *gpt.Table) (bool, error) {
		p, _ := n.Find(t)
		return p.Size >= size, nil
	})
	var plan []steps.Step
	if v.RawBlocks() {
		plan = append(plan, e.zeroedBehind(n, size, grown))
	}
	return append(plan, steps.Step{
		Name: "table",
		Done: grown,
		Do: func(ctx context.Context) error {
			return e.Write.WithTable(ctx, n.Drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, _ := n.Find(t)
				if err := t.Grow(p.GUID, size); err != nil {
					return erase.NoRoom(err)
				}
				return t.Write(disk)
			})
		},
	}, e.Write.AddKernelPartition(n))
}

// zeroedBehind returns the step that zeroes what a partition is to grow into. The record does not say that it is done: nothing on
// the drive ties a free range to a record, and where that is older than the drive, other volumes have been in the range since.
func (e *Expander) zeroedBehind(n write.Entry, size uint64, grown func(context.Context) (bool, error)) steps.Step {
	zeroed := false
	return steps.Step{
		Name: "zero",
		Done: func(ctx context.Context) (bool, error) {
			if zeroed {
				return true, nil
			}
			return grown(ctx)
		},
		Do: func(ctx context.Context) error {
			err := e.zeroBehind(ctx, n, size)
			zeroed = err == nil
			return err
		},
	}
}

// zeroBehind zeroes what a partition is to grow into, on the drive itself: the range is in no
// partition yet. The record of the growth keeps the range free.
func (e *Expander) zeroBehind(ctx context.Context, n write.Entry, size uint64) error {
	var from, to uint64
	err := e.Write.WithTable(ctx, n.Drive, func(ctx context.Context, _ host.Disk, t *gpt.Table) error {
		p, ok := n.Find(t)
		if !ok {
			return fmt.Errorf("partition %s: %w", n.Name, drivebay.ErrNotFound)
		}
		from, to = p.Start+p.Size, p.Start+size
		return erase.NoRoom(t.Grow(p.GUID, max(size, p.Size)))
	})
	if err != nil {
		return err
	}
	for at := from; at < to; at += erase.Piece {
		_, err := steps.Through(ctx, e.Steps, "zero "+n.Drive, steps.PieceTime, func(ctx context.Context) (struct{}, error) {
			disk, d, err := e.Device.OpenDrive(ctx, n.Drive)
			if err != nil {
				return struct{}{}, err
			}
			defer disk.Close()
			if err := e.stillBehind(disk, d, n, from, size); err != nil {
				return struct{}{}, err
			}
			return struct{}{}, errors.Join(disk.Zero(ctx, at, min(erase.Piece, to-at)), disk.Sync())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stillBehind reads the partition table once more on the open drive: the range that a partition
// is to grow into must still be free.
func (e *Expander) stillBehind(disk host.Disk, d *drivebay.Drive, n write.Entry, from, size uint64) error {
	t, err := e.Write.ReadOurs(disk, d)
	if err != nil {
		return err
	}
	p, ok := n.Find(t)
	if !ok || p.Start+p.Size != from {
		return fmt.Errorf("partition %s: %w: it does not end at byte %d any more", n.Name, drivebay.ErrRefused, from)
	}
	return erase.NoRoom(t.Grow(p.GUID, size))
}

// growLogical plans to extend a logical volume. If users can read its extents as they are, new
// ones are zeroed (newextents.go).
func (e *Expander) growLogical(rec *drivebay.VolumeRecord) []steps.Step {
	v, size := &rec.Volume, inventory.SizeOfWork(rec)
	legs := steps.Step{Name: "legs", Done: func(ctx context.Context) (bool, error) {
		err := e.Mirror.BothLegs(ctx, v, size)
		return err == nil, err
	}}
	if needsZeroes(v) {
		return []steps.Step{legs, e.extentsZeroed(v, size), legs, e.Write.LVMStep("volume", v.Location, new(atomic.Bool), e.extendOverZeroes(v, size))}
	}
	grown := func(r *lvm.Report) ([]lvm.Step, error) {
		plan := lvm.Extend(v.Location.VG, v.Location.LV, size)
		if v.Location.Pool != "" {
			plan = append([]lvm.Step{lvm.ZeroBlocks(v.Location.VG, v.Location.Pool)}, plan...)
		}
		return plan, place.FitsPool(r, v.Location, size)
	}
	return []steps.Step{legs, e.Write.LVMStep("volume", v.Location, new(atomic.Bool), grown)}
}
