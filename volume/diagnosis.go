package volume

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
)

// symptoms holds what repairs are decided by: the record, what is known about the drives, LVM
// and the filesystem, and the mount table.
type symptoms struct {
	r       drivebay.HealRequest
	v       drivebay.Volume
	facts   drivebay.Facts
	here    bool         // its drives are here; of a mirror, one
	below   bool         // its piece of the drive has a device
	device  bool         // the volume has a device; if encrypted, it is unlocked
	gaveUp  bool         // its filesystem takes no writes, as only the kernel log shows
	legs    []leg        // of a mirror
	room    uint64       // free extents of the group of its pool
	paths   []mountPoint // its publications in the record
	others  []string     // where else its device is mounted
	options []string     // that it was staged with
	known   bool         // options is known
}

// leg is one drive of a mirror.
type leg struct {
	drive, pv string
	here, bad bool
	missing   bool // LVM reports it as missing
	unused    bool // the device stands on the other leg, not on this one
}

// diagnosis is a volume with its symptoms.
type diagnosis struct {
	*mountState
	signs  symptoms
	proved bool // its drive was read, and has answered
}

// diagnose returns the symptoms of a volume. With afresh, it first reads a new report from LVM.
func (e *Engine) diagnose(ctx context.Context, id string, r drivebay.HealRequest, afresh bool) (*diagnosis, error) {
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
	return e.diagnoseIn(t, &rec, r), nil
}

// diagnoseIn derives the symptoms from known state: it asks no drive and no program.
func (e *Engine) diagnoseIn(t *mountTable, rec *drivebay.VolumeRecord, r drivebay.HealRequest) *diagnosis {
	v := rec.Volume
	s := e.mountStateIn(v, t)
	s.now = slices.Clone(v.Publications) // what should be, not what is left
	p := &diagnosis{mountState: s, signs: symptoms{r: r, v: v, device: s.d.num != "", gaveUp: e.counters.of(v.ID).read().gaveUp}}
	g := &p.signs
	_, err := e.device(&v)
	g.below = err == nil
	g.facts = e.factsNow(rec)
	g.here = e.isHere(&v)
	e.lookAtLVM(g)
	p.lookAtPaths()
	return p
}

// reportAgain reads a new LVM report of a volume's group. If no drive answers, LVM is not
// asked, and the symptoms are as old as the last report.
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

// factsNow returns the newest facts, with the current ones of LVM.
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
		fs.Shutdown, fs.Scrub = e.counters.of(rec.Volume.ID).read().shutdown, rec.Scrub
		f.FS = &fs
	}
	return f
}

// isHere reports whether all drives of a volume are present, answer and have their part of it;
// of a mirror, one does.
func (e *Engine) isHere(v *drivebay.Volume) bool {
	n, s := 0, e.drives.Snapshot()
	for _, id := range v.Location.Drives {
		if driveHere(s, id) && e.hasPart(v, id) {
			n++
		}
	}
	if m := v.Mirror; m != nil && (m.Doubt != "" || m.Current != "" && !driveHere(s, m.Current)) {
		return false // the legs here may be older than the missing one
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

// stoodOn returns the kernel names of the partitions that a volume has on its drives.
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

// lookAtLVM finds the legs of a mirror and the free extents for a pool.
func (e *Engine) lookAtLVM(g *symptoms) {
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

// used reports whether the volume is staged or published.
func (g *symptoms) used() bool { return len(g.v.Publications) > 0 }

func (g *symptoms) encrypted() bool { return g.v.LUKSUUID != "" }

func (g *symptoms) corrupt() bool {
	return g.facts.FS != nil && g.facts.FS.Scrub != nil && g.facts.FS.Scrub.Corrupt > 0
}
