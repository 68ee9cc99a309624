package drivebay

import (
	"fmt"
	"slices"
	"strings"
)

// Match says by what a text names a drive, a volume or a snapshot. A higher one wins: an exact
// name before the beginning of one, and an id before all others.
type Match uint8

const (
	MatchNone      Match = iota
	MatchPrefix          // the beginning of an id, a serial or a name
	MatchBayNumber       // the number of the bay that the drive is in
	MatchBay             // the name of that bay
	MatchName            // kernel name, device path, link of udev, serial or WWN of a drive; name of a volume
	MatchID
)

// minPrefix is the length from which on the beginning of a name can stand for the name. The number
// of a bay is shorter.
const minPrefix = 4

// Get returns a drive by its whole id.
func (s *Snapshot) Get(id string) (*Drive, bool) {
	for i := range s.Drives {
		if s.Drives[i].ID == id {
			return &s.Drives[i], true
		}
	}
	return nil, false
}

// Lookup returns the drives that a text names in the best way in which it names any. Drives in the
// machine come before those that were in the same bay.
func (s *Snapshot) Lookup(what string) ([]*Drive, Match) {
	if s == nil {
		return nil, MatchNone
	}
	found, by := bestMatches(s.Drives, what, (*Drive).match)
	if by == MatchBay || by == MatchBayNumber {
		if here := slices.DeleteFunc(slices.Clone(found), func(d *Drive) bool { return d.Status != StatusOnline }); len(here) > 0 {
			found = here
		}
	}
	return found, by
}

// Find returns the only drive of Lookup. A text that names several drives equally well finds none.
func (s *Snapshot) Find(what string) (*Drive, bool) {
	found, _ := s.Lookup(what)
	return single(found)
}

// Resolve does what Find does. Its error lists the candidates.
func (s *Snapshot) Resolve(what string) (*Drive, error) {
	found, _ := s.Lookup(what)
	return resolved("drive", what, found, (*Drive).called)
}

// ResolveWhole returns the drive that a text names as a whole: for work that cannot be undone. The
// beginning of a name is refused. So is a text that means different drives in different ways, for
// example the bay of one and the serial of another, or a drive and its predecessor in the bay.
func (s *Snapshot) ResolveWhole(what string) (*Drive, error) {
	found, by := s.Lookup(what)
	switch by {
	case MatchNone, MatchID:
		return resolved("drive", what, found, (*Drive).called)
	case MatchPrefix:
		return nil, beginning("drive", what, found, (*Drive).called)
	}
	var all []*Drive
	for i := range s.Drives {
		if s.Drives[i].match(what) > MatchPrefix {
			all = append(all, &s.Drives[i])
		}
	}
	return resolved("drive", what, all, (*Drive).called)
}

// called describes a drive among others.
func (d *Drive) called() string {
	text := d.ID + " (" + d.Name
	if d.Slot.Bay != "" {
		text += ", bay " + d.Slot.Bay
	}
	if d.Serial != "" {
		text += ", serial " + d.Serial
	}
	return text + ")"
}

func (d *Drive) match(what string) Match {
	switch {
	case d.ID == what:
		return MatchID
	case d.named(what):
		return MatchName
	}
	if m := d.Slot.match(what); m != MatchNone {
		return m
	}
	if isPrefix(what, d.ID) || isPrefix(what, d.Serial) {
		return MatchPrefix
	}
	return MatchNone
}

// named reports whether a text is a name of the drive other than its id: its kernel name, its
// device path, a link below /dev/disk/by-id, its serial or its WWN.
func (d *Drive) named(what string) bool {
	name := strings.TrimPrefix(what, "/dev/")
	if name == "" {
		return false
	}
	if d.Name == name || d.Serial != "" && strings.EqualFold(d.Serial, what) {
		return true
	}
	_, hex, _ := strings.Cut(d.WWN, ".")
	if d.WWN != "" && (strings.EqualFold(d.WWN, what) || hex != "" && strings.EqualFold(hex, strings.TrimPrefix(what, "0x"))) {
		return true
	}
	if slices.ContainsFunc(d.Paths, func(p Path) bool { return p.Name == name }) {
		return true
	}
	return d.linked(strings.TrimPrefix(name, "disk/by-id/"), hex)
}

// linked reports whether udev makes a link with this name to the drive (systemd,
// rules.d/60-persistent-storage.rules): wwn-0x... and scsi-3... with the WWN in hexadecimal,
// nvme-eui....; else BUS-MODEL_SERIAL, after which an NVMe drive can have the number of its namespace.
func (d *Drive) linked(link, hex string) bool {
	bus, rest, ok := strings.Cut(link, "-")
	if !ok || !slices.Contains([]string{"ata", "nvme", "scsi", "usb", "virtio", "wwn"}, bus) {
		return false
	}
	if hex != "" && (rest == "0x"+hex || rest == "3"+hex || rest == d.WWN) {
		return true
	}
	serial := strings.Join(strings.Fields(d.Serial), "_")
	if serial == "" || bus == "wwn" {
		return false
	}
	if d.Protocol == ProtocolNVMe {
		rest = strings.TrimSuffix(rest, "_"+d.Namespace)
		rest = strings.TrimSuffix(rest, "_1")
	}
	return rest == serial || strings.HasSuffix(rest, "_"+serial)
}

// match returns how well a text names the bay: as a whole, with its enclosure before it, or by its
// number. "Slot 7" is the name of "Slot 07"; "7", "bay 7" and "slot 7" are its number.
func (s Slot) match(what string) Match {
	if s.Bay == "" {
		return MatchNone
	}
	if rest, ok := strings.CutPrefix(what, s.Enclosure+"/"); ok && s.Enclosure != "" {
		what = rest
	}
	word, number := bayNumber(what)
	own, ownNumber := bayNumber(s.Bay)
	switch {
	case strings.EqualFold(s.Bay, what):
		return MatchBay
	case number == "" || number != ownNumber || strings.ContainsAny(own, "0123456789"):
		return MatchNone
	case word == own && word != "":
		return MatchBay
	case word == "" || word == "bay" || word == "slot":
		return MatchBayNumber
	}
	return MatchNone
}

// bayNumber divides the name of a bay into its words and its number without leading zeros.
func bayNumber(name string) (word, number string) {
	start := strings.LastIndexFunc(name, func(r rune) bool { return r < '0' || r > '9' }) + 1
	if number = strings.TrimLeft(name[start:], "0"); number == "" && start < len(name) {
		number = "0"
	}
	return strings.ToLower(strings.TrimSpace(name[:start])), number
}

// FindBays returns the bays that a text names in the best way in which it names any.
func (s *Snapshot) FindBays(what string) []*Bay {
	found, _ := bestMatches(s.Bays, what, func(b *Bay, what string) Match { return b.Slot.match(what) })
	return found
}

// FindBay returns the only bay of FindBays.
func (s *Snapshot) FindBay(what string) (*Bay, bool) { return single(s.FindBays(what)) }

// Find returns the volume with this id; else the one with this name; else the one whose id or name
// begins with it. A text that matches several volumes equally well finds none.
func (s *VolumeSet) Find(what string) (*VolumeView, bool) {
	found, _ := s.Lookup(what)
	return single(found)
}

// Lookup returns the volumes that a text names in the best way in which it names any.
func (s *VolumeSet) Lookup(what string) ([]*VolumeView, Match) {
	found, by := bestMatches(s.Volumes, what, func(v **VolumeView, what string) Match { return nameMatch(what, (*v).ID, (*v).Name) })
	out := make([]*VolumeView, len(found))
	for i, v := range found {
		out[i] = *v
	}
	return out, by
}

// Resolve does what Find does. Its error lists the candidates.
func (s *VolumeSet) Resolve(what string) (*VolumeView, error) {
	found, _ := s.Lookup(what)
	return resolved("volume", what, found, (*VolumeView).called)
}

// ResolveWhole does what Resolve does, and refuses the beginning of an id or name: for work that
// cannot be undone.
func (s *VolumeSet) ResolveWhole(what string) (*VolumeView, error) {
	found, by := s.Lookup(what)
	if by == MatchPrefix {
		return nil, beginning("volume", what, found, (*VolumeView).called)
	}
	return resolved("volume", what, found, (*VolumeView).called)
}

func (v *VolumeView) called() string { return v.ID + " (" + v.Name + ")" }

// ResolveSnapshot returns the snapshot with this id; else the one with this name. With prefix it
// can also be the beginning of either.
func (s *VolumeSet) ResolveSnapshot(what string, prefix bool) (*VolumeSnapshot, error) {
	found, by := bestMatches(s.Snapshots, what, func(v *VolumeSnapshot, what string) Match { return nameMatch(what, v.ID, v.Name) })
	called := func(v *VolumeSnapshot) string { return v.ID + " (" + v.Name + ")" }
	if by == MatchPrefix && !prefix {
		return nil, beginning("snapshot", what, found, called)
	}
	return resolved("snapshot", what, found, called)
}

func nameMatch(what, id, name string) Match {
	switch {
	case id == what:
		return MatchID
	case name == what:
		return MatchName
	case isPrefix(what, id) || isPrefix(what, name):
		return MatchPrefix
	}
	return MatchNone
}

// isPrefix reports whether a text is long enough to stand for a name that begins with it.
func isPrefix(what, name string) bool {
	return len(what) >= minPrefix && len(name) > len(what) && strings.EqualFold(name[:len(what)], what)
}

// bestMatches returns the elements that match best.
func bestMatches[T any](all []T, what string, match func(*T, string) Match) (found []*T, best Match) {
	if what == "" {
		return nil, MatchNone
	}
	for i := range all {
		switch m := match(&all[i], what); {
		case m > best:
			found, best = append(found[:0], &all[i]), m
		case m == best && m != MatchNone:
			found = append(found, &all[i])
		}
	}
	return found, best
}

func single[T any](found []*T) (*T, bool) {
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
}

// resolved returns the only element, or an error that lists the candidates.
func resolved[T any](kind, what string, found []*T, called func(*T) string) (*T, error) {
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s %q: %w", kind, what, ErrNotFound)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%s %q: %w: it names %s: give the ID", kind, what, ErrAmbiguous, candidates(found, called))
}

func beginning[T any](kind, what string, found []*T, called func(*T) string) error {
	return fmt.Errorf("%s %q: %w: it is only the beginning of %s: give the whole ID or name", kind, what, ErrAmbiguous, candidates(found, called))
}

// maxCandidates is how many candidates an error lists.
const maxCandidates = 8

func candidates[T any](found []*T, called func(*T) string) string {
	var out []string
	for i, f := range found {
		if i == maxCandidates {
			out = append(out, fmt.Sprintf("%d more", len(found)-i))
			break
		}
		out = append(out, called(f))
	}
	return strings.Join(out, ", ")
}
