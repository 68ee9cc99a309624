package tracking

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/identity"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/copies"
)

// FindCopies records for every drive whether another drive has the same identity written
// on it, and adds an event for each change.
func (m *Tracker) FindCopies() {
	drives := make([]drivebay.Drive, 0, len(m.State.Drives))
	for _, t := range m.State.Drives {
		drives = append(drives, t.Drive)
	}
	slices.SortFunc(drives, func(a, b drivebay.Drive) int { return strings.Compare(a.ID, b.ID) })
	found := copies.Find(drives)
	for id, t := range m.State.Drives {
		why := found[id]
		if why == t.Drive.Copy {
			continue
		}
		cause := why
		if why == "" {
			cause = "no other drive has the same content now"
		}
		t.Drive.Copy = why
		m.State.QueueEvents(drivebay.Event{At: m.State.Machine.Now(), Kind: drivebay.EventIdentity, Drive: id, From: id, To: id, Cause: cause})
	}
}

// sharing holds what a listing shows about drives with equal names.
type sharing struct {
	inDoubt    map[string]string // ids that no drive gets, with the reason
	duplicates map[string]bool   // drives with an -at- id; true: proved to be another drive
}

// keepIDs corrects the ids of a listing by what the manager knows of drives with equal names.
func (m *Tracker) keepIDs(l *inventory.Listing) sharing {
	out := sharing{map[string]string{}, map[string]bool{}}
	here := map[string][]*drivebay.Drive{}
	for i := range l.Drives {
		base, _ := identity.Base(&l.Drives[i])
		here[base] = append(here[base], &l.Drives[i])
	}
	for base, group := range here {
		owner := m.State.Drives[base]
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
func (m *Tracker) mayBeAnother(base string, owner *state.Tracked, d *drivebay.Drive, complete bool) bool {
	if owner.IsDevice(d) {
		return false
	}
	for id, t := range m.State.Drives {
		if id != base && t.BaseOf() == base {
			return true
		}
	}
	return !complete && owner.Present || otherSerial(owner, d)
}

// otherSerial reports whether a drive shares the world-wide name of the owner of an id and has another
// serial: there are drives of one model that all have the same name.
func otherSerial(owner *state.Tracked, d *drivebay.Drive) bool {
	return owner.Drive.Serial != "" && d.Serial != "" && owner.Drive.Serial != d.Serial
}

// assignIDs gives an id to the drive of a group that had it before, and other ids to the rest.
func (m *Tracker) assignIDs(base string, owner *state.Tracked, group []*drivebay.Drive, out *sharing) {
	var rest []*drivebay.Drive // those that may be the owner
	holder := m.unchangedDevice(owner, group)
	for _, d := range group {
		another := otherSerial(owner, d) && len(identifiers(owner.Drive.Content)) == 0 // only what it carries could prove that it is the owner
		if t := m.recordOfDevice(d, base); holder == nil && (t == nil || !t.Rec.Duplicate) && !another {
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
			d.ID = t.Drive.ID
		} else if d.ID == base {
			d.ID = base + "-at-" + identity.Hash(identity.PlaceOf(d))
		}
		if d.IdentityIssue == "" && otherSerial(owner, d) {
			d.IdentityIssue = fmt.Sprintf("worldwide name %q is that of drive %s, which has the serial %q", d.WWN, base, owner.Drive.Serial)
		}
		if d.IdentityIssue == "" {
			d.IdentityIssue = fmt.Sprintf("serial %q and worldwide name %q are the same as those of drive %s, which was known before", d.Serial, d.WWN, base)
		}
		out.duplicates[d.ID] = holder != nil || !slices.Contains(rest, d)
		names = append(names, state.Describe(d))
	}
	if holder == nil && len(rest) > 0 {
		out.inDoubt[base] = fmt.Sprintf("serial %q and worldwide name %q belong to %s, so the drive cannot be identified", owner.Drive.Serial, owner.Drive.WWN, strings.Join(names, " and to "))
	}
}

// dropAliases forgets the -at- ids of drives that have their own id again.
func (m *Tracker) dropAliases(drives []drivebay.Drive, seen map[string]bool) {
	for i := range drives {
		d := &drives[i]
		if t := m.recordOfDevice(d, d.ID); t != nil && !seen[t.Drive.ID] && m.State.Drives[d.ID] != nil {
			t.Life++ // a reading under way belongs to an id that no longer exists
			delete(m.State.Drives, t.Drive.ID)
			m.State.Keeper.Forget(t.Drive.ID)
		}
	}
}

// unchangedDevice returns the drive of a group that is still the same kernel device, nil if none.
func (m *Tracker) unchangedDevice(t *state.Tracked, group []*drivebay.Drive) *drivebay.Drive {
	for _, d := range group {
		if t.IsDevice(d) {
			return d
		}
	}
	return nil
}

// recordOfDevice returns the record of a drive's kernel device under an -at- id.
func (m *Tracker) recordOfDevice(d *drivebay.Drive, base string) *state.Tracked {
	for id, t := range m.State.Drives {
		if id != base && t.BaseOf() == base && t.IsDevice(d) {
			return t
		}
	}
	return nil
}

// matchByUUID returns the drive of a group that carries the UUIDs that the owner carried; where none does, because the record is
// older, the one with the table that drivebay made on the owner; or, where the owner carried none, the drive in its place. It returns
// nil where no drive or several match, or a drive has not been read yet.
func (m *Tracker) matchByUUID(owner *state.Tracked, group []*drivebay.Drive) *drivebay.Drive {
	wanted := identifiers(owner.Drive.Content)
	var found, tabled []*drivebay.Drive
	for _, d := range group {
		var is bool
		if len(wanted) == 0 {
			is = inventory.Place(d) == inventory.Place(&owner.Drive) && inventory.Place(d) != "" || inventory.Place(d) == "" && identity.PlaceOf(d) == identity.PlaceOf(&owner.Drive)
		} else {
			read := m.contentRead(d)
			if read == nil {
				return nil
			}
			has := identifiers(*read)
			is = !slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(has, id) })
			if slices.Contains(has, drivebay.TableGUID(owner.Drive.ID)) {
				tabled = append(tabled, d)
			}
		}
		if is {
			found = append(found, d)
		}
	}
	if len(found) == 0 {
		found = tabled
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// contentRead returns what was read from a listed drive since it appeared; nil: nothing yet.
func (m *Tracker) contentRead(d *drivebay.Drive) *drivebay.Content {
	for _, t := range m.State.Drives {
		if t.Present && t.IsDevice(d) && !t.Fresh && !t.Reading {
			return &t.Drive.Content
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
func (m *Tracker) setUnidentified(t *state.Tracked, why string, now time.Time) {
	if t.Drive.Status == drivebay.StatusUnknown && t.Drive.IdentityIssue == why && !t.Present {
		return
	}
	t.Present, t.Reading = false, false
	d := &t.Drive
	d.Status, d.IdentityIssue = drivebay.StatusUnknown, why
	d.Kernel, d.Uses, d.Slot.Lit, d.Slot.FaultLit, d.Slot.Status = nil, nil, false, false, ""
	d.LastSeen = seenAt(d, now.Truncate(time.Second))
	m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventIdentity, Drive: d.ID, From: d.ID, Cause: why})
	m.Poll.Assess(t)
	m.State.KeepRecord(t)
}
