package volume

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// withIdleGroup runs do on a group while no other work runs on its volumes and snapshots.
func (e *Engine) withIdleGroup(vg string, do func(*volumeGroup) error) error {
	h := e.groupsByName()[vg]
	if h == nil {
		return fmt.Errorf("volume group %s: %w", vg, drivebay.ErrNotFound)
	}
	begun := map[string]bool{}
	for _, id := range h.ids() {
		end, err := e.begin(id)
		if err != nil {
			return fmt.Errorf("volume group %s: %w", vg, err)
		}
		defer end()
		begun[id] = true
	}
	h = e.groupsByName()[vg]
	if h == nil || slices.ContainsFunc(h.ids(), func(id string) bool { return !begun[id] }) {
		return fmt.Errorf("volume group %s: %w: a volume or snapshot was added; retry later", vg, drivebay.ErrPending)
	}
	return do(h)
}

// startMove chooses the drive that a group moves to, and records it.
func (e *Engine) startMove(ctx context.Context, h *volumeGroup, from string) error {
	r, g, err := e.groupNow(ctx, h.Location)
	if err != nil {
		return err
	}
	if err := complete(h, g, ""); err != nil {
		return err
	}
	if len(h.Drives) < drivesPerGroup(h.Kind) { // the target would be taken for the drive that is unknown
		return fmt.Errorf("volume group %s: %w: it is a mirror that was found with one of its two drives, and does not move without the other one: put that in, or copy what is on the volume and delete it", h.VG, drivebay.ErrPending)
	}
	w := want{}
	if pv := e.pvIn(r, g, from); pv != "" {
		p, _ := r.PV(pv)
		w.taken, w.whole = g.AllocatedOn(pv), p.Size
	}
	s := e.drives.Snapshot()
	for _, id := range h.Drives { // the other drive stands in for one that is gone and forgotten
		if d, ok := driveOf(s, id); ok && (w.like == nil || id == from) {
			w.like, w.block = d, d.LogicalBlock
		}
	}
	return e.withIdleGroup(h.VG, func(h *volumeGroup) error {
		e.placing.Lock()
		defer e.placing.Unlock()
		to, err := e.placementView().spare(w, h.Drives)
		if err != nil {
			return err
		}
		if err := e.onDrives(h, append(slices.Clone(h.Drives), to.ID), nil); err != nil {
			return err
		}
		e.log.Info("volume group moves", "op", "move", "group", h.VG, "from", from, "to", to.ID, "bytes", w.taken)
		return e.opt.After(h.VG, "set out")
	})
}

// spread writes the drives of a group to all its records, if one differs.
func (e *Engine) spread(h *volumeGroup) error {
	differs := func(l drivebay.Location) bool { return !slices.Equal(l.Drives, h.Drives) }
	if !slices.ContainsFunc(h.volumes, func(r *drivebay.VolumeRecord) bool { return differs(r.Volume.Location) }) &&
		!slices.ContainsFunc(h.snaps, func(r *drivebay.SnapshotRecord) bool { return differs(r.Snapshot.Location) }) {
		return nil
	}
	return e.withIdleGroup(h.VG, func(h *volumeGroup) error { return e.onDrives(h, h.Drives, nil) })
}

// onDrives writes the drives of an idle group to its records.
func (e *Engine) onDrives(h *volumeGroup, drives []string, also func(*drivebay.Volume)) error {
	for _, r := range h.volumes {
		_, err := e.change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			r.Volume.Location.Found = h.Found && len(drives) > drivesPerGroup(h.Kind)
			r.Work = workOn(r.Work, h.VG, drives)
			if r.Volume.Location.Drives = drives; also != nil {
				also(&r.Volume)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, r := range h.snaps {
		next := *r
		next.Snapshot.Location.Drives, next.Snapshot.Location.Found = drives, h.Found && len(drives) > drivesPerGroup(h.Kind)
		if err := e.putSnapshot(next); err != nil {
			return err
		}
	}
	return nil
}

// workOn returns the work on a volume whose group is on these drives now. The work names the physical
// volumes of the drives that were chosen; a drive that the group moved to has another one.
func workOn(was *drivebay.Work, group string, drives []string) *drivebay.Work {
	if was == nil || len(was.PVs) == 0 {
		return was
	}
	now := *was
	now.PVs = map[string]string{}
	for _, id := range drives {
		now.PVs[id] = cmp.Or(was.PVs[id], pvUUID(group, id))
	}
	return &now
}

// extendGroup adds a drive to a group.
func (e *Engine) extendGroup(ctx context.Context, h *volumeGroup, drive string) error {
	return e.withIdleGroup(h.VG, func(h *volumeGroup) error {
		uuid, wrote := pvUUID(h.VG, drive), new(atomic.Bool)
		plan := e.addEntry(entryOfPV("", drive, uuid), wrote)
		stranger := func(ctx context.Context) (bool, error) {
			r, err := e.reportOf(ctx, h.Location)
			if err != nil {
				return false, err
			}
			return r.Group(h.VG) != nil && e.pvIn(r, r.Group(h.VG), drive) == "", nil
		}
		plan = append(plan, when(stranger, e.verifyPVPartition(drive, uuid)), e.lvmStep("join", h.Location, wrote, func(*lvm.Report) ([]lvm.Step, error) {
			p, ok := e.pvPart(drive)
			if !ok {
				return nil, fmt.Errorf("drive %s: its physical volume: %w", drive, drivebay.ErrNotFound)
			}
			return lvm.ExtendGroup(h.VG, lvm.NewPV{UUID: uuid, Device: p.dev}), nil
		}))
		return e.run(ctx, h.VG, plan)
	})
}

// reduceGroup removes an emptied drive from a group, and the label and the partition from the drive.
func (e *Engine) reduceGroup(ctx context.Context, h *volumeGroup, head direction, pv string) error {
	return e.withIdleGroup(h.VG, func(h *volumeGroup) error {
		var plan []step
		if idle := e.planDeactivation(h); len(idle) > 0 {
			plan = append(plan, e.lvmStep("rest", h.Location, new(atomic.Bool), func(*lvm.Report) ([]lvm.Step, error) { return idle, nil }))
		}
		_, gone := e.drive(head.from)
		here := gone == nil
		if pv != "" {
			plan = append(plan, e.lvmStep("reduce", h.Location, new(atomic.Bool), func(*lvm.Report) ([]lvm.Step, error) {
				if !here {
					return lvm.RemoveMissing(h.VG, pv), nil
				}
				return lvm.ReduceGroup(h.VG, pv), nil
			}))
		}
		if here {
			plan = append(plan, e.unlabel(h, head.from))
			plan = append(plan, e.dropEntry(entry{drive: head.from, name: "physical volume of " + head.from, kind: typePV})...)
		}
		if err := e.run(ctx, h.VG, plan); err != nil {
			return err
		}
		return e.finishMove(h, head)
	})
}

// unlabel removes the label of a physical volume that left its group. It refuses one that is in a group.
func (e *Engine) unlabel(h *volumeGroup, drive string) step {
	find := func(ctx context.Context) (string, error) {
		r, err := e.reportOf(ctx, h.Location)
		if err != nil {
			return "", err
		}
		p, ok := e.pvPart(drive)
		if !ok {
			return "", nil
		}
		pv, g := r.On(p.dev)
		switch {
		case pv == nil:
			return "", nil
		case g != nil:
			return "", fmt.Errorf("drive %s: %w: its physical volume is one of group %s", drive, drivebay.ErrRefused, g.Name)
		}
		return pv.UUID, nil
	}
	return step{
		name: "unlabel " + drive,
		done: func(ctx context.Context) (bool, error) { uuid, err := find(ctx); return uuid == "" && err == nil, err },
		do: func(ctx context.Context) error {
			uuid, err := find(ctx)
			if err != nil {
				return err
			}
			return e.lvmRun(ctx, h.Location, lvm.ReduceGroup(h.VG, uuid))
		},
	}
}

// finishMove records that a group is on its new drive.
func (e *Engine) finishMove(h *volumeGroup, head direction) error {
	e.placing.Lock()
	defer e.placing.Unlock()
	n := drivesPerGroup(h.Kind)
	drives := slices.Clone(h.Drives[:n])
	if i := slices.Index(drives, head.from); i >= 0 {
		drives[i] = h.Drives[n] // a leg keeps its place
	}
	err := e.onDrives(h, drives, func(v *drivebay.Volume) {
		if moved, err := v.UsageMoved(drivebay.VolumeUsageMoved); err == nil {
			*v = moved
		}
	})
	if err != nil {
		return err
	}
	for _, r := range h.volumes {
		v := r.Volume
		v.Location.Drives = drives
		e.note(drivebay.EventVolumeMoved, &v, fmt.Sprintf("volume %q moved from drive %s to drive %s", v.Name, head.from, head.to))
	}
	return e.opt.After(h.VG, "arrive")
}

// planDeactivation plans to deactivate the logical volumes that only the move had activated.
func (e *Engine) planDeactivation(h *volumeGroup) []lvm.Step {
	var plan []lvm.Step
	for _, r := range h.volumes {
		if l := r.Volume.Location; r.Work == nil && r.Volume.Rest() == drivebay.CSICreated && h.Kind != drivebay.LocationThin {
			for _, s := range lvm.Deactivate(l.VG, l.LV) {
				done := s.Done
				s.Done = func(r *lvm.Report) bool { lv := lvOf(r, l); return lv == nil || lv.Open || done(r) }
				plan = append(plan, s)
			}
		}
	}
	return plan
}
