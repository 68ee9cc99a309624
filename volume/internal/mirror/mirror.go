package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// mirrorLegs returns the legs of a mirror as a report has them. A leg on no drive that is there is
// assigned to the remaining drive of the location.
func (e *Mirrors) mirrorLegs(l drivebay.Location, g *lvm.Group, r *lvm.Report) []mirrorLeg {
	if g == nil {
		return nil
	}
	s := e.Drives.Snapshot()
	var out []mirrorLeg
	left := slices.Clone(l.Drives)
	for i, leg := range g.Legs(l.LV) {
		one := mirrorLeg{pv: leg.PV, position: i}
		for _, id := range l.Drives {
			dev := e.pvDevice(id)
			if pv, _ := r.On(dev); dev != "" && pv != nil && pv.UUID == leg.PV {
				one.drive, one.here, one.flagged = id, DriveHere(s, id), pv.Missing
				left = slices.DeleteFunc(left, func(x string) bool { return x == id })
			}
		}
		out = append(out, one)
	}
	for i := range out {
		if out[i].drive == "" && len(left) == 1 {
			out[i].drive = left[0]
		}
	}
	return out
}

// pvDevice returns the device of our physical volume on a drive: the current one, or the one at the
// last report of LVM.
func (e *Mirrors) pvDevice(drive string) string {
	if p, ok := e.Groups.PVPart(drive); ok {
		return p.Dev
	}
	if x := e.Groups.LVMNow(); x != nil {
		return x.PVs[drive]
	}
	return ""
}

// readSuperblocks reads the superblocks of the legs that are there. A leg that cannot be read keeps
// nil.
func (e *Mirrors) readSuperblocks(ctx context.Context, l drivebay.Location, r *lvm.Report, legs []mirrorLeg) {
	g := r.Group(l.VG)
	if g == nil {
		return
	}
	known := g.Legs(l.LV)
	for i := range legs {
		leg := &legs[i]
		pv, _ := r.PV(leg.pv)
		p, ok := e.Groups.PVPart(leg.drive)
		if !leg.here || !ok || pv == nil || i >= len(known) || known[i].Meta == nil {
			continue
		}
		at := pv.DataStart + known[i].Meta.Start*g.ExtentSize
		var super lvm.Superblock
		err := e.Erase.OnDisk(ctx, "volume "+p.Title, device.WriteTarget{Device: p.Device, On: leg.drive}, func(_ context.Context, disk host.Disk) error {
			b := make([]byte, lvm.SuperblockSize)
			if _, err := disk.ReadMedium(b, int64(at)); err != nil {
				return err
			}
			var err error
			super, err = lvm.ParseSuperblock(b)
			return err
		})
		if err == nil {
			leg.super = &super
		} else {
			e.Log.Warn("metadata of a mirror's leg not read", "op", "mirror", "volume", l.LV, "drive", leg.drive, "err", err)
		}
	}
}

// live records what the kernel reports of a mirror. It returns false without an active device of two
// legs.
func (e *Mirrors) live(ctx context.Context, v *drivebay.Volume, legs []mirrorLeg) (lvm.Copy, bool, error) {
	decided := e.mirrorDecisions.Load()
	c, err := e.LVM.CopyProgress(ctx, v.Location.VG, v.Location.LV)
	switch {
	case errors.Is(err, lvm.ErrNotFound), errors.Is(err, drivebay.ErrInvalid): // inactive, or of one leg
		return c, false, nil
	case err != nil:
		return c, false, err
	}
	boot, legs := e.Boot(), e.attached(v.Location, legs)
	return c, true, e.changeMirror(v.ID, func(m drivebay.Mirror) (drivebay.Mirror, bool) {
		if e.mirrorDecisions.Load() != decided { // the kernel reported the previous device
			return m, false
		}
		return learnLive(m, legs, c, boot)
	})
}

// attached returns the legs of an active mirror as the kernel has them: it writes to a leg whose label or partition table is damaged, and not to one
// whose drive left and is back.
func (e *Mirrors) attached(l drivebay.Location, legs []mirrorLeg) []mirrorLeg {
	out, s := slices.Clone(legs), e.Drives.Snapshot()
	lv := partitions.LVIn(e.Groups.LVMNow().Group(l.VG), l)
	if lv == nil || !lv.Active {
		return out
	}
	for i := range out {
		if is, known := e.Device.LegAttached(l, groups.NumOf(lv), i); known {
			out[i].here = is && (out[i].drive == "" || DriveHere(s, out[i].drive))
		}
	}
	return out
}

// changeMirror records a change of what is known of the legs of a mirror.
func (e *Mirrors) changeMirror(id string, f func(drivebay.Mirror) (next drivebay.Mirror, is bool)) error {
	next := func(v *drivebay.Volume) *drivebay.Mirror {
		var was drivebay.Mirror
		if v.Mirror != nil {
			was = *v.Mirror
		}
		m, is := f(was)
		if !is || v.Mirror != nil && m == was {
			return v.Mirror
		}
		return &m
	}
	rec, err := e.Ledger.Record(id)
	if err != nil || next(&rec.Volume) == rec.Volume.Mirror {
		return err
	}
	rec, err = e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		r.Volume.Mirror = next(&r.Volume)
		return nil
	})
	if m := rec.Volume.Mirror; err == nil && m != nil && (m.Current != "" || m.Doubt != "") {
		e.Log.Info("a leg of a mirror is behind", "op", "mirror", "volume", id, "current", m.Current, "doubt", m.Doubt)
	}
	return err
}

// sourceNow decides which legs a mirror is to be activated from. alone is the drive of the only leg
// that may be used, even if another one is there. It records why none may.
func (e *Mirrors) sourceNow(ctx context.Context, v *drivebay.Volume) (alone string, err error) {
	r, err := e.Groups.ReportOf(ctx, v.Location)
	if err != nil {
		return "", err
	}
	legs := e.mirrorLegs(v.Location, r.Group(v.Location.VG), r)
	if len(legs) == 0 {
		return "", fmt.Errorf("logical volume %s/%s: %w", v.Location.VG, v.Location.LV, drivebay.ErrNotFound)
	}
	c, active, err := e.live(ctx, v, legs)
	if err != nil {
		return "", err
	}
	rec, err := e.Ledger.Record(v.ID)
	if err != nil {
		return "", err
	}
	m := rec.Volume.Mirror
	if whole, _ := liveLegs(legs, c); active && len(whole) == len(legs) { // every write is on both legs
		m = &drivebay.Mirror{}
	}
	e.readSuperblocks(ctx, v.Location, r, legs)
	source, err := mirrorSource(m, withoutFlagged(legs))
	if err != nil && slices.ContainsFunc(legs, func(l mirrorLeg) bool { return l.here && l.flagged }) {
		if restoreErr := e.Write.LVMRun(ctx, v.Location, write.RestoreReturned(r.Group(v.Location.VG))); restoreErr != nil {
			return "", errors.Join(err, restoreErr)
		}
		source, err = mirrorSource(m, legs)
	}
	if err != nil {
		return "", errors.Join(err, e.doubt(v.ID, err))
	}
	return source, nil
}

// BothLegs refuses to grow a mirror while a leg does not hold everything. A growth reloads the table,
// and the kernel then uses every leg that it can read: it would copy from a leg that missed writes
// (drivers/md/dm-raid.c, super_validate).
func (e *Mirrors) BothLegs(ctx context.Context, v *drivebay.Volume, size uint64) error {
	if v.Location.Kind != drivebay.LocationMirror {
		return nil
	}
	r, err := e.Groups.ReportOf(ctx, v.Location)
	if err != nil {
		return err
	}
	g := r.Group(v.Location.VG)
	if lv := partitions.LVOf(r, v.Location); lv != nil && lv.Size >= size+place.OverheadOf(v) {
		return nil
	}
	alone, err := e.sourceNow(ctx, v)
	if err != nil {
		return e.nameNewest(err)
	}
	legs := e.mirrorLegs(v.Location, g, r)
	c, active, err := e.live(ctx, v, legs)
	if err != nil {
		return err
	}
	rec, err := e.Ledger.Record(v.ID)
	if err != nil {
		return err
	}
	_, dropped := liveLegs(legs, c)
	behind := len(legs) != ledger.DrivesPerGroup(v.Location.Kind) || alone != "" || rec.Volume.Mirror != nil && rec.Volume.Mirror.Current != "" || active && len(dropped) > 0
	for _, leg := range legs {
		behind = behind || !leg.here || active && e.leftOut(v.Location, g, leg, 'A')
	}
	if behind {
		return fmt.Errorf("%w: one of its legs does not hold everything; put its drive back, or run `drivebay heal %s`, and try again", drivebay.ErrPending, v.ID)
	}
	return nil
}

// Attached reports whether the kernel writes to all legs of a mirror that is active, and records it if not. An inactive one is written
// to by nothing.
func (e *Mirrors) Attached(ctx context.Context, v *drivebay.Volume) (bool, error) {
	r, err := e.Groups.ReportOf(ctx, v.Location)
	if err != nil {
		return false, err
	}
	legs := e.mirrorLegs(v.Location, r.Group(v.Location.VG), r)
	c, active, err := e.live(ctx, v, legs)
	if err != nil || !active {
		return err == nil, err
	}
	for i, leg := range e.attached(v.Location, legs) {
		if !leg.here || i < len(c.Legs) && c.Legs[i] == 'D' {
			return false, nil
		}
	}
	return true, nil
}

// doubt records why no leg may be used.
func (e *Mirrors) doubt(id string, why error) error {
	stale, is := errors.AsType[staleError](why)
	if !is {
		return nil
	}
	return e.changeMirror(id, func(m drivebay.Mirror) (drivebay.Mirror, bool) {
		if stale.newest != "" && m.Current == "" {
			m.Current, m.Boot = stale.newest, cmp.Or(m.Boot, e.Boot()) // nothing says that it served alone
		} else if stale.newest == "" {
			m.Doubt, m.Divided = stale.why, m.Divided || stale.divided
		}
		return m, true
	})
}

// activateMirror activates a mirror. While one leg alone holds everything, the kernel gets only that
// leg, and the other one joins the active mirror. Otherwise it gets all legs, or the activation fails.
// So no leg serves alone before the record says so, whatever LVM stops seeing in the meantime, and the
// superblock of an old leg never says that it was used without the newest one.
func (e *Mirrors) activateMirror(ctx context.Context, v *drivebay.Volume) error {
	alone, left, err := e.tryActivate(ctx, v)
	if left { // the report was too old: the next one decides
		alone, _, err = e.tryActivate(ctx, v)
	}
	if err != nil || alone == "" {
		return err
	}
	if err := e.Rejoin(ctx, v); err != nil { // the mirror works with one leg, and a repair tries again
		e.Log.Warn("cannot create a leg of a mirror again", "op", "mirror", "volume", v.ID, "err", err)
	}
	return nil
}

// tryActivate records which legs a mirror is activated from before any of them is used, and activates
// it. left: LVM refused, and left the mirror inactive; the record is as before.
func (e *Mirrors) tryActivate(ctx context.Context, v *drivebay.Volume) (alone string, left bool, err error) {
	if alone, err = e.sourceNow(ctx, v); err != nil {
		return "", false, e.nameNewest(err)
	}
	rec, err := e.Ledger.Record(v.ID)
	if err != nil {
		return "", false, err
	}
	before, boot := rec.Volume.Mirror, e.Boot()
	e.mirrorDecisions.Add(1)
	err = e.changeMirror(v.ID, func(was drivebay.Mirror) (drivebay.Mirror, bool) {
		return drivebay.Mirror{Current: alone, Boot: boot, Accepted: alone != "" && was.Accepted && was.Current == alone}, true
	})
	if err != nil {
		return "", false, err
	}
	from, plan := v.Location, e.Device.AppearingWhole(v)
	if alone != "" {
		from.Drives, plan = []string{alone}, e.Device.Appearing(v)
		if err := e.sayAlone(ctx, v, from, plan); err != nil {
			e.Log.Warn("the superblock of a mirror's leg does not say that the leg serves alone", "op", "mirror", "volume", v.ID, "drive", alone, "err", err)
		}
	}
	err = e.Groups.LVMActivate(ctx, from, plan)
	if _, ended := errors.AsType[*lvm.Error](err); !ended { // a command that is still running may activate it
		return alone, false, err
	}
	if _, progress := e.LVM.CopyProgress(ctx, v.Location.VG, v.Location.LV); !errors.Is(progress, lvm.ErrNotFound) {
		return alone, false, err
	}
	_, undo := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) error {
		r.Volume.Mirror = before
		return nil
	})
	return alone, undo == nil, errors.Join(err, undo)
}

// sayAlone has the kernel write into the superblock of a leg that it serves alone, before anything else is written to it. The kernel does so
// when it closes the mirror, also if nothing was written (tried on Linux 6.1). Without it, a power loss leaves two legs that look the same, and only the record tells which one is newer.
func (e *Mirrors) sayAlone(ctx context.Context, v *drivebay.Volume, from drivebay.Location, appear []lvm.Step) error {
	if _, err := e.LVM.CopyProgress(ctx, from.VG, from.LV); !errors.Is(err, lvm.ErrNotFound) {
		if _, gone := e.Device.Device(v); err != nil || gone == nil { // it is active, and not over drives that went
			return err
		}
	}
	r, err := e.Groups.ReportOf(ctx, v.Location)
	if err != nil {
		return err
	}
	if len(e.mirrorLegs(v.Location, r.Group(from.VG), r)) != 2 || e.saysAlone(ctx, v) != "" {
		return nil
	}
	err = e.Groups.LVMActivate(ctx, from, appear)
	if err == nil {
		err = e.Groups.LVMActivate(ctx, from, lvm.Deactivate(from.VG, from.LV))
	}
	return err
}

// nameNewest adds the serial and bay of the drive that has to come back to an error.
func (e *Mirrors) nameNewest(err error) error {
	stale, is := errors.AsType[staleError](err)
	if !is {
		return err
	}
	next := "; if it is lost for good, `drivebay volume accept-loss` continues without the data written since"
	if d, ok := steps.DriveOf(e.Drives.Snapshot(), stale.newest); ok {
		return fmt.Errorf("%w (serial %s, bay %s): put it back%s", err, d.Serial, d.Slot.Bay, next)
	}
	return fmt.Errorf("%w: put all its drives back%s", err, next)
}

// Rejoin returns unused legs of an active mirror to service: by the kernel where the superblocks
// prove that it copies from the right leg, otherwise by a rebuild. It leaves out a drive that is BAD.
func (e *Mirrors) Rejoin(ctx context.Context, v *drivebay.Volume) error {
	l := v.Location
	e.Groups.Reports.Delete(l.VG)
	r, err := e.Groups.ReportOf(ctx, l)
	if err != nil {
		return err
	}
	g := r.Group(l.VG)
	legs := e.mirrorLegs(l, g, r)
	c, active, err := e.live(ctx, v, legs)
	if err != nil {
		return err
	}
	if len(legs) == 1 {
		return e.secondLeg(ctx, v, r, legs[0])
	}
	if !active || len(legs) != 2 || len(c.Legs) != 2 {
		return nil
	}
	e.readSuperblocks(ctx, l, r, legs)
	for i, back := range legs {
		serving := legs[1-i]
		if !back.here || !serving.here || c.Legs[1-i] != 'A' || e.isBad(back.drive) || !e.leftOut(l, g, back, c.Legs[i]) {
			continue
		}
		plan := write.RestoreReturned(g) // also a serving leg that LVM counts as missing
		if rec, err := e.Ledger.Record(v.ID); err == nil && mayRejoin(serving, back, c.Legs[i] == 'D') && (rec.Volume.Mirror == nil || !rec.Volume.Mirror.Accepted) {
			plan = append(plan, lvm.Refresh(l.VG, l.LV)...)
		} else {
			e.Log.Info("creating a leg of a mirror again", "op", "mirror", "volume", v.ID, "drive", back.drive, "from", serving.drive)
			if err := e.Erase.LeavesExtents(g, groups.RemainsWipe(v), back.drive, back.pv, g.ExtentsOn(l.LV, back.pv)); err != nil {
				return err
			}
			plan = append(plan, lvm.RemakeLeg(l.VG, l.LV, back.pv)...)
		}
		if err := e.Write.LVMRun(ctx, l, plan); err != nil {
			return err
		}
		if err := e.Opt.After(v.ID, "leg on "+back.drive); err != nil {
			return fmt.Errorf("%w: %w", ledger.ErrStopped, err)
		}
		_, _, err := e.live(ctx, v, legs)
		return err
	}
	return nil
}

// leftOut reports whether the kernel uses the mirror without a leg: it has dropped the leg, or the
// leg's device leads to a drive that is gone.
func (e *Mirrors) leftOut(l drivebay.Location, g *lvm.Group, leg mirrorLeg, letter byte) bool {
	p, ok := e.Groups.PVPart(leg.drive)
	lv := g.LV(l.LV)
	return letter == 'D' || ok && lv != nil && lv.Active && !e.Device.StandsOn(l, "sys/dev/block/"+groups.NumOf(lv), map[string]bool{p.Name: true})
}

// secondLeg adds the second leg to a mirror that has only one.
func (e *Mirrors) secondLeg(ctx context.Context, v *drivebay.Volume, r *lvm.Report, only mirrorLeg) error {
	l := v.Location
	for _, id := range l.Drives {
		dev := e.pvDevice(id)
		pv, g := r.On(dev)
		if id == only.drive || dev == "" || pv == nil || g == nil || g.Name != l.VG || e.isBad(id) || !DriveHere(e.Drives.Snapshot(), id) {
			continue
		}
		return e.Write.LVMRun(ctx, l, []lvm.Step{lvm.AddLeg(l.VG, l.LV, pv.UUID)})
	}
	return nil
}

func (e *Mirrors) isBad(drive string) bool {
	d, ok := steps.DriveOf(e.Drives.Snapshot(), drive)
	return ok && d.Health == drivebay.HealthBad
}
