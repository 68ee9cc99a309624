package adopt

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
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// adoptGroup adopts the volumes and snapshots of a group.
func (e *Adopter) adoptGroup(ctx context.Context, s *drivebay.Snapshot, g *lvm.Group, members map[string]string) error {
	kind := place.GroupKind(g)
	l := drivebay.Location{Kind: kind, VG: g.Name, Drives: slices.Sorted(maps.Keys(members))}
	if kind == drivebay.LocationUnknown || len(l.Drives) == 0 {
		return nil
	}
	if kind == drivebay.LocationThin {
		l.Pool = place.PoolName
	}
	l.Found = len(g.PVs) > ledger.DrivesPerGroup(kind) // also if some of them are away
	if err := e.Evacuate.MovedSince(ctx, g, l, members); err != nil {
		return err
	}
	var found []drivebay.ForgottenVolume
	for i := range g.LVs {
		if id := groups.IDOfLV(&g.LVs[i]); e.mayAdopt(s, id, l.Drives...) {
			found = append(found, drivebay.ForgottenVolume{ID: id, Instance: partitions.InstanceOfLV(&g.LVs[i])})
		}
	}
	mine, done, err := e.unrecorded(ctx, l.Drives[0], found)
	defer done()
	if !slices.Contains(slices.Collect(maps.Values(mine)), true) {
		return err
	}
	for _, id := range l.Drives {
		if d, here := steps.DriveOf(s, id); here && unread(s, d) != nil {
			return fmt.Errorf("volume group %s: %w", g.Name, unread(s, d))
		}
	}
	if err := e.Partitions.Trusted(l.Drives); err != nil {
		return fmt.Errorf("volume group %s: its volumes are not taken in: %w", g.Name, err)
	}
	errs := []error{err}
	r, err := e.Write.MaybeReport(ctx, l)
	if err != nil {
		return fmt.Errorf("volume group %s: %w", g.Name, err)
	}
	if g = r.Group(l.VG); g == nil {
		return nil
	}
	// A mirror is adopted with all its drives: one that is not read yet may have a leg.
	if len(g.Missing()) > 0 || len(members) < len(g.PVs) {
		if err := e.Inventory.UnreadDrives(inventory.EveryDrive); err != nil {
			return fmt.Errorf("volume group %s: %w", g.Name, err)
		}
	}
	for i := range g.LVs {
		lv := &g.LVs[i]
		f := drivebay.ForgottenVolume{ID: groups.IDOfLV(lv), Instance: partitions.InstanceOfLV(lv)}
		if !mine[f.ID] || e.replaced(l.Drives[0], f) || e.recordOfAnother(f) != "" {
			continue
		}
		t, at := groups.TagsOf(lv), l
		if t[groups.KeyWhat] == "volume" && tagIssue(g, t) != "" { // it is shown as found
			continue
		}
		at.LV, at.Instance = lv.Name, partitions.InstanceOfLV(lv)
		switch t[groups.KeyWhat] {
		case "volume":
			errs = append(errs, e.adoptLV(lv, t, at, members))
		case "snapshot":
			errs = append(errs, e.adoptSnapshot(lv, t, at))
		}
	}
	return errors.Join(errs...)
}

func (e *Adopter) adoptLV(lv *lvm.LV, t map[string]string, l drivebay.Location, pvs map[string]string) error {
	v := drivebay.Volume{ID: t[groups.KeyID], Name: t[groups.KeyName], Node: e.Opt.Node, Size: lv.Size - min(lv.Size, place.Overhead(t[groups.KeyLUKS])), FSType: t[groups.KeyFS], FSUUID: t[groups.KeyUUID], LUKSUUID: t[groups.KeyLUKS], Location: l, Source: sourceOf(t[groups.KeySource])}
	err := v.Mode.UnmarshalText([]byte(t[groups.KeyMode]))
	if err == nil && v.Encrypted() && !partitions.IsUUID(v.LUKSUUID) {
		err = fmt.Errorf("%w: LUKS header %q", drivebay.ErrInvalid, v.LUKSUUID)
	}
	if err != nil {
		return fmt.Errorf("volume %s: its tags: %w", v.ID, err)
	}
	v.Created, _ = time.Parse(time.RFC3339, t[partitions.KeyCreated])
	if t[partitions.KeyReplicated] != "" {
		v.Replication = drivebay.LostReplication(lv.Size)
	}
	c := drivebay.Class{Backing: backingOf(l.Kind), Wipe: drivebay.Wipe(t[groups.KeyWipe]), FSType: t[groups.KeyFS]}
	if v.Encrypted() {
		c.Encryption = drivebay.EncryptionLUKS2
	}
	v.Parameters = c.Parameters()
	if t[groups.KeyClass] != "" {
		v.Parameters[drivebay.ParameterClass] = t[groups.KeyClass]
	}
	if t[groups.KeyState] == groups.HalfMade {
		return e.adoptVolume(v, "it was being made or removed when its record was lost", true, pvs)
	}
	return e.adoptVolume(v, "", false, nil)
}

func backingOf(k drivebay.LocationKind) drivebay.Backing {
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
		if b.Location() == k {
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

func (e *Adopter) adoptSnapshot(lv *lvm.LV, t map[string]string, l drivebay.Location) error {
	s := drivebay.VolumeSnapshot{ID: t[groups.KeyID], Name: t[groups.KeyName], Source: t[groups.KeySource], Node: e.Opt.Node, Size: lv.Size - min(lv.Size, place.Overhead(t[groups.KeyLUKS])), LUKSUUID: t[groups.KeyLUKS], Location: l, FSType: t[groups.KeyFS], Block: t[groups.KeyMode] != drivebay.ModeFS.String()}
	s.Created, _ = time.Parse(time.RFC3339, t[partitions.KeyCreated])
	e.Ledger.Note(drivebay.EventVolumeFound, &drivebay.Volume{ID: s.Source, Location: l}, "snapshot "+strconv.Quote(s.Name)+" ("+s.ID+") was found that is in no record")
	return e.Snapshots.PutSnapshot(drivebay.SnapshotRecord{Snapshot: s})
}
