package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// makeLogical plans a logical volume with the physical volumes, the group and the pool that it needs.
func (e *Engine) makeLogical(rec *drivebay.VolumeRecord, secrets drivebay.Secrets, wrote *atomic.Bool) ([]step, error) {
	v := &rec.Volume
	if rec.Work == nil || len(rec.Work.PVs) != len(v.Location.Drives) {
		return nil, fmt.Errorf("volume group %s: %w: its physical volumes are not written down", v.Location.VG, drivebay.ErrNotFound)
	}
	plan := e.makeGroup(v.ID, v.Location, rec.Work.PVs, wrote)
	if v.Location.Kind == drivebay.LocationThin {
		plan = append(plan, e.makePool(v.Location, wrote))
	}
	made, err := e.makeVolume(rec)
	if err != nil {
		return nil, err
	}
	plan = append(plan, e.lvmStep("volume", v.Location, wrote, func(*lvm.Report) ([]lvm.Step, error) { return made, nil }))
	copied := v.Source != (drivebay.Source{})
	zeroed := v.Location.Kind == drivebay.LocationThin && v.Mode != drivebay.ModeFS && v.LUKSUUID == "" // by the pool itself
	if !copied && !zeroed {
		for _, s := range e.filled(v, secrets) {
			plan = append(plan, when(e.halfMade(v), s))
		}
	}
	finish, err := lvm.TagVolume(v.Location.VG, v.Location.LV, nil, []string{stateTag()})
	finish = append(finish, lvm.Deactivate(v.Location.VG, v.Location.LV)...)
	return append(plan, e.lvmStep("finish", v.Location, wrote, func(*lvm.Report) ([]lvm.Step, error) { return finish, nil })), err
}

// halfMade reports whether a logical volume is being made: only then is it cleared.
func (e *Engine) halfMade(v *drivebay.Volume) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		r, err := e.reportOf(ctx, v.Location)
		if err != nil {
			return false, err
		}
		lv := lvOf(r, v.Location)
		return lv != nil && slices.Contains(lv.Tags, stateTag()), nil
	}
}

func (e *Engine) makeVolume(rec *drivebay.VolumeRecord) ([]lvm.Step, error) {
	v := &rec.Volume
	t, err := volumeTags(v)
	if err != nil {
		return nil, err
	}
	lv := lvm.Volume{Group: v.Location.VG, Name: v.Location.LV, Size: v.Size + overhead(v.LUKSUUID), Tags: t}
	switch {
	case v.Source != (drivebay.Source{}):
		origin, err := e.originOf(v.Source)
		if err != nil {
			return nil, err
		}
		steps, err := lvm.Clone(lv, origin.LV)
		return append(steps, lvm.Extend(lv.Group, lv.Name, lv.Size)...), err
	case v.Location.Kind == drivebay.LocationThin:
		return lvm.CreateThin(lv, v.Location.Pool)
	case v.Location.Kind == drivebay.LocationMirror:
		for _, id := range v.Location.Drives {
			lv.PVs = append(lv.PVs, rec.Work.PVs[id])
		}
		return lvm.CreateMirror(lv)
	}
	return lvm.CreateLinear(lv)
}

// makeGroup plans a group on partitions of their own, one for each drive.
func (e *Engine) makeGroup(owner string, l drivebay.Location, pvs map[string]string, wrote *atomic.Bool) []step {
	var plan []step
	for _, id := range l.Drives {
		n := entryOfPV(owner, id, pvs[id])
		plan = append(plan, e.addEntry(n, wrote)...)
		plan = append(plan, e.verifyPVPartition(id, pvs[id]))
	}
	return append(plan, e.lvmStep("group", l, wrote, func(*lvm.Report) ([]lvm.Step, error) {
		kind, err := tags(map[string]string{kindKey: l.Kind.String()})
		if err != nil {
			return nil, err
		}
		var members []lvm.NewPV
		for _, id := range l.Drives {
			p, ok := e.pvPart(id)
			if !ok {
				return nil, fmt.Errorf("drive %s: its physical volume: %w", id, drivebay.ErrNotFound)
			}
			members = append(members, lvm.NewPV{UUID: pvs[id], Device: p.dev})
		}
		return lvm.CreateGroup(l.VG, kind, members...)
	}))
}

func (e *Engine) pvPart(drive string) (part, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pvOn(e.index.parts[drive])
}

// makePool plans the one thin pool of a group; the pool takes all of the group.
func (e *Engine) makePool(l drivebay.Location, wrote *atomic.Bool) step {
	return e.lvmStep("pool", l, wrote, func(r *lvm.Report) ([]lvm.Step, error) {
		g := r.Group(l.VG)
		if g == nil {
			return nil, fmt.Errorf("volume group %s: %w", l.VG, drivebay.ErrNotFound)
		}
		all := g.Size / lvm.ExtentSize
		data := poolExtents(all)
		if data == 0 {
			return nil, fmt.Errorf("volume group %s: %w: it has %d extents, too few for a thin pool", l.VG, drivebay.ErrNoSpace, all)
		}
		return lvm.CreatePool(lvm.Volume{Group: l.VG, Name: l.Pool, Size: data * lvm.ExtentSize}, poolMetadata(all)*lvm.ExtentSize)
	})
}

// verifyPVPartition refuses the partition of a physical volume unless it is blank or holds that physical
// volume. It was blank before it was in the table, and another creation at the same time may have made the
// physical volume since.
func (e *Engine) verifyPVPartition(drive, uuid string) step {
	fits := func(_ context.Context, disk host.Disk) error {
		c := content.Detect(disk, disk.Size(), disk.BlockSize())
		is := func(s drivebay.Signature) bool {
			return s.Format == "LVM2_member" && strings.ReplaceAll(s.UUID, "-", "") == strings.ReplaceAll(uuid, "-", "")
		}
		if c.Kind == drivebay.ContentBlank || c.Reason == "" && slices.ContainsFunc(c.Signatures, is) {
			return nil
		}
		return fmt.Errorf("drive %s: its physical volume: %w: it is not blank: %w", drive, drivebay.ErrRefused, cannotBlank(c))
	}
	return step{name: "fit " + pvName(uuid), done: func(ctx context.Context) (bool, error) {
		p, ok := e.pvPart(drive)
		if !ok {
			return false, fmt.Errorf("drive %s: its physical volume: %w", drive, drivebay.ErrNotFound)
		}
		t := writeTarget{device: p.device, drives: []string{drive}, on: drive}
		return true, e.onDisk(ctx, "volume "+p.title, t, fits)
	}}
}

// clearRemoved clears the partition of a physical volume that was removed, unless it holds another one by
// now: none can be made while the device is open alone.
func (e *Engine) clearRemoved(ctx context.Context, drive string) error {
	p, ok := e.pvPart(drive)
	if !ok {
		return nil
	}
	t := writeTarget{device: p.device, drives: []string{drive}, on: drive, alone: true}
	return e.onDisk(ctx, "volume "+p.title, t, func(ctx context.Context, disk host.Disk) error {
		if labelled, err := hasLabel(disk, 0); err != nil || labelled {
			return err
		}
		return clearMarks(ctx, disk)
	})
}

// removeLogical plans to remove a logical volume, and what was made for it and has no other use.
func (e *Engine) removeLogical(v *drivebay.Volume) ([]step, error) {
	l, wrote := v.Location, new(atomic.Bool)
	there := func(ctx context.Context) (bool, error) {
		r, err := e.maybeReport(ctx, l)
		if err != nil || lvOf(r, l) != nil {
			return err == nil, err
		}
		if rec, err := e.record(v.ID); err != nil || !mustBeThere(rec.Work) {
			return false, err
		}
		return false, e.allSeen(r, v.ID, l)
	}
	mark, err := lvm.TagVolume(l.VG, l.LV, []string{stateTag()}, nil)
	if err != nil {
		return nil, err
	}
	mark = append(mark, e.appearing(v)...)
	drop := append(lvm.Deactivate(l.VG, l.LV), lvm.Remove(l.VG, l.LV)...)
	plan := []step{
		when(there, e.lvmStep("restore", l, wrote, func(r *lvm.Report) ([]lvm.Step, error) { return restoreReturned(r.Group(l.VG)), nil })),
		when(there, e.lvmStep("mark", l, wrote, func(*lvm.Report) ([]lvm.Step, error) { return mark, nil })),
	}
	if len(l.Drives) < drivesPerGroup(l.Kind) {
		plan = []step{when(there, e.lvmStep("activate", l, wrote, func(*lvm.Report) ([]lvm.Step, error) { return e.appearing(v), nil }))}
	}
	plan = append(append(plan, e.erased(v, there)...), e.wiped(v, there),
		when(there, e.dropReservations(v)),
		when(there, step{name: "volume",
			done: func(ctx context.Context) (bool, error) { is, err := there(ctx); return !is, err },
			do:   func(ctx context.Context) error { return e.lvmRun(ctx, l, drop) }}))
	if len(l.Drives) < drivesPerGroup(l.Kind) {
		plan = append(plan, e.removeLostPV(l))
	}
	return append(plan, e.removeUnusedGroup(l, v.ID), e.noRemains(l)), nil
}

// restoreReturned plans to use the physical volumes again that LVM counts as missing and that are there:
// LVM changes no group while it counts any as missing. The activation of a mirror decides which of its
// legs are complete.
func restoreReturned(g *lvm.Group) (plan []lvm.Step) {
	if g == nil {
		return nil
	}
	for _, p := range g.PVs {
		if p.Missing && p.Device != "" {
			plan = append(plan, lvm.RestoreMissing(g.Name, p.UUID)...)
		}
	}
	return plan
}
