package mirror

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// HoldsAll refuses to take a leg out of a mirror while a remaining leg does not hold everything.
func (e *Mirrors) HoldsAll(ctx context.Context, h *groups.VolumeGroup, g *lvm.Group, name, from string) error {
	c, err := e.LVM.CopyProgress(ctx, h.VG, name)
	if err != nil {
		return err
	}
	for i, leg := range g.Legs(name) {
		if leg.PV != from && (i >= len(c.Legs) || c.Legs[i] != 'A') {
			return fmt.Errorf("mirror %s/%s: %w: the leg on physical volume %s does not hold everything", h.VG, name, drivebay.ErrRefused, leg.PV)
		}
	}
	return nil
}

// LeavesLegs is called after a volume that is being removed was wiped. It drops the volume's
// extents from the records. A leg of a mirror that the kernel left out was not wiped with
// the others: its extents are recorded.
func (e *Mirrors) LeavesLegs(ctx context.Context, v *drivebay.Volume) error {
	l := v.Location
	if !l.OnLVM() || l.Kind == drivebay.LocationThin {
		return nil
	}
	r, err := e.Groups.ReportOf(ctx, l)
	if err != nil {
		return err
	}
	g := r.Group(l.VG)
	if partitions.LVIn(g, l) == nil {
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
			err = e.Erase.LeavesExtents(g, groups.RemainsWipe(v), leg.drive, leg.pv, extents)
		} else if groups.WipeOf(v) != drivebay.WipeNone {
			err = e.Erase.StrikeOut(g, groups.WipeOf(v), leg.drive, leg.pv, g.DataOn(l.LV, leg.pv))
		}
		if err != nil {
			return err
		}
	}
	return e.leavesLostLeg(v, r, legs)
}

// leavesLostLeg records what a leg has left that another program took out of a mirror: no record says where it was, so it
// may be in any free extent of its physical volume.
func (e *Mirrors) leavesLostLeg(v *drivebay.Volume, r *lvm.Report, legs []mirrorLeg) error {
	g := r.Group(v.Location.VG)
	if g == nil || len(legs) != 1 || len(v.Location.Drives) != ledger.DrivesPerGroup(drivebay.LocationMirror) {
		return nil
	}
	for _, id := range v.Location.Drives {
		if pv := e.Groups.PVIn(r, g, id); pv != "" && pv != legs[0].pv {
			return e.Erase.LeavesFree(g, groups.RemainsWipe(v), id, pv)
		}
	}
	return nil
}
