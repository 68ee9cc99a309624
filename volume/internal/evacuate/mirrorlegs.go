package evacuate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// legs replaces the legs of a group's mirrors on one physical volume, one leg per call. A call waits
// until the other legs hold everything. busy: it has replaced a leg.
func (e *Evacuator) legs(ctx context.Context, h *groups.VolumeGroup, head groups.Direction, g *lvm.Group, from, to string) (busy bool, err error) {
	for i := range g.LVs {
		lv := &g.LVs[i]
		if lv.Type != "raid1" || lv.Parent != "" {
			continue
		}
		under := g.PhysicalVolumesOf(lv.Name)
		for _, p := range g.PVs { // the one of the three physical volumes without a leg
			if p.UUID != from && !slices.Contains(under, p.UUID) {
				to = p.UUID
			}
		}
		m := lvm.PVMove{Group: h.VG, Volume: lv.Name, From: from, To: to}
		if err := e.activateLeg(ctx, h, lv.Name); err != nil {
			return false, err
		}
		if err := e.synced(ctx, h, head, m); err != nil {
			return false, err
		}
		if !slices.Contains(under, from) {
			continue
		}
		_, now, err := e.groupNow(ctx, h.Location) // activation may have rebuilt a leg in other extents
		if err != nil {
			return false, err
		}
		if err := e.Mirror.HoldsAll(ctx, h, now, lv.Name, from); err != nil {
			return false, err
		}
		plan := lvm.ReplaceLeg(h.VG, lv.Name, from, to)
		if _, here := e.Groups.PVPart(head.From); !here {
			plan = lvm.RepairMirror(h.VG, lv.Name, to)
		}
		if err := e.Erase.LeavesData(h, now, lv.Name, head.From, from); err != nil {
			return false, err
		}
		e.Log.Info("step", "op", "move "+lv.Name, "volume", h.VG)
		if err := e.Write.LVMRun(ctx, h.Location, plan); err != nil {
			return false, err
		}
		if err := e.Opt.After(h.VG, "move "+lv.Name); err != nil {
			return false, fmt.Errorf("%w: %w", ledger.ErrStopped, err)
		}
		return true, nil
	}
	return false, nil
}

// groupNow reads the volume group of a location. It returns the report and the group in it.
func (e *Evacuator) groupNow(ctx context.Context, l drivebay.Location) (*lvm.Report, *lvm.Group, error) {
	r, err := e.Groups.ReportOf(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	if g := r.Group(l.VG); g != nil {
		return r, g, nil
	}
	return nil, nil, fmt.Errorf("volume group %s: %w: LVM does not report it", l.VG, drivebay.ErrNotFound)
}

// activateLeg activates a mirror of a group, and rejoins legs that are not used.
func (e *Evacuator) activateLeg(ctx context.Context, h *groups.VolumeGroup, name string) error {
	for _, r := range h.Volumes {
		if v := r.Volume; v.Location.LV == name {
			v.Location.Drives = h.Drives
			if _, err := e.Device.Stack(&v).Piece().Open(ctx, device.Opening{}); err != nil {
				return err
			}
			return e.Mirror.Rejoin(ctx, &v)
		}
	}
	return unrecorded(h, name)
}

func unrecorded(h *groups.VolumeGroup, lv string) error {
	return fmt.Errorf("logical volume %s/%s: %w: it is in no record", h.VG, lv, drivebay.ErrRefused)
}

// legsRecorded refuses a group with a mirror that is in no record: its legs are not replaced, and a move that has begun could neither end nor
// be taken back.
func legsRecorded(h *groups.VolumeGroup, g *lvm.Group) error {
	for i := range g.LVs {
		if lv := &g.LVs[i]; lv.Type == "raid1" && lv.Parent == "" && !slices.ContainsFunc(h.Volumes, func(r *drivebay.VolumeRecord) bool { return r.Volume.Location.LV == lv.Name }) {
			return unrecorded(h, lv.Name)
		}
	}
	return nil
}

// synced waits until all legs of a mirror that are there hold everything.
func (e *Evacuator) synced(ctx context.Context, h *groups.VolumeGroup, head groups.Direction, m lvm.PVMove) error {
	for {
		c, err := e.LVM.CopyProgress(ctx, h.VG, m.Volume)
		if err != nil {
			return err
		}
		if c.Done == c.Total && !strings.Contains(c.Legs, "a") {
			return nil
		}
		if e.reportProgress(h, m, c); !e.directionUnchanged(h.VG, head) {
			return fmt.Errorf("volume group %s: %w: the direction of the move changed", h.VG, drivebay.ErrPending)
		}
		if err := e.pause(ctx); err != nil {
			return err
		}
	}
}
