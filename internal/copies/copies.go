// Package copies tells which drives are copies of each other.
package copies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// A copy of a drive (dd, ddrescue, half of a split RAID) has every identity of the
// original: the bytes do not tell the two apart, and lvm2 uses one of them, chosen by
// the name that its device had once. So neither is used for anything new until one of
// them is gone or wiped. An OFFLINE drive counts as well: the same bytes on another
// drive are not that drive.

// identity is a value that two drives have in common only if one is a copy. Only bytes
// that no user of a volume can write count, or a user could make the daemon refuse
// drives: not the filesystem in a volume, and no label that is written into one.
type identity struct {
	what, id string
	ours     bool // made by drivebay
}

// identitiesOf returns the identities of a drive. The GUID of the partition table that
// drivebay makes on it is one of them even while its content is not known: a drive that
// was copied and pulled at once is still told apart from its copy.
func identitiesOf(id string, c drivebay.Content) []identity {
	own := drivebay.TableGUID(id)
	out := []identity{{"partition table", own, true}}
	for _, s := range c.Signatures {
		switch {
		case s.UUID == "" || s.Format == "gpt" && strings.EqualFold(s.UUID, own):
		case s.Format == "gpt" && s.Partition == "":
			out = append(out, identity{"partition table", strings.ToLower(s.UUID), strings.HasPrefix(s.Label, drivebay.PartitionPrefix)})
		case s.Format == "LVM2_member" && (!strings.HasPrefix(s.Name, drivebay.PartitionPrefix) || strings.HasPrefix(s.Name, drivebay.PVPrefix)):
			out = append(out, identity{"physical volume", s.UUID, strings.HasPrefix(s.Name, drivebay.PVPrefix)})
		}
	}
	return out
}

// Find returns, by drive id, which other drive has the same identity as a drive that is
// not OFFLINE. Drives have to be in the order of their ids.
func Find(drives []drivebay.Drive) map[string]string {
	count := map[identity]int{}
	for i := range drives {
		for _, x := range identitiesOf(drives[i].ID, drives[i].Content) {
			x.ours = false
			count[x]++
		}
	}
	out := map[string]string{}
	for i := range drives {
		d := &drives[i]
		if d.Status != drivebay.StatusOffline && slices.ContainsFunc(identitiesOf(d.ID, d.Content), func(x identity) bool { x.ours = false; return count[x] > 1 }) {
			if why := Of(d.ID, d.Content, drives); why != "" {
				out[d.ID] = why
			}
		}
	}
	return out
}

// Of says which other drive has an identity in common with content c on the drive id,
// where drivebay made at least one of the two; "" for a drive without a copy. Of an absent drive it
// also says how it ceases to count.
func Of(id string, c drivebay.Content, drives []drivebay.Drive) string {
	mine := identitiesOf(id, c)
	self := slices.IndexFunc(drives, func(d drivebay.Drive) bool { return d.ID == id })
	for i := range drives {
		o := &drives[i]
		if o.ID == id || mayBe(o, id) || self >= 0 && mayBe(&drives[self], o.ID) {
			continue
		}
		for _, theirs := range identitiesOf(o.ID, o.Content) {
			if slices.ContainsFunc(mine, func(m identity) bool {
				return m.what == theirs.what && m.id == theirs.id && (m.ours || theirs.ours)
			}) {
				why := fmt.Sprintf("%s has the same %s %s: one of the two is a copy", describe(o), theirs.what, theirs.id)
				if o.Status == drivebay.StatusOffline {
					why += fmt.Sprintf("; if it is the absent drive, run `drivebay forget %s`", o.ID)
				}
				return why
			}
		}
	}
	return ""
}

// mayBe reports whether a record of a drive that is in doubt is maybe that of the drive of an id, which has its names: the two
// are no copies of each other, and what to do about it is said where the drive cannot be identified.
func mayBe(record *drivebay.Drive, id string) bool {
	return record.Status == drivebay.StatusUnknown && strings.HasPrefix(id, record.ID+"-at-")
}

// describe describes a drive for people.
func describe(d *drivebay.Drive) string {
	out := "drive " + d.ID
	if d.Status != drivebay.StatusOnline {
		return out + ", which is " + d.Status.String() + ","
	}
	out += " (" + d.Name
	if d.Slot.Bay != "" {
		out += ", bay " + d.Slot.Bay
	}
	return out + ")"
}
