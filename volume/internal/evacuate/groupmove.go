package evacuate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// withIdleGroup runs do on a group while no other work runs on its volumes and snapshots.
func (e *Evacuator) withIdleGroup(vg string, do func(*groups.VolumeGroup) error) error {
	h := e.Groups.GroupsByName()[vg]
	if h == nil {
		return fmt.Errorf("volume group %s: %w", vg, drivebay.ErrNotFound)
	}
	begun := map[string]bool{}
	for _, id := range h.IDs() {
		end, err := e.Ledger.Begin(id)
		if err != nil {
			return fmt.Errorf("volume group %s: %w", vg, err)
		}
		defer end()
		begun[id] = true
	}
	h = e.Groups.GroupsByName()[vg]
	if h == nil || slices.ContainsFunc(h.IDs(), func(id string) bool { return !begun[id] }) {
		return fmt.Errorf("volume group %s: %w: a volume or snapshot was added; retry later", vg, drivebay.ErrPending)
	}
	return do(h)
}

// startMove chooses the drive that a group moves to, and records it.
func (e *Evacuator) startMove(ctx context.Context, h *groups.VolumeGroup, from string) error {
	r, g, err := e.groupNow(ctx, h.Location)
	if err != nil {
		return err
	}
	if err := errors.Join(complete(h, g, ""), legsRecorded(h, g), e.Inventory.Intact(h.Location, r)); err != nil { // or the move begins and cannot go on
		return err
	}
	if len(h.Drives) < ledger.DrivesPerGroup(h.Kind) { // the target would be taken for the drive that is unknown
		return fmt.Errorf("volume group %s: %w: it is a mirror that was found with one of its two drives, and does not move without the other one: put that in, or copy what is on the volume and delete it", h.VG, drivebay.ErrPending)
	}
	w := inventory.WantLike(e.Drives.Snapshot(), h.Drives, from, g, e.Groups.PVIn(r, g, from))
	return e.withIdleGroup(h.VG, func(h *groups.VolumeGroup) error {
		e.Provision.Placing.Lock()
		defer e.Provision.Placing.Unlock()
		to, err := e.Inventory.PlacementView().Spare(w, h.Drives)
		if err != nil {
			return err
		}
		if err := e.onDrives(h, append(slices.Clone(h.Drives), to.ID), nil); err != nil {
			return err
		}
		e.Log.Info("volume group moves", "op", "move", "group", h.VG, "from", from, "to", to.ID, "bytes", w.Taken)
		return e.Opt.After(h.VG, "set out")
	})
}

// spread writes the drives of a group to all its records, if one differs.
func (e *Evacuator) spread(h *groups.VolumeGroup) error {
	differs := func(l drivebay.Location) bool { return !slices.Equal(l.Drives, h.Drives) }
	if !slices.ContainsFunc(h.Volumes, func(r *drivebay.VolumeRecord) bool { return differs(r.Volume.Location) }) &&
		!slices.ContainsFunc(h.Snaps, func(r *drivebay.SnapshotRecord) bool { return differs(r.Snapshot.Location) }) {
		return nil
	}
	return e.withIdleGroup(h.VG, func(h *groups.VolumeGroup) error { return e.onDrives(h, h.Drives, nil) })
}

// onDrives writes the drives of an idle group to its records.
func (e *Evacuator) onDrives(h *groups.VolumeGroup, drives []string, also func(*drivebay.Volume)) error {
	for _, r := range h.Volumes {
		_, err := e.Ledger.Change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			r.Volume.Location.Found = h.Found && len(drives) > ledger.DrivesPerGroup(h.Kind)
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
	for _, r := range h.Snaps {
		next := *r
		next.Snapshot.Location.Drives, next.Snapshot.Location.Found = drives, h.Found && len(drives) > ledger.DrivesPerGroup(h.Kind)
		if err := e.Snapshots.PutSnapshot(next); err != nil {
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
		now.PVs[id] = cmp.Or(was.PVs[id], groups.PVUUID(group, id))
	}
	return &now
}

// extendGroup adds a drive to a group.
func (e *Evacuator) extendGroup(ctx context.Context, h *groups.VolumeGroup, drive string) error {
	return e.withIdleGroup(h.VG, func(h *groups.VolumeGroup) error {
		uuid, wrote := groups.PVUUID(h.VG, drive), new(atomic.Bool)
		plan := e.Write.AddEntry(write.EntryOfPV("", drive, uuid), wrote)
		stranger := func(ctx context.Context) (bool, error) {
			r, err := e.Groups.ReportOf(ctx, h.Location)
			if err != nil {
				return false, err
			}
			return r.Group(h.VG) != nil && e.Groups.PVIn(r, r.Group(h.VG), drive) == "", nil
		}
		plan = append(plan, write.When(stranger, e.Write.VerifyPVPartition(drive, uuid)), e.Write.LVMStep("join", h.Location, wrote, func(*lvm.Report) ([]lvm.Step, error) {
			p, ok := e.Groups.PVPart(drive)
			if !ok {
				return nil, fmt.Errorf("drive %s: its physical volume: %w", drive, drivebay.ErrNotFound)
			}
			return lvm.ExtendGroup(h.VG, lvm.NewPV{UUID: uuid, Device: p.Dev}), nil
		}))
		return e.Steps.Run(ctx, h.VG, plan)
	})
}

// reduceGroup removes an emptied drive from a group, and the label and the partition from the drive.
func (e *Evacuator) reduceGroup(ctx context.Context, h *groups.VolumeGroup, head groups.Direction, pv string) error {
	return e.withIdleGroup(h.VG, func(h *groups.VolumeGroup) error {
		var plan []steps.Step
		if idle := e.planDeactivation(h); len(idle) > 0 {
			plan = append(plan, e.Write.LVMStep("rest", h.Location, new(atomic.Bool), func(*lvm.Report) ([]lvm.Step, error) { return idle, nil }))
		}
		_, gone := e.Partitions.Drive(head.From)
		here := gone == nil
		if pv != "" {
			plan = append(plan, e.Write.LVMStep("reduce", h.Location, new(atomic.Bool), func(*lvm.Report) ([]lvm.Step, error) {
				if !here {
					return lvm.RemoveMissing(h.VG, pv), nil
				}
				return lvm.ReduceGroup(h.VG, pv), nil
			}))
		}
		if here {
			plan = append(plan, e.unlabel(h, head.From))
			plan = append(plan, e.Write.DropEntry(write.Entry{Drive: head.From, Name: "physical volume of " + head.From, Kind: ledger.TypePV})...)
		}
		if err := e.Steps.Run(ctx, h.VG, plan); err != nil {
			return err
		}
		return e.finishMove(h, head)
	})
}

// unlabel removes the label of a physical volume that left its group. It refuses one that is in a group.
func (e *Evacuator) unlabel(h *groups.VolumeGroup, drive string) steps.Step {
	find := func(ctx context.Context) (string, error) {
		r, err := e.Groups.ReportOf(ctx, h.Location)
		if err != nil {
			return "", err
		}
		p, ok := e.Groups.PVPart(drive)
		if !ok {
			return "", nil
		}
		pv, g := r.On(p.Dev)
		switch {
		case pv == nil:
			return "", nil
		case g != nil:
			return "", fmt.Errorf("drive %s: %w: its physical volume is one of group %s", drive, drivebay.ErrRefused, g.Name)
		}
		return pv.UUID, nil
	}
	return steps.Step{
		Name: "unlabel " + drive,
		Done: func(ctx context.Context) (bool, error) { uuid, err := find(ctx); return uuid == "" && err == nil, err },
		Do: func(ctx context.Context) error {
			uuid, err := find(ctx)
			if err != nil {
				return err
			}
			return e.Write.LVMRun(ctx, h.Location, lvm.ReduceGroup(h.VG, uuid))
		},
	}
}

// finishMove records that a group is on its new drive.
func (e *Evacuator) finishMove(h *groups.VolumeGroup, head groups.Direction) error {
	e.Provision.Placing.Lock()
	defer e.Provision.Placing.Unlock()
	n := ledger.DrivesPerGroup(h.Kind)
	drives := slices.Clone(h.Drives[:n])
	if i := slices.Index(drives, head.From); i >= 0 {
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
	for _, r := range h.Volumes {
		v := r.Volume
		v.Location.Drives = drives
		e.Ledger.Note(drivebay.EventVolumeMoved, &v, fmt.Sprintf("volume %q moved from drive %s to drive %s", v.Name, head.From, head.To))
	}
	return e.Opt.After(h.VG, "arrive")
}

// planDeactivation plans to deactivate the logical volumes that only the move had activated.
func (e *Evacuator) planDeactivation(h *groups.VolumeGroup) []lvm.Step {
	var plan []lvm.Step
	for _, r := range h.Volumes {
		if l := r.Volume.Location; r.Work == nil && r.Volume.Rest() == drivebay.CSICreated && h.Kind != drivebay.LocationThin {
			for _, s := range lvm.Deactivate(l.VG, l.LV) {
				done := s.Done
				s.Done = func(r *lvm.Report) bool { lv := partitions.LVOf(r, l); return lv == nil || lv.Open || done(r) }
				plan = append(plan, s)
			}
		}
	}
	return plan
}

// DeactivatePool deactivates a thin pool whose volumes are all released.
func (e *Evacuator) DeactivatePool(ctx context.Context, l drivebay.Location) error {
	needed := slices.ContainsFunc(e.Ledger.All(), func(r *drivebay.VolumeRecord) bool {
		return r.Volume.Location.VG == l.VG && r.Volume.Usage != drivebay.VolumeReleased
	})
	if l.Pool == "" || needed {
		return nil
	}
	return e.Groups.LVMActivate(ctx, l, lvm.Deactivate(l.VG, l.Pool))
}

// IsUnused reports whether a volume is released: then its snapshots are not needed either.
func (e *Evacuator) IsUnused(id string) bool {
	r, err := e.Ledger.Record(id)
	return err == nil && r.Volume.Usage == drivebay.VolumeReleased
}
