package volume

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
)

// signs are what repairs are decided by: the record, what is known of the drives,
// of LVM and of the filesystem, and the mount table.
type signs struct {
	r       drivebay.HealRequest
	v       drivebay.Volume
	facts   drivebay.Facts
	here    bool         // its drives are, of a mirror one
	below   bool         // its piece of the drive has a device
	device  bool         // so has the volume itself: it is no more locked than that
	gaveUp  bool         // its filesystem takes no writes, and only the kernel's log has told
	legs    []leg        // of a mirror
	room    uint64       // free extents of the group of its pool
	paths   []mountPoint // where it is by what is remembered
	others  []string     // where else its device is mounted
	options []string     // that it was staged with
	known   bool         // options says so
}

// leg is a drive of a mirror.
type leg struct {
	drive, pv string
	here, bad bool
	missing   bool // LVM has put it down as lost
	unused    bool // the device leads to another leg, and not to this one
}

// patient is a volume with its signs.
type patient struct {
	*scene
	signs  signs
	proved bool // its disk was read, and has answered
}

// patient looks at a volume. Afresh has LVM report what is there, whoever changed it.
func (e *Engine) patient(ctx context.Context, id string, r drivebay.HealRequest, afresh bool) (*patient, error) {
	rec, err := e.record(id)
	if err != nil {
		return nil, err
	}
	v := rec.Volume
	if afresh {
		e.reportAgain(ctx, &v)
	}
	t, err := e.freshTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", id, err)
	}
	return e.patientOn(t, &rec, r), nil
}

// patientOn has the signs from what is known: no drive and no program is asked.
func (e *Engine) patientOn(t *table, rec *drivebay.VolumeRecord, r drivebay.HealRequest) *patient {
	v := rec.Volume
	s := e.sceneOn(v, t)
	s.now = slices.Clone(v.Publications) // what is to be, not what is left of it
	p := &patient{scene: s, signs: signs{r: r, v: v, device: s.d.num != "", gaveUp: e.gauges.of(v.ID).read().gaveUp}}
	g := &p.signs
	_, err := e.device(&v)
	g.below = err == nil
	g.facts = e.factsNow(rec)
	g.here = e.isHere(&v)
	e.lookAtLVM(g)
	p.lookAtPaths()
	return p
}

// reportAgain has LVM say anew what there is of a volume's group. A drive that does
// not answer is not asked: what the signs say of it then is as old as it is.
func (e *Engine) reportAgain(ctx context.Context, v *drivebay.Volume) {
	s := e.drives.Snapshot()
	here := slices.ContainsFunc(v.Location.Drives, func(id string) bool { return driveHere(s, id) })
	if v.Location.VG == "" || !here {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	if err := e.lvmActivate(ctx, v.Location, nil); err != nil {
		e.log.Warn("no report of LVM", "op", "heal", "volume", v.ID, "err", err)
	}
}

// factsNow are the facts of the newest set, with LVM's of now.
func (e *Engine) factsNow(rec *drivebay.VolumeRecord) drivebay.Facts {
	var f drivebay.Facts
	if view, ok := e.Volumes().Get(rec.Volume.ID); ok && view.Facts != nil {
		f = *view.Facts
	}
	f.Volume, f.LV = rec.Volume, e.lvFacts(&rec.Volume)
	f.Drives = nil
	s := e.drives.Snapshot()
	for _, id := range rec.Volume.Location.Drives {
		if d, ok := driveOf(s, id); ok {
			f.Drives = append(f.Drives, *d)
		}
	}
	if f.FS != nil {
		fs := *f.FS
		fs.Shutdown, fs.Scrub = e.gauges.of(rec.Volume.ID).read().shutdown, rec.Scrub
		f.FS = &fs
	}
	return f
}

// isHere says that all drives of a volume are here, answer and have their part of
// it; of a mirror, one.
func (e *Engine) isHere(v *drivebay.Volume) bool {
	n, s := 0, e.drives.Snapshot()
	for _, id := range v.Location.Drives {
		if driveHere(s, id) && e.hasPart(v, id) {
			n++
		}
	}
	if m := v.Mirror; m != nil && (m.Doubt != "" || m.Current != "" && !driveHere(s, m.Current)) {
		return false // what is here may be older than what is not
	}
	return n > 0 && !e.gone(v) && (n == len(v.Location.Drives) || v.Location.Mirrored())
}

func driveHere(s *drivebay.Snapshot, id string) bool {
	d, ok := driveOf(s, id)
	return ok && d.Status == drivebay.StatusOnline && (d.Kernel == nil || d.Kernel.LaneStuck == 0)
}

func (e *Engine) hasPart(v *drivebay.Volume, drive string) bool {
	if v.Location.VG == "" {
		_, ok := e.partition(v)
		return ok
	}
	_, ok := e.pvPart(drive)
	return ok
}

// stoodOn are the names of the partitions that a volume has on its drives.
func (e *Engine) stoodOn(v *drivebay.Volume) map[string]bool {
	out := map[string]bool{}
	if p, ok := e.partition(v); ok && v.Location.VG == "" {
		out[p.name] = true
	}
	for _, id := range v.Location.Drives {
		if p, ok := e.pvPart(id); ok && v.Location.VG != "" {
			out[p.name] = true
		}
	}
	return out
}

// lookAtLVM finds the legs of a mirror and the room of a pool.
func (e *Engine) lookAtLVM(g *signs) {
	l := g.v.Location
	x := e.lvmNow()
	group := x.group(l.VG)
	if group == nil {
		return
	}
	if l.Pool != "" {
		g.room = group.FreeExtents
	}
	if !l.Mirrored() {
		return
	}
	s := e.drives.Snapshot()
	for _, id := range l.Drives {
		one := leg{drive: id, here: driveHere(s, id)}
		if d, ok := driveOf(s, id); ok {
			one.bad = d.Health == drivebay.HealthBad
		}
		p, ok := e.pvPart(id)
		one.here = one.here && ok
		if pv, _ := x.report.On(p.dev); ok && pv != nil {
			one.pv, one.missing = pv.UUID, pv.Missing
		}
		lv := lvIn(group, l)
		one.unused = one.here && g.below && lv != nil && !e.standsOn(l, "sys/dev/block/"+numOf(lv), map[string]bool{p.name: true})
		g.legs = append(g.legs, one)
	}
}

// used says that somebody has asked for the volume and has not let it go.
func (g *signs) used() bool { return len(g.v.Publications) > 0 }

func (g *signs) encrypted() bool { return g.v.LUKSUUID != "" }

func (g *signs) corrupt() bool {
	return g.facts.FS != nil && g.facts.FS.Scrub != nil && g.facts.FS.Scrub.Corrupt > 0
}
