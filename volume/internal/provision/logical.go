package provision

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// logicalVolume is the piece of a volume in a volume group.
type logicalVolume struct {
	*Provisioner
	rec drivebay.VolumeRecord
}

// create plans a logical volume with the physical volumes, the group and the pool that it needs.
func (e logicalVolume) create(secrets drivebay.Secrets, wrote *atomic.Bool) ([]steps.Step, error) {
	v, work := &e.rec.Volume, e.rec.Work
	if work == nil || len(work.PVs) != len(v.Location.Drives) {
		return nil, fmt.Errorf("volume group %s: %w: its physical volumes are not written down", v.Location.VG, drivebay.ErrNotFound)
	}
	plan := e.makeGroup(v.ID, v.Location, work.PVs, wrote)
	if v.Location.Kind == drivebay.LocationThin {
		plan = append(plan, e.makePool(v.Location, wrote))
	}
	commands, err := e.makeVolume()
	if err != nil {
		return nil, err
	}
	made := func(r *lvm.Report) ([]lvm.Step, error) {
		return commands, place.FitsPool(r, v.Location, max(v.Size+place.OverheadOf(v), e.sizeOfSource(r)))
	}
	plan = append(plan, e.unfilled(v.ID, e.Write.LVMStep("volume", v.Location, wrote, made)))
	complete, err := e.complete(secrets, wrote)
	return append(plan, complete...), err
}

func (e logicalVolume) complete(secrets drivebay.Secrets, wrote *atomic.Bool) (plan []steps.Step, err error) {
	v := &e.rec.Volume
	copied := v.Source != (drivebay.Source{})
	zeroed := v.Location.Kind == drivebay.LocationThin && v.RawBlocks() // by the pool itself
	if !copied && !zeroed {
		for _, s := range e.filled(v, secrets) {
			plan = append(plan, write.When(e.Write.HalfMade(v), s))
		}
	}
	if v.Location.Kind == drivebay.LocationMirror {
		plan = append(plan, write.When(e.Write.HalfMade(v), e.legs(v)))
	}
	var finish []lvm.Step
	if !v.AwaitsKey {
		finish, err = lvm.TagVolume(v.Location.VG, v.Location.LV, nil, []string{groups.StateTag()})
	}
	finish = append(finish, lvm.Deactivate(v.Location.VG, v.Location.LV)...)
	return append(plan, e.Write.LVMStep("finish", v.Location, wrote, func(*lvm.Report) ([]lvm.Step, error) { return finish, nil })), err
}

// legs returns the step that has all of a new mirror on both legs: a drive that was pulled and put back since its first
// write has not.
func (e logicalVolume) legs(v *drivebay.Volume) steps.Step {
	return steps.Step{Name: "legs",
		Done: func(ctx context.Context) (bool, error) { return e.Mirror.Attached(ctx, v) },
		Do:   func(ctx context.Context) error { return e.Mirror.Rejoin(ctx, v) }}
}

// sizeOfSource returns the size of the logical volume that a copy is made of, by a report; 0: it is not a copy, or not listed. The source may
// have grown since the copy was requested.
func (e logicalVolume) sizeOfSource(r *lvm.Report) uint64 {
	if e.rec.Volume.Source == (drivebay.Source{}) {
		return 0
	}
	if o, err := e.originOf(e.rec.Volume.Source); err == nil {
		if lv := partitions.LVOf(r, o.Location); lv != nil {
			return lv.Size
		}
	}
	return 0
}

func (e logicalVolume) makeVolume() ([]lvm.Step, error) {
	v := &e.rec.Volume
	t, err := instances.VolumeTags(v)
	if err != nil {
		return nil, err
	}
	lv := lvm.Volume{Group: v.Location.VG, Name: v.Location.LV, Size: v.Size + place.OverheadOf(v), Tags: t}
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
			lv.PVs = append(lv.PVs, e.rec.Work.PVs[id])
		}
		return lvm.CreateMirror(lv)
	}
	return lvm.CreateLinear(lv)
}

// makeGroup plans a group on partitions of their own, one for each drive.
func (e logicalVolume) makeGroup(owner string, l drivebay.Location, pvs map[string]string, wrote *atomic.Bool) []steps.Step {
	var plan []steps.Step
	for _, id := range l.Drives {
		n := write.EntryOfPV(owner, id, pvs[id])
		plan = append(plan, e.Write.AddEntry(n, wrote)...)
		plan = append(plan, e.Write.VerifyPVPartition(id, pvs[id]))
	}
	return append(plan, e.Write.LVMStep("group", l, wrote, func(*lvm.Report) ([]lvm.Step, error) {
		kind, err := groups.Tags(map[string]string{place.KindKey: l.Kind.String()})
		if err != nil {
			return nil, err
		}
		var members []lvm.NewPV
		for _, id := range l.Drives {
			p, ok := e.Groups.PVPart(id)
			if !ok {
				return nil, fmt.Errorf("drive %s: its physical volume: %w", id, drivebay.ErrNotFound)
			}
			members = append(members, lvm.NewPV{UUID: pvs[id], Device: p.Dev})
		}
		return lvm.CreateGroup(l.VG, kind, members...)
	}))
}

// makePool plans the one thin pool of a group; the pool takes all of the group.
func (e logicalVolume) makePool(l drivebay.Location, wrote *atomic.Bool) steps.Step {
	return e.Write.LVMStep("pool", l, wrote, func(r *lvm.Report) ([]lvm.Step, error) {
		g := r.Group(l.VG)
		if g == nil {
			return nil, fmt.Errorf("volume group %s: %w", l.VG, drivebay.ErrNotFound)
		}
		all := g.Size / lvm.ExtentSize
		data := place.PoolExtents(all)
		if data == 0 {
			return nil, fmt.Errorf("volume group %s: %w: it has %d extents, too few for a thin pool", l.VG, drivebay.ErrNoSpace, all)
		}
		return lvm.CreatePool(lvm.Volume{Group: l.VG, Name: l.Pool, Size: data * lvm.ExtentSize}, place.PoolMetadata(all)*lvm.ExtentSize)
	})
}

// remove plans to remove a logical volume, and what was made for it and has no other use.
func (e logicalVolume) remove() ([]steps.Step, error) {
	v := &e.rec.Volume
	l, wrote := v.Location, new(atomic.Bool)
	there := func(ctx context.Context) (bool, error) {
		r, err := e.Write.MaybeReport(ctx, l)
		if err != nil || partitions.LVOf(r, l) != nil {
			return err == nil, err
		}
		rec, err := e.Ledger.Record(v.ID)
		if err != nil {
			return false, err
		}
		if err := e.Inventory.Absent(r, v.ID, l, rec.Work); err != nil || !partitions.MustBeThere(rec.Work) {
			return false, err
		}
		return false, inventory.Unwiped(v.ID, l) // LVM frees the extents of what it removes, with their data
	}
	mark, err := lvm.TagVolume(l.VG, l.LV, []string{groups.StateTag(), groups.RemovingTag()}, nil)
	if err != nil {
		return nil, err
	}
	mark[0].May = func(r *lvm.Report) error { return groups.MayRemove(r, l) } // what was made in the meantime is kept
	mark = append(mark, e.Device.Appearing(v)...)
	drop := append(lvm.Deactivate(l.VG, l.LV), lvm.Remove(l.VG, l.LV)...)
	plan := []steps.Step{
		write.When(there, e.Write.LVMStep("restore", l, wrote, func(r *lvm.Report) ([]lvm.Step, error) { return write.RestoreReturned(r.Group(l.VG)), nil })),
		write.When(there, e.Write.LVMStep("mark", l, wrote, func(*lvm.Report) ([]lvm.Step, error) { return mark, nil })),
	}
	if len(l.Drives) < ledger.DrivesPerGroup(l.Kind) {
		plan = []steps.Step{write.When(there, e.Write.LVMStep("activate", l, wrote, func(*lvm.Report) ([]lvm.Step, error) { return e.Device.Appearing(v), nil }))}
	}
	plan = append(append(plan, e.Device.Stack(v).Erase(there)...), e.Wiped(v, there),
		write.When(there, e.DropReservations(v)),
		write.When(there, steps.Step{Name: "volume",
			Done: func(ctx context.Context) (bool, error) { is, err := there(ctx); return !is, err },
			Do:   func(ctx context.Context) error { return e.Write.LVMRun(ctx, l, drop) }}))
	if len(l.Drives) < ledger.DrivesPerGroup(l.Kind) {
		plan = append(plan, e.Write.RemoveLostPV(l))
	}
	return append(plan, e.Write.RemoveUnusedGroup(l, v.ID), e.Write.NoRemains(l)), nil
}
