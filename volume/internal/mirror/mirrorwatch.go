package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// WatchSoon checks mirrors between ticks, after a drive has come or gone.
func (e *Mirrors) WatchSoon(ctx context.Context, s *drivebay.Snapshot) {
	e.Ledger.InBackground("mirror", func() {
		if err := e.WatchMirrors(ctx, s); err != nil && ctx.Err() == nil {
			e.Log.Warn("mirrors not looked at", "op", "mirror", "err", err)
		}
	})
}

// WatchMirrors records which legs hold everything when a drive leaves, and when legs have caught up.
// It asks the kernel only about mirrors that have a problem.
func (e *Mirrors) WatchMirrors(ctx context.Context, s *drivebay.Snapshot) error {
	var errs []error
	for _, r := range e.Ledger.All() {
		v := r.Volume
		if v.Location.Kind == drivebay.LocationMirror && len(v.Location.Drives) == 1 && r.Work != nil && r.Work.Op == drivebay.WorkRemove {
			errs = append(errs, e.nameDrives(&v, e.Groups.LVMNow())) // it cannot be removed without its other drive
		}
		doubted := v.Mirror != nil && v.Mirror.Doubt != "" // also of one that older records have as being made
		if v.Location.Kind != drivebay.LocationMirror || r.Work != nil && r.Work.Op != drivebay.WorkExpand && !doubted || !e.mirrorNews(s, &v) {
			continue
		}
		if err := e.watchMirror(ctx, &v); err != nil && !errors.Is(err, drivebay.ErrPending) {
			errs = append(errs, fmt.Errorf("mirror %s: which of its legs hold everything: %w", v.ID, err))
		}
	}
	return errors.Join(errs...)
}

// mirrorNews reports whether the record of a mirror may have to change.
func (e *Mirrors) mirrorNews(s *drivebay.Snapshot, v *drivebay.Volume) bool {
	m, lv := v.Mirror, partitions.LVIn(e.Groups.LVMNow().Group(v.Location.VG), v.Location)
	if lv == nil {
		return false
	}
	away := slices.ContainsFunc(v.Location.Drives, func(id string) bool { return !DriveHere(s, id) })
	return m == nil || len(v.Location.Drives) == 1 || m.Current != "" || m.Doubt != "" || lv.Active && (away || lv.Health != "" || m.Boot == "")
}

func (e *Mirrors) watchMirror(ctx context.Context, v *drivebay.Volume) error {
	x := e.Groups.LVMNow()
	if len(v.Location.Drives) == 1 {
		if err := e.nameDrives(v, x); err != nil {
			return err
		}
	}
	legs := e.mirrorLegs(v.Location, x.Group(v.Location.VG), x.Reported())
	_, active, err := e.live(ctx, v, legs)
	if err != nil || active || v.Mirror != nil && v.Mirror.Doubt == "" {
		return err
	}
	return e.Ledger.OnVolume(ctx, "mirror", v.ID, func(ctx context.Context, v drivebay.Volume) error { return e.settleMirror(ctx, &v) })
}

// nameDrives completes the location of a mirror that was found without one of its drives.
func (e *Mirrors) nameDrives(v *drivebay.Volume, x *partitions.LVMIndex) error {
	e.Ledger.Mu.Lock()
	now := e.Partitions.Index
	e.Ledger.Mu.Unlock()
	g := x.Group(v.Location.VG)
	if g == nil || now.LVM == nil {
		return nil
	}
	members := now.LVM.Members(g)
	if len(members) != 2 || members[v.Location.Drives[0]] == "" {
		return nil
	}
	rec, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) error {
		if len(r.Volume.Location.Drives) == 1 {
			r.Volume.Location.Drives = slices.Sorted(maps.Keys(members))
		}
		return nil
	})
	*v = rec.Volume
	return err
}

// settleMirror determines the state of an inactive mirror whose record says nothing, or nothing
// certain.
func (e *Mirrors) settleMirror(ctx context.Context, v *drivebay.Volume) error {
	r, err := e.Groups.ReportOf(ctx, v.Location)
	if err != nil {
		return err
	}
	legs := e.mirrorLegs(v.Location, r.Group(v.Location.VG), r)
	if !slices.ContainsFunc(legs, func(l mirrorLeg) bool { return l.here }) {
		return nil
	}
	e.readSuperblocks(ctx, v.Location, r, legs)
	source, err := mirrorSource(v.Mirror, legs)
	if err != nil {
		return e.doubt(v.ID, err)
	}
	return e.changeMirror(v.ID, func(drivebay.Mirror) (drivebay.Mirror, bool) { return drivebay.Mirror{Current: source}, true })
}

// closed records that a mirror is not active any more. Legs that were equal stay equal.
func (e *Mirrors) closed(ctx context.Context, v *drivebay.Volume) error {
	e.mirrorDecisions.Add(1)
	said := e.saysAlone(ctx, v)
	return e.changeMirror(v.ID, func(m drivebay.Mirror) (drivebay.Mirror, bool) {
		known := m.Boot != "" // otherwise its state is not recorded
		if m.Doubt == "" && (m.Current == "" || m.Current == said) {
			m.Boot = ""
		}
		return m, known
	})
}

// saysAlone returns the drive of the leg of an inactive mirror that served alone, if its superblock says so; else "".
func (e *Mirrors) saysAlone(ctx context.Context, v *drivebay.Volume) string {
	rec, err := e.Ledger.Record(v.ID)
	if err != nil || rec.Volume.Mirror == nil || rec.Volume.Mirror.Current == "" {
		return ""
	}
	r, err := e.Groups.ReportOf(ctx, v.Location)
	if err != nil {
		return ""
	}
	legs := e.mirrorLegs(v.Location, r.Group(v.Location.VG), r)
	e.readSuperblocks(ctx, v.Location, r, legs)
	i := slices.IndexFunc(legs, func(l mirrorLeg) bool { return l.drive == rec.Volume.Mirror.Current })
	if i < 0 || len(legs) != 2 || !legs[i].leftOut(legs[1-i]) {
		return ""
	}
	return legs[i].drive
}
