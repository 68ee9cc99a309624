package expand

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/provision"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// needsZeroes reports whether a logical volume shows its extents as they are. A filesystem shows no block
// that it has not written, a thin pool zeroes its blocks, and old data that is decrypted with a new
// key is noise.
func needsZeroes(v *drivebay.Volume) bool {
	return v.RawBlocks() && v.Location.Kind != drivebay.LocationThin
}

// reservation returns the logical volume that reserves the new extents of one leg.
func reservation(v *drivebay.Volume, leg int) (lvm.Volume, error) {
	name, err := lvm.VolumeName(v.ID + "-grow-" + strconv.Itoa(leg))
	if err != nil {
		return lvm.Volume{}, err
	}
	t, err := groups.Tags(map[string]string{groups.KeyWhat: provision.KeyGrowth, groups.KeyID: v.ID})
	return lvm.Volume{Group: v.Location.VG, Name: name, Tags: t}, err
}

func zeroedMark(lv *lvm.LV) string { return "zeroed " + lv.UUID }

// extentsZeroed returns the step that reserves and zeroes the extents by which a volume grows.
func (e *Expander) extentsZeroed(v *drivebay.Volume, size uint64) steps.Step {
	return steps.Step{
		Name: "zero",
		Done: func(ctx context.Context) (bool, error) {
			r, err := e.Groups.ReportOf(ctx, v.Location)
			if err != nil {
				return false, err
			}
			lv := partitions.LVOf(r, v.Location)
			if lv != nil && lv.Size >= size {
				return true, nil
			}
			rec, err := e.Ledger.Record(v.ID)
			return err == nil && allZeroed(&rec, r.Group(v.Location.VG), size), err
		},
		Do: func(ctx context.Context) error {
			r, err := e.Groups.ReportOf(ctx, v.Location)
			if err != nil {
				return err
			}
			legs, more, err := growthOf(r.Group(v.Location.VG), v, size)
			if err != nil {
				return err
			}
			for leg, pv := range legs {
				if err := e.zeroReservation(ctx, v, leg, pv, more); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// growthOf returns by how much a volume grows: the physical volume of each leg, and the bytes.
func growthOf(g *lvm.Group, v *drivebay.Volume, size uint64) (legs []string, more uint64, err error) {
	if partitions.LVIn(g, v.Location) == nil {
		return nil, 0, fmt.Errorf("logical volume %s/%s: %w", v.Location.VG, v.Location.LV, drivebay.ErrNotFound)
	}
	have := partitions.LVIn(g, v.Location).Size
	if legs = g.PhysicalVolumesOf(v.Location.LV); len(legs) != ledger.DrivesPerGroup(v.Location.Kind) {
		return nil, 0, fmt.Errorf("logical volume %s/%s: %w: it is on %d physical volumes, want %d", v.Location.VG, v.Location.LV, drivebay.ErrRefused, len(legs), ledger.DrivesPerGroup(v.Location.Kind))
	}
	return legs, place.ExtentsOf(size-min(have, size)) * lvm.ExtentSize, nil
}

// allZeroed reports whether every leg has a zeroed reservation for the growth to a size.
func allZeroed(rec *drivebay.VolumeRecord, g *lvm.Group, size uint64) bool {
	legs, more, err := growthOf(g, &rec.Volume, size)
	if err != nil || rec.Work == nil {
		return false
	}
	ready := 0
	for _, lv := range provision.ReservationsOf(g, rec.Volume.ID) {
		if lv.Size == more && slices.Contains(rec.Work.Made, zeroedMark(&lv)) {
			ready++
		}
	}
	return ready == len(legs)
}

// zeroReservation makes the reservation of one leg and zeroes it from its start. The progress of an
// earlier reservation does not count.
func (e *Expander) zeroReservation(ctx context.Context, v *drivebay.Volume, leg int, pv string, more uint64) error {
	want, err := reservation(v, leg)
	if err != nil {
		return err
	}
	want.Size, want.PVs = more, []string{pv}
	steps, err := lvm.CreateLinear(want)
	if err != nil {
		return err
	}
	r, err := e.Groups.ReportOf(ctx, v.Location)
	if err != nil {
		return err
	}
	if lv := r.LV(want.Group, want.Name); lv != nil && lv.Size != more { // left by a request for another size
		steps = append(provision.DropVolume(want.Group, want.Name), steps...)
	}
	if err := e.Write.LVMRun(ctx, v.Location, steps); err != nil {
		return err
	}
	if r, err = e.Groups.ReportOf(ctx, v.Location); err != nil {
		return err
	}
	lv := r.LV(want.Group, want.Name)
	if lv == nil {
		return fmt.Errorf("logical volume %s/%s: %w: it was made and does not show", want.Group, want.Name, drivebay.ErrNotFound)
	}
	reserved := *v
	reserved.Location.LV, reserved.Location.Instance, reserved.Publications = want.Name, partitions.InstanceOfLV(lv), nil
	if err := e.LUKS.OverwritePiece(ctx, &reserved, "zero "+lv.UUID, 0, more, erase.ZeroRange); err != nil {
		return err
	}
	_, err = e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) error {
		if r.Work != nil && !slices.Contains(r.Work.Made, zeroedMark(lv)) {
			r.Work.Made = append(r.Work.Made, zeroedMark(lv))
		}
		return nil
	})
	return err
}

// extendOverZeroes plans the growth over the reserved extents. It returns ErrPending unless they are
// zeroed: the step before it makes them.
func (e *Expander) extendOverZeroes(v *drivebay.Volume, size uint64) func(*lvm.Report) ([]lvm.Step, error) {
	return func(r *lvm.Report) ([]lvm.Step, error) {
		g := r.Group(v.Location.VG)
		var plan []lvm.Step
		var extents []lvm.Allocation
		for _, lv := range provision.ReservationsOf(g, v.ID) {
			extents = append(extents, lv.Extents...)
			plan = append(plan, provision.DropVolume(g.Name, lv.Name)...)
		}
		if lv := partitions.LVOf(r, v.Location); lv != nil && lv.Size >= size {
			return plan, nil
		}
		rec, err := e.Ledger.Record(v.ID)
		if err == nil && !allZeroed(&rec, g, size) {
			err = fmt.Errorf("logical volume %s/%s: %w: the extents that it grows by are not zeroed", v.Location.VG, v.Location.LV, drivebay.ErrPending)
		}
		return append(plan, lvm.ExtendOver(v.Location.VG, v.Location.LV, size, extents)...), err
	}
}
