package repair

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// symptoms holds what repairs are decided by: the record, what is known about the drives, LVM
// and the filesystem, and the mount table.
type symptoms struct {
	r       drivebay.HealRequest
	v       drivebay.Volume
	facts   drivebay.Facts
	here    bool         // its drives are here; of a mirror, one
	below   bool         // its piece of the drive has a device
	copied  bool         // it is being copied to another drive
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
	*mounts.MountState
	e      *Repairer
	signs  symptoms
	proved bool // its drive was read, and has answered
}

// diagnose returns the symptoms of a volume. With afresh, it first lists the partitions of its drives, which may
// have returned a moment ago, and reads a new report from LVM.
func (e *Repairer) diagnose(ctx context.Context, id string, r drivebay.HealRequest, afresh bool) (*diagnosis, error) {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return nil, err
	}
	v := rec.Volume
	if afresh {
		e.listAgain(ctx, &v)
		e.Mirror.ReportAgain(ctx, &v)
	}
	t, err := e.MountTable.FreshTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", id, err)
	}
	return e.diagnoseIn(t, &rec, r), nil
}

// listAgain lists the partitions of the drives of a volume that answer.
func (e *Repairer) listAgain(ctx context.Context, v *drivebay.Volume) {
	s := e.Drives.Snapshot()
	for _, id := range v.Location.Drives {
		d, _ := steps.DriveOf(s, id)
		if !mirror.DriveHere(s, id) {
			continue
		}
		_, err := steps.Through(ctx, e.Steps, "read "+id, partitions.ListTime, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, e.Partitions.RelistDrive(ctx, d)
		})
		if err != nil {
			e.Log.Warn("partitions not listed", "op", "heal", "volume", v.ID, "err", err)
		}
	}
}

// diagnoseIn derives the symptoms from known state: it asks no drive and no program.
func (e *Repairer) diagnoseIn(t *mounttable.MountTable, rec *drivebay.VolumeRecord, r drivebay.HealRequest) *diagnosis {
	v := rec.Volume
	s := e.Mounts.MountStateIn(v, t)
	s.Now, s.Lost = slices.Clone(v.Publications), nil // what should be, not what is left
	p := &diagnosis{MountState: s, e: e, signs: symptoms{r: r, v: v, device: s.D.Num != "", gaveUp: e.Mounts.Counters.Of(v.ID).Read().GaveUp}}
	g := &p.signs
	_, err := e.Device.Device(&v)
	g.below = err == nil
	g.copied = e.Watch.Moves.Moves.Of(v.ID) != nil
	g.facts = e.factsNow(rec)
	g.here = e.isHere(&v)
	e.lookAtLVM(g)
	p.lookAtPaths()
	return p
}

// factsNow returns the newest facts, with the current ones of LVM.
func (e *Repairer) factsNow(rec *drivebay.VolumeRecord) drivebay.Facts {
	var f drivebay.Facts
	if view, ok := e.Ledger.Volumes().Get(rec.Volume.ID); ok && view.Facts != nil {
		f = *view.Facts
	}
	f.Volume, f.LV = rec.Volume, e.Groups.LVFacts(&rec.Volume)
	if rec.Volume.Replicates() {
		info := e.Watch.Replications.Of(rec.Volume.ID)
		f.Replication = &info
	}
	f.Drives = nil
	s := e.Drives.Snapshot()
	for _, id := range rec.Volume.Location.Drives {
		if d, ok := steps.DriveOf(s, id); ok {
			f.Drives = append(f.Drives, *d)
		}
	}
	if f.FS != nil {
		fs := *f.FS
		fs.Shutdown, fs.Scrub = e.Mounts.Counters.Of(rec.Volume.ID).Read().Shutdown, rec.Scrub
		f.FS = &fs
	}
	return f
}

// isHere reports whether all drives of a volume are present, answer and have their part of it;
// of a mirror, one does.
func (e *Repairer) isHere(v *drivebay.Volume) bool {
	n, s := 0, e.Drives.Snapshot()
	for _, id := range v.Location.Drives {
		if mirror.DriveHere(s, id) && e.Groups.HasPart(v, id) {
			n++
		}
	}
	if m := v.Mirror; m != nil && (m.Doubt != "" || m.Current != "" && !mirror.DriveHere(s, m.Current)) {
		return false // the legs here may be older than the missing one
	}
	return n > 0 && !e.Groups.Gone(v) && (n == len(v.Location.Drives) || v.Location.Mirrored())
}

// lookAtLVM finds the legs of a mirror and the free extents for a pool.
func (e *Repairer) lookAtLVM(g *symptoms) {
	l := g.v.Location
	x := e.Groups.LVMNow()
	group := x.Group(l.VG)
	if group == nil {
		return
	}
	if l.Pool != "" {
		g.room = group.FreeExtents
	}
	if !l.Mirrored() {
		return
	}
	s := e.Drives.Snapshot()
	for _, id := range l.Drives {
		one := leg{drive: id, here: mirror.DriveHere(s, id)}
		if d, ok := steps.DriveOf(s, id); ok {
			one.bad = d.Health == drivebay.HealthBad
		}
		p, ok := e.Groups.PVPart(id)
		one.here = one.here && ok
		if pv, _ := x.Report.On(p.Dev); ok && pv != nil {
			one.pv, one.missing = pv.UUID, pv.Missing
		}
		lv := partitions.LVIn(group, l)
		one.unused = one.here && g.below && lv != nil && !e.Device.StandsOn(l, "sys/dev/block/"+groups.NumOf(lv), map[string]bool{p.Name: true})
		g.legs = append(g.legs, one)
	}
}

// used reports whether the volume is staged or published.
func (g *symptoms) used() bool { return len(g.v.Publications) > 0 }

func (g *symptoms) encrypted() bool { return g.v.Encrypted() }

func (g *symptoms) corrupt() bool {
	return g.facts.FS != nil && g.facts.FS.Scrub != nil && g.facts.FS.Scrub.Corrupt > 0
}
