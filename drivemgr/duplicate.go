package drivemgr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// Several drives can carry one serial and one worldwide name. The id belongs to the
// drive that had it first; the others get ids that name their place. The first drive
// is recognized by the kernel's block device, which the kernel never reuses, then by
// the UUIDs written on it, then by its place. Where none of these decides, no drive
// gets the id: its record stays in the snapshot as UNKNOWN, so that the drive is
// neither written to nor considered gone.

// toldApart matches the ids of drives that share their names with others.
var toldApart = regexp.MustCompile(`^(.+)-at-[0-9a-f]{8}(-\d+)?$`)

// baseOf returns the id that follows from the drive's own names.
func (t *tracked) baseOf() string {
	if m := toldApart.FindStringSubmatch(t.drive.ID); m != nil && t.drive.IdentityIssue != "" {
		return m[1]
	}
	return t.drive.ID
}

// sharing holds what a listing shows about drives with equal names.
type sharing struct {
	inDoubt    map[string]string // ids that no drive gets, with the reason
	duplicates map[string]bool   // drives with an -at- id; true: proved to be another drive
}

// keepIDs corrects the ids of a listing by what the manager knows of drives with equal names.
func (m *trackingT) keepIDs(l *Listing) sharing {
	out := sharing{map[string]string{}, map[string]bool{}}
	here := map[string][]*drivebay.Drive{}
	for i := range l.Drives {
		base, _ := baseID(&l.Drives[i])
		here[base] = append(here[base], &l.Drives[i])
	}
	for base, group := range here {
		owner := m.drives[base]
		if owner == nil || len(group) == 1 && !m.mayBeAnother(base, owner, group[0], l.Complete) {
			continue
		}
		m.assignIDs(base, owner, group, &out)
	}
	return out
}

// mayBeAnother reports whether the only listed drive with the names of an id may still be
// another drive than the owner of the id: a duplicate is known, or the listing lacks
// drives.
func (m *trackingT) mayBeAnother(base string, owner *tracked, d *drivebay.Drive, complete bool) bool {
	if owner.isDevice(d) {
		return false
	}
	for id, t := range m.drives {
		if id != base && t.baseOf() == base {
			return true
		}
	}
	return !complete && owner.present
}

// assignIDs gives an id to the drive of a group that had it before, and other ids to the rest.
func (m *trackingT) assignIDs(base string, owner *tracked, group []*drivebay.Drive, out *sharing) {
	var rest []*drivebay.Drive // those that may be the owner
	holder := m.unchangedDevice(owner, group)
	for _, d := range group {
		if t := m.recordOfDevice(d, base); holder == nil && (t == nil || !t.rec.Duplicate) {
			rest = append(rest, d)
		}
	}
	if holder == nil {
		holder = m.matchByUUID(owner, rest)
	}
	var names []string
	for _, d := range group {
		if d == holder {
			d.ID = base
			continue
		}
		if t := m.recordOfDevice(d, base); t != nil {
			d.ID = t.drive.ID
		} else if d.ID == base {
			d.ID = base + "-at-" + hash(placeOf(d))
		}
		if d.IdentityIssue == "" {
			d.IdentityIssue = fmt.Sprintf("serial %q and worldwide name %q are also those of drive %s, which was here before", d.Serial, d.WWN, base)
		}
		out.duplicates[d.ID] = holder != nil || !slices.Contains(rest, d)
		names = append(names, describe(d))
	}
	if holder == nil && len(rest) > 0 {
		out.inDoubt[base] = fmt.Sprintf("serial %q and worldwide name %q are those of %s, and the drive cannot be identified", owner.drive.Serial, owner.drive.WWN, strings.Join(names, " and of "))
	}
}

// dropAliases forgets the -at- ids of drives that have their own id again.
func (m *trackingT) dropAliases(drives []drivebay.Drive, seen map[string]bool) {
	for i := range drives {
		d := &drives[i]
		if t := m.recordOfDevice(d, d.ID); t != nil && !seen[t.drive.ID] && m.drives[d.ID] != nil {
			t.life++ // a look under way belongs to an id that no longer exists
			delete(m.drives, t.drive.ID)
			m.keeper.forget(t.drive.ID)
		}
	}
}

// unchangedDevice returns the drive of a group that is still the same kernel device, nil if none.
func (m *trackingT) unchangedDevice(t *tracked, group []*drivebay.Drive) *drivebay.Drive {
	for _, d := range group {
		if t.isDevice(d) {
			return d
		}
	}
	return nil
}

// recordOfDevice returns the record of a drive's kernel device under an -at- id.
func (m *trackingT) recordOfDevice(d *drivebay.Drive, base string) *tracked {
	for id, t := range m.drives {
		if id != base && t.baseOf() == base && t.isDevice(d) {
			return t
		}
	}
	return nil
}

// isDevice reports whether a listed drive is the kernel device that t was listed as.
func (t *tracked) isDevice(d *drivebay.Drive) bool {
	return slices.ContainsFunc(d.Disks, func(disk drivebay.Disk) bool {
		return slices.Contains(t.drive.Disks, disk) && (t.present || disk.Seq != "")
	})
}

// matchByUUID returns the drive of a group that carries the UUIDs that the owner carried, or,
// where the owner carried none, the drive in its place. It returns nil where no drive or
// several match, or a drive has not been read yet.
func (m *trackingT) matchByUUID(owner *tracked, group []*drivebay.Drive) *drivebay.Drive {
	wanted := identifiers(owner.drive.Content)
	var found []*drivebay.Drive
	for _, d := range group {
		var is bool
		if len(wanted) == 0 {
			is = place(d) == place(&owner.drive) && place(d) != "" || place(d) == "" && placeOf(d) == placeOf(&owner.drive)
		} else {
			read := m.contentRead(d)
			if read == nil {
				return nil
			}
			has := identifiers(*read)
			is = !slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(has, id) })
		}
		if is {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// contentRead returns what was read from a listed drive since it appeared; nil: nothing yet.
func (m *trackingT) contentRead(d *drivebay.Drive) *drivebay.Content {
	for _, t := range m.drives {
		if t.present && t.isDevice(d) && !t.fresh && !t.looking {
			return &t.drive.Content
		}
	}
	return nil
}

// identifiers returns the UUIDs that are written on a drive.
func identifiers(c drivebay.Content) []string {
	var out []string
	for _, s := range c.Signatures {
		if s.UUID != "" {
			out = append(out, strings.ToLower(s.UUID))
		}
	}
	return out
}

// setUnidentified sets a drive UNKNOWN whose id may belong to one of several listed drives.
func (m *trackingT) setUnidentified(t *tracked, why string, now time.Time) {
	if t.drive.Status == drivebay.StatusUnknown && t.drive.IdentityIssue == why && !t.present {
		return
	}
	t.present, t.looking = false, false
	d := &t.drive
	d.Status, d.IdentityIssue = drivebay.StatusUnknown, why
	d.Kernel, d.Uses, d.Slot.Lit, d.Slot.FaultLit, d.Slot.Status = nil, nil, false, false, ""
	d.LastSeen = now.Truncate(time.Second)
	m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventIdentity, Drive: d.ID, From: d.ID, Cause: why})
	m.assess(t)
	m.keepRecord(t)
}
