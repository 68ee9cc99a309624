package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
)

// adopt takes in volumes and snapshots that are on the drives and in no record:
// the store was lost, or the drive comes from another machine.
func (e *Engine) adopt(ctx context.Context, s *drivebay.Snapshot) error {
	e.mu.Lock()
	x := e.index
	e.mu.Unlock()
	var errs []error
	for i := range s.Drives {
		d := &s.Drives[i]
		strange := slices.DeleteFunc(slices.Clone(x.parts[d.ID]), func(p part) bool {
			id := idOfPartition(p.title)
			return id == "" || e.known(id)
		})
		if len(strange) > 0 {
			errs = append(errs, e.adoptParts(ctx, d, strange, len(x.parts[d.ID])))
		}
	}
	if x.lvm == nil {
		return errors.Join(errs...)
	}
	for i := range x.lvm.report.Groups {
		if g := &x.lvm.report.Groups[i]; slices.Contains(g.Tags, lvm.Tag) {
			errs = append(errs, e.adoptGroup(g, seen{index: x}.members(g)))
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) known(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.records[id] != nil || e.snapshots[id] != nil || e.busy[id]
}

// adoptParts reads the table of a drive again: what was listed a moment ago may be
// gone by now.
func (e *Engine) adoptParts(ctx context.Context, d *drivebay.Drive, strange []part, all int) error {
	table, err := e.readTitles(ctx, d)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range strange {
		i := slices.IndexFunc(table, func(q gpt.Partition) bool { return q.Name == p.title && q.Start == p.start })
		if i < 0 || !e.readable(table[i]) {
			continue
		}
		errs = append(errs, e.adoptPart(ctx, d, p, table[i], all == 1))
	}
	return errors.Join(errs...)
}

// readable: only types of ours say what the partition is.
func (e *Engine) readable(p gpt.Partition) bool {
	return slices.Contains([]string{typeMaking, typeFS, typeRaw, typeRawPart}, p.Type)
}

func (e *Engine) adoptPart(ctx context.Context, d *drivebay.Drive, p part, entry gpt.Partition, alone bool) error {
	id := idOfPartition(p.title)
	end, err := e.begin(id)
	if err != nil {
		return nil // whoever has it knows it better
	}
	defer end()
	v := drivebay.Volume{ID: id, Node: e.opt.Node, Size: entry.Size, Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{d.ID}, Partition: entry.GUID}}
	v.Mode = map[string]drivebay.VolumeMode{typeFS: drivebay.ModeFS, typeRaw: drivebay.ModeRaw, typeRawPart: drivebay.ModeRawPart}[entry.Type]
	if alone && len(freeSpans(d.Size, d.LogicalBlock, []span{{p.start, p.start + p.size}})) == 0 {
		v.Location.Kind = drivebay.LocationDrive
	}
	why := ""
	switch entry.Type {
	case typeMaking:
		return e.adoptVolume(v, "it was being made or removed when its record was lost", true, nil)
	case typeFS:
		c, err := e.contentOf(ctx, &v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", id, err)
		}
		for _, s := range c.Signatures {
			if s.Partition == "" && slices.Contains(drivebay.FSTypes, s.Format) {
				v.FSType, v.FSUUID = s.Format, s.UUID
			}
		}
		if v.FSType == "" {
			why = "no filesystem can be found on it"
		}
	}
	return e.adoptVolume(v, why, false, nil)
}

// adoptVolume writes down a volume that was found. Half says that it is not whole;
// why, what is wrong with it.
func (e *Engine) adoptVolume(v drivebay.Volume, why string, half bool, pvs map[string]string) error {
	v.Usage, _ = drivebay.VolumeUsageUnknown.Next(drivebay.VolumeUsageMade)
	rec := drivebay.VolumeRecord{Volume: v}
	event := drivebay.CSIFound
	if half {
		event = drivebay.CSICreate
		rec.Work = &drivebay.Work{Op: drivebay.WorkCreate, Since: e.machine.Now(), Size: v.Size, PVs: pvs}
	}
	var err error
	if rec.Volume, err = v.Moved(event); err == nil && why != "" {
		rec.Volume, err = rec.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: why, Since: e.machine.Now(), Retry: drivebay.RetryOnCall})
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	e.note(drivebay.EventVolumeFound, &rec.Volume, "a volume of ours was found that is in no record"+suffix(why))
	return e.put(rec)
}

func suffix(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// adoptGroup takes in the volumes and snapshots of a group.
func (e *Engine) adoptGroup(g *lvm.Group, members map[string]string) error {
	kind := groupKind(g)
	l := drivebay.Location{Kind: kind, VG: g.Name}
	for id := range members {
		l.Drives = append(l.Drives, id)
	}
	slices.Sort(l.Drives)
	if kind == drivebay.LocationUnknown || len(l.Drives) == 0 {
		return nil
	}
	if kind == drivebay.LocationThin {
		l.Pool = poolName
	}
	var errs []error
	for i := range g.LVs {
		lv := &g.LVs[i]
		t := tagsOf(lv)
		id := t[keyID]
		if name, err := lvm.VolumeName(id); err != nil || name != lv.Name || e.known(id) {
			continue
		}
		at := l
		at.LV = lv.Name
		end, err := e.begin(id)
		if err != nil {
			continue
		}
		switch t[keyWhat] {
		case "volume":
			errs = append(errs, e.adoptLV(lv, t, at, members))
		case "snapshot":
			errs = append(errs, e.adoptSnapshot(lv, t, at))
		}
		end()
	}
	return errors.Join(errs...)
}

func (e *Engine) adoptLV(lv *lvm.LV, t map[string]string, l drivebay.Location, pvs map[string]string) error {
	v := drivebay.Volume{ID: t[keyID], Name: t[keyName], Node: e.opt.Node, Size: lv.Size, FSType: t[keyFS], FSUUID: t[keyUUID], Location: l, Source: sourceOf(t[keySource])}
	if err := v.Mode.UnmarshalText([]byte(t[keyMode])); err != nil {
		return fmt.Errorf("volume %s: its tags: %w", v.ID, err)
	}
	v.Created, _ = time.Parse(time.RFC3339, t[keyCreated])
	c := drivebay.Class{Backing: backingOf(l.Kind), Wipe: drivebay.Wipe(t[keyWipe]), FSType: t[keyFS]}
	v.Parameters = parametersOf(c)
	if t[keyClass] != "" {
		v.Parameters[drivebay.ParameterClass] = t[keyClass]
	}
	if t[keyState] == halfMade {
		return e.adoptVolume(v, "it was being made or removed when its record was lost", true, pvs)
	}
	return e.adoptVolume(v, "", false, nil)
}

func backingOf(k drivebay.LocationKind) drivebay.Backing {
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
		if kindOf(b) == k {
			return b
		}
	}
	return ""
}

func sourceOf(text string) drivebay.Source {
	switch kind, id, _ := strings.Cut(text, ":"); kind {
	case "snapshot":
		return drivebay.Source{Snapshot: id}
	case "volume":
		return drivebay.Source{Volume: id}
	}
	return drivebay.Source{}
}

func (e *Engine) adoptSnapshot(lv *lvm.LV, t map[string]string, l drivebay.Location) error {
	s := drivebay.VolumeSnapshot{ID: t[keyID], Name: t[keyName], Source: t[keySource], Node: e.opt.Node, Size: lv.Size, Location: l, FSType: t[keyFS], Block: t[keyMode] != drivebay.ModeFS.String()}
	s.Created, _ = time.Parse(time.RFC3339, t[keyCreated])
	e.note(drivebay.EventVolumeFound, &drivebay.Volume{ID: s.Source, Location: l}, "snapshot "+strconv.Quote(s.Name)+" ("+s.ID+") was found that is in no record")
	return e.putSnapshot(drivebay.SnapshotRecord{Snapshot: s})
}
