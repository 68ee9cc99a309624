package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// adoptGroup adopts the volumes and snapshots of a group.
func (e *Engine) adoptGroup(ctx context.Context, s *drivebay.Snapshot, g *lvm.Group, members map[string]string) error {
	kind := groupKind(g)
	l := drivebay.Location{Kind: kind, VG: g.Name, Drives: slices.Sorted(maps.Keys(members))}
	if kind == drivebay.LocationUnknown || len(l.Drives) == 0 {
		return nil
	}
	if kind == drivebay.LocationThin {
		l.Pool = poolName
	}
	l.Found = isMoving(l)
	if err := e.movedSince(ctx, g, l, members); err != nil {
		return err
	}
	var found []drivebay.ForgottenVolume
	for i := range g.LVs {
		if id := idOfLV(&g.LVs[i]); e.mayAdopt(s, id, l.Drives...) {
			found = append(found, drivebay.ForgottenVolume{ID: id, Instance: instanceOfLV(&g.LVs[i])})
		}
	}
	mine, done, err := e.unrecorded(ctx, found)
	defer done()
	if !slices.Contains(slices.Collect(maps.Values(mine)), true) {
		return err
	}
	if err := e.trusted(l.Drives); err != nil {
		return fmt.Errorf("volume group %s: its volumes are not taken in: %w", g.Name, err)
	}
	errs := []error{err}
	r, err := e.maybeReport(ctx, l)
	if err != nil {
		return fmt.Errorf("volume group %s: %w", g.Name, err)
	}
	if g = r.Group(l.VG); g == nil {
		return nil
	}
	// A mirror is adopted with all its drives: one that is not read yet may have a leg.
	if len(g.Missing()) > 0 || len(members) < len(g.PVs) {
		if err := e.unreadDrives(everyDrive); err != nil {
			return fmt.Errorf("volume group %s: %w", g.Name, err)
		}
	}
	for i := range g.LVs {
		lv := &g.LVs[i]
		if !mine[idOfLV(lv)] || e.replaced(drivebay.ForgottenVolume{ID: idOfLV(lv), Instance: instanceOfLV(lv)}) {
			continue
		}
		t, at := tagsOf(lv), l
		at.LV, at.Instance = lv.Name, instanceOfLV(lv)
		switch t[keyWhat] {
		case "volume":
			errs = append(errs, e.adoptLV(lv, t, at, members))
		case "snapshot":
			errs = append(errs, e.adoptSnapshot(lv, t, at))
		}
	}
	return errors.Join(errs...)
}

// idOfLV returns the id in the tags of a logical volume, if the volume has the name of that id.
func idOfLV(lv *lvm.LV) string {
	id := tagOf(lv, keyID)
	if name, err := lvm.VolumeName(id); err != nil || name != lv.Name {
		return ""
	}
	return id
}

func (e *Engine) adoptLV(lv *lvm.LV, t map[string]string, l drivebay.Location, pvs map[string]string) error {
	v := drivebay.Volume{ID: t[keyID], Name: t[keyName], Node: e.opt.Node, Size: lv.Size - min(lv.Size, overhead(t[keyLUKS])), FSType: t[keyFS], FSUUID: t[keyUUID], LUKSUUID: t[keyLUKS], Location: l, Source: sourceOf(t[keySource])}
	err := v.Mode.UnmarshalText([]byte(t[keyMode]))
	if err == nil && v.LUKSUUID != "" && !isUUID(v.LUKSUUID) {
		err = fmt.Errorf("%w: LUKS header %q", drivebay.ErrInvalid, v.LUKSUUID)
	}
	if err != nil {
		return fmt.Errorf("volume %s: its tags: %w", v.ID, err)
	}
	v.Created, _ = time.Parse(time.RFC3339, t[keyCreated])
	c := drivebay.Class{Backing: backingOf(l.Kind), Wipe: drivebay.Wipe(t[keyWipe]), FSType: t[keyFS]}
	if v.LUKSUUID != "" {
		c.Encryption = drivebay.EncryptionLUKS2
	}
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
	s := drivebay.VolumeSnapshot{ID: t[keyID], Name: t[keyName], Source: t[keySource], Node: e.opt.Node, Size: lv.Size - min(lv.Size, overhead(t[keyLUKS])), LUKSUUID: t[keyLUKS], Location: l, FSType: t[keyFS], Block: t[keyMode] != drivebay.ModeFS.String()}
	s.Created, _ = time.Parse(time.RFC3339, t[keyCreated])
	e.note(drivebay.EventVolumeFound, &drivebay.Volume{ID: s.Source, Location: l}, "snapshot "+strconv.Quote(s.Name)+" ("+s.ID+") was found that is in no record")
	return e.putSnapshot(drivebay.SnapshotRecord{Snapshot: s})
}
