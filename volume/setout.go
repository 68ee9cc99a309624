package volume

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// quiet does something to a group while nobody does anything to a volume or snapshot
// of it.
func (e *Engine) quiet(vg string, do func(*herd) error) error {
	h := e.herds()[vg]
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
	h = e.herds()[vg]
	if h == nil || slices.ContainsFunc(h.ids(), func(id string) bool { return !begun[id] }) {
		return fmt.Errorf("volume group %s: %w: something new came to it", vg, drivebay.ErrPending)
	}
	return do(h)
}

// setOut chooses where a group is to go, and writes it down.
func (e *Engine) setOut(ctx context.Context, h *herd, from string) error {
	r, err := e.reportOf(ctx, h.Location)
	if err != nil {
		return err
	}
	g := r.Group(h.VG)
	if g == nil {
		return fmt.Errorf("volume group %s: %w: it is not there", h.VG, drivebay.ErrNotFound)
	}
	if err := complete(h, g, ""); err != nil {
		return err
	}
	if len(h.Drives) < width(h.Kind) { // the drive that it goes to would be taken for the one that is not known
		return fmt.Errorf("volume group %s: %w: it is a mirror that was found with one of its two drives, and does not move without the other one: put that in, or copy what is on the volume and delete it", h.VG, drivebay.ErrPending)
	}
	w := want{}
	if pv := e.pvIn(r, g, from); pv != "" {
		p, _ := r.PV(pv)
		w.taken, w.whole = g.Taken(pv), p.Size
	}
	s := e.drives.Snapshot()
	for _, id := range h.Drives { // one that is gone and forgotten is known by its brother
		if d, ok := driveOf(s, id); ok && (w.like == nil || id == from) {
			w.like, w.block = d, d.LogicalBlock
		}
	}
	return e.quiet(h.VG, func(h *herd) error {
		e.placed.Lock()
		defer e.placed.Unlock()
		to, err := e.seen().spare(w, h.Drives)
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

// spread has all records of a group say on which drives it is.
func (e *Engine) spread(h *herd) error {
	differs := func(l drivebay.Location) bool { return !slices.Equal(l.Drives, h.Drives) }
	if !slices.ContainsFunc(h.volumes, func(r *drivebay.VolumeRecord) bool { return differs(r.Volume.Location) }) &&
		!slices.ContainsFunc(h.snaps, func(r *drivebay.SnapshotRecord) bool { return differs(r.Snapshot.Location) }) {
		return nil
	}
	return e.quiet(h.VG, func(h *herd) error { return e.onDrives(h, h.Drives, nil) })
}

// onDrives writes down where a group is. Nobody else is at it.
func (e *Engine) onDrives(h *herd, drives []string, also func(*drivebay.Volume)) error {
	for _, r := range h.volumes {
		_, err := e.change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			r.Volume.Location.Found = h.Found && len(drives) > width(h.Kind)
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
		next.Snapshot.Location.Drives, next.Snapshot.Location.Found = drives, h.Found && len(drives) > width(h.Kind)
		if err := e.putSnapshot(next); err != nil {
			return err
		}
	}
	return nil
}

// join makes a drive one of a group.
func (e *Engine) join(ctx context.Context, h *herd, drive string) error {
	return e.quiet(h.VG, func(h *herd) error {
		uuid, wrote := pvOf(h.VG, drive), new(atomic.Bool)
		plan := e.addEntry(entryOfPV("", drive, uuid), wrote)
		stranger := func(ctx context.Context) (bool, error) {
			r, err := e.reportOf(ctx, h.Location)
			if err != nil {
				return false, err
			}
			return r.Group(h.VG) != nil && e.pvIn(r, r.Group(h.VG), drive) == "", nil
		}
		plan = append(plan, when(stranger, e.fitPV(drive, uuid)), e.lvmStep("join", h.Location, wrote, func(*lvm.Report) ([]lvm.Step, error) {
			p, ok := e.pvPart(drive)
			if !ok {
				return nil, fmt.Errorf("drive %s: its physical volume: %w", drive, drivebay.ErrNotFound)
			}
			return lvm.ExtendGroup(h.VG, lvm.NewPV{UUID: uuid, Device: p.dev}), nil
		}))
		return e.run(ctx, h.VG, plan)
	})
}

// leave takes a drive that nothing lies on any more out of a group, and makes it what
// it was before.
func (e *Engine) leave(ctx context.Context, h *herd, head heading, pv string) error {
	return e.quiet(h.VG, func(h *herd) error {
		var plan []step
		if idle := e.idle(h); len(idle) > 0 {
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
		return e.arrive(h, head)
	})
}

// unlabel removes a label that a group has no more; one of a group is left.
func (e *Engine) unlabel(h *herd, drive string) step {
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

// arrive writes down that a group is where it was to go.
func (e *Engine) arrive(h *herd, head heading) error {
	e.placed.Lock()
	defer e.placed.Unlock()
	n := width(h.Kind)
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

// idle lets go of the devices that only the move needed.
func (e *Engine) idle(h *herd) []lvm.Step {
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
