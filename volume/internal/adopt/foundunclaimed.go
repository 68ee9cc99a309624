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
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// foundIn lists the volumes of an index that no record names and that stand on a drive that
// is not claimed, or of which no record can be made, by id. typeOf returns the type of a partition, if it was read, and recordOf the id of another
// volume whose record names this one.
func foundIn(s *drivebay.Snapshot, x partitions.Index, typeOf func(string, partitions.Part) string, recordOf func(drivebay.ForgottenVolume) string, named func(drivebay.FoundVolume, string) bool) []drivebay.FoundVolume {
	var out []drivebay.FoundVolume
	add := func(f drivebay.FoundVolume, instance string) {
		if f.ID == "" || named(f, instance) {
			return
		}
		if f.Issue != "" {
			f.Next = "start the version of drivebay that made it, or undo the change of another program"
		}
		if other := recordOf(drivebay.ForgottenVolume{ID: f.ID, Instance: instance}); other != "" {
			f.Issue = "it is volume " + other + " by its record, and its name on the drive was changed"
			f.Next = "give the logical volume the name and tags of that volume back"
			if f.Kind == drivebay.LocationPartition {
				f.Next = "give its partition the name " + ledger.PartitionName(other) + " back, for example with `sgdisk --change-name`"
			}
		}
		if f.Issue != "" || len(steps.Unclaimed(s, f.Drives)) > 0 {
			out = append(out, f)
		}
	}
	for id, parts := range x.Parts {
		for _, p := range parts {
			add(drivebay.FoundVolume{ID: ledger.IDOfPartition(p.Title), Kind: drivebay.LocationPartition, Drives: []string{id}, Size: p.Size, Issue: typeIssue(typeOf(id, p))}, strings.ToLower(p.GUID))
		}
	}
	if x.LVM != nil {
		for i := range x.LVM.Report.Groups {
			g := &x.LVM.Report.Groups[i]
			if !slices.Contains(g.Tags, lvm.Tag) {
				continue
			}
			drives := slices.Sorted(maps.Keys(x.LVM.Members(g)))
			for j := range g.LVs {
				if t := groups.TagsOf(&g.LVs[j]); t[groups.KeyWhat] != "snapshot" {
					add(drivebay.FoundVolume{ID: groups.IDOfLV(&g.LVs[j]), Name: t[groups.KeyName], Kind: place.GroupKind(g), Drives: drives, Size: g.LVs[j].Size, Issue: tagIssue(g, t)}, partitions.InstanceOfLV(&g.LVs[j]))
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b drivebay.FoundVolume) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), slices.Compare(a.Drives, b.Drives))
	})
	return out
}

// Another version of drivebay can have made a volume of a kind that this version does not know, and another program can have changed what
// says its kind. Such a volume is shown, and is neither recorded nor removed.

// typeIssue returns why no record can be made of a volume with a partition of this type.
func typeIssue(kind string) string {
	if kind == "" || readable(kind) {
		return ""
	}
	return fmt.Sprintf("this version of drivebay does not know the type %s of its partition", kind)
}

// tagIssue returns why no record can be made of a logical volume with these tags.
func tagIssue(g *lvm.Group, t map[string]string) string {
	var mode drivebay.VolumeMode
	switch err := mode.UnmarshalText([]byte(t[groups.KeyMode])); {
	case place.GroupKind(g) == drivebay.LocationUnknown:
		return "this version of drivebay does not know the kind of volume group " + g.Name
	case t[groups.KeyWhat] != "volume":
		return fmt.Sprintf("this version of drivebay does not know what the logical volume is: %q", t[groups.KeyWhat])
	case err != nil:
		return fmt.Sprintf("this version of drivebay does not know the mode in its tags: %v", err)
	case t[groups.KeyLUKS] != "" && !partitions.IsUUID(t[groups.KeyLUKS]):
		return fmt.Sprintf("its tags have the LUKS header %q, which is no UUID", t[groups.KeyLUKS])
	}
	return ""
}

// keepFound remembers what foundIn returns, and sends an event for what is new.
func (e *Adopter) keepFound(s *drivebay.Snapshot, x partitions.Index) {
	typeOf := func(drive string, p partitions.Part) string {
		e.Ledger.Mu.Lock()
		defer e.Ledger.Mu.Unlock()
		return e.Partitions.TypeOf(drive, p)
	}
	found := foundIn(s, x, typeOf, e.recordOfAnother, func(f drivebay.FoundVolume, instance string) bool {
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
		switch {
		case slices.ContainsFunc(was, func(o drivebay.FoundVolume) bool {
			return o.ID == f.ID && o.Issue == f.Issue && slices.Equal(o.Drives, f.Drives)
		}):
		case f.Issue != "":
			e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeFound, Volume: f.ID, Drive: f.Drives[0],
				Cause: "a volume was found that is in no record; nothing is done to it: " + noRecord(f)})
		default:
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

// NoRecord refuses to adopt a volume of which no record can be made.
func (e *Adopter) NoRecord(id string) error {
	for _, f := range e.FoundNow() {
		if f.ID == id && f.Issue != "" {
			return fmt.Errorf("%w: %s", drivebay.ErrRefused, noRecord(f))
		}
	}
	return nil
}

// noRecord returns why no record can be made of a found volume, and the next step.
func noRecord(f drivebay.FoundVolume) string { return f.Issue + ": " + f.Next }

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
	switch {
	case i < 0 || e.Instances.Recorded(id):
		return nil
	case f.Issue != "":
		return fmt.Errorf("volume %s: %w: drive %s has it, and it is in no record: %s", id, drivebay.ErrUnavailable, strings.Join(f.Drives, " "), noRecord(f))
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
