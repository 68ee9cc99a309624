package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// foundIn lists the volumes of an index that no record names and that stand on a drive that
// is not claimed, by id.
func foundIn(s *drivebay.Snapshot, x partitions.Index, named func(drivebay.FoundVolume, string) bool) []drivebay.FoundVolume {
	var out []drivebay.FoundVolume
	add := func(f drivebay.FoundVolume, instance string) {
		if f.ID != "" && len(steps.Unclaimed(s, f.Drives)) > 0 && !named(f, instance) {
			out = append(out, f)
		}
	}
	for id, parts := range x.Parts {
		for _, p := range parts {
			add(drivebay.FoundVolume{ID: ledger.IDOfPartition(p.Title), Kind: drivebay.LocationPartition, Drives: []string{id}, Size: p.Size}, strings.ToLower(p.GUID))
		}
	}
	if x.LVM != nil {
		for i := range x.LVM.Report.Groups {
			g := &x.LVM.Report.Groups[i]
			if !slices.Contains(g.Tags, lvm.Tag) {
				continue
			}
			drives := slices.Sorted(maps.Keys(inventory.PlacementView{Index: x}.Members(g)))
			for j := range g.LVs {
				if t := groups.TagsOf(&g.LVs[j]); t[groups.KeyWhat] == "volume" {
					add(drivebay.FoundVolume{ID: groups.IDOfLV(&g.LVs[j]), Name: t[groups.KeyName], Kind: place.GroupKind(g), Drives: drives, Size: g.LVs[j].Size}, partitions.InstanceOfLV(&g.LVs[j]))
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b drivebay.FoundVolume) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), slices.Compare(a.Drives, b.Drives))
	})
	return out
}

// keepFound remembers what foundIn returns, and sends an event for what is new.
func (e *Adopter) keepFound(s *drivebay.Snapshot, x partitions.Index) {
	found := foundIn(s, x, func(f drivebay.FoundVolume, instance string) bool {
		if e.Instances.Recorded(f.ID) && slices.ContainsFunc(f.Drives, func(id string) bool {
			d, known := steps.DriveOf(s, id)
			return known && instances.LeftBehind(d, partitions.Part{GUID: instance})
		}) {
			return true // left behind by a move
		}
		return e.recordNames(drivebay.ForgottenVolume{ID: f.ID, Instance: instance})
	})
	e.Ledger.Mu.Lock()
	was := e.Instances.Found
	e.Instances.Found = found
	e.Ledger.Mu.Unlock()
	for _, f := range found {
		if !slices.ContainsFunc(was, func(o drivebay.FoundVolume) bool { return o.ID == f.ID && slices.Equal(o.Drives, f.Drives) }) {
			e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeFound, Volume: f.ID, Drive: f.Drives[0],
				Cause: "a volume was found on a drive that is not claimed; nothing is done to it: " + waysIn(s, f)})
		}
	}
}

// FoundNow returns the volumes on unclaimed drives that no record names, by id.
func (e *Adopter) FoundNow() []drivebay.FoundVolume {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.Instances.Found
}

// IsFound reports whether a volume with that id is on an unclaimed drive and in no record.
func (e *Adopter) IsFound(id string) bool {
	return slices.ContainsFunc(e.FoundNow(), func(f drivebay.FoundVolume) bool { return f.ID == id })
}

// waysIn returns the commands that adopt a found volume.
func waysIn(s *drivebay.Snapshot, f drivebay.FoundVolume) string {
	return fmt.Sprintf("`drivebay claim %s`, or `drivebay volume adopt %s` to use it without a claim", strings.Join(steps.Unclaimed(s, f.Drives), " "), f.ID)
}

// unadopted refuses a request for a volume that was found and is in no record.
func (e *Adopter) unadopted(id string) error {
	e.Ledger.Mu.Lock()
	i := slices.IndexFunc(e.Instances.Found, func(f drivebay.FoundVolume) bool { return f.ID == id })
	var f drivebay.FoundVolume
	if i >= 0 {
		f = e.Instances.Found[i]
	}
	e.Ledger.Mu.Unlock()
	if i < 0 || e.Instances.Recorded(id) {
		return nil
	}
	return fmt.Errorf("volume %s: %w: it was found on a drive that is not claimed: %s", id, drivebay.ErrRefused, waysIn(e.Drives.Snapshot(), f))
}

// mayAdopt reports whether a volume on these drives may be adopted: all of them are claimed, or
// an operator has asked for it.
func (e *Adopter) mayAdopt(s *drivebay.Snapshot, id string, drives ...string) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return len(steps.Unclaimed(s, drives)) == 0 || e.Adopting[id] > 0
}

// Undelete forgets the deletion of an id, and reports whether a drive has a volume that it kept out.
func (e *Adopter) Undelete(id string) (any bool, err error) {
	for _, o := range e.Instances.InstancesOf(id) {
		if was, is := e.Instances.ForgottenAs(o.Key()); is && was.Replaced && !o.Half {
			any, err = true, errors.Join(err, e.Instances.UnmarkForgotten(o.Key()))
		}
	}
	if !any {
		return false, err
	}
	return true, errors.Join(err, e.Instances.UnmarkForgotten(drivebay.ForgottenVolume{ID: id}.Key()))
}

// AdoptionAttempts is how often AdoptVolume lists the drives: a listing that began before the
// operator asked may hold the volume.
const AdoptionAttempts = 3
