// Package named finds the drive, bay or volume that an argument names, and lists near matches where it names
// none.
package named

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drivebay/drivebay"
)

// Drive returns the drive that what names: see Snapshot.Lookup. For work that cannot be undone, whole
// refuses the beginning of a name. The error of an unknown name lists near matches.
func Drive(s *drivebay.Snapshot, what string, whole bool) (*drivebay.Drive, error) {
	resolve := s.Resolve
	if whole {
		resolve = s.ResolveWhole
	}
	d, err := resolve(Device(what))
	if !errors.Is(err, drivebay.ErrNotFound) {
		return d, err
	}
	return nil, unknownDrive(s, what)
}

// Device returns the device that a link below /dev leads to, for example one below
// /dev/disk/by-path. Names of by-id links are known without the link: it may be on another machine.
func Device(what string) string {
	if !strings.HasPrefix(what, "/dev/disk/") || strings.HasPrefix(what, "/dev/disk/by-id/") {
		return what
	}
	if device, err := filepath.EvalSymlinks(what); err == nil {
		return device
	}
	return what
}

// unknownDrive returns the error of a text that names no drive.
func unknownDrive(s *drivebay.Snapshot, what string) error {
	if len(s.FindBays(what)) == 1 {
		return fmt.Errorf("bay %q: %w: the bay is empty, and no drive that was in it is known", what, drivebay.ErrNotFound)
	}
	var near []string
	for i := range s.Drives {
		d := &s.Drives[i]
		if contains(strings.TrimPrefix(what, "/dev/"), d.ID, d.Name, d.Serial, d.WWN, d.Slot.Bay) {
			near = append(near, fmt.Sprintf("%s (%s)", d.ID, d.Name))
		}
	}
	none := "this machine has no drives"
	if len(s.Drives) > 0 {
		none = "`drivebay drives` lists the drives; give a bay, a name, a serial number, a WWN or an ID"
	}
	return unknown("drive", what, near, none)
}

// contains reports whether one of the names of an object contains a word, in any case.
func contains(word string, names ...string) bool {
	return word != "" && strings.Contains(strings.ToLower(strings.Join(names, " ")), strings.ToLower(word))
}

// maxNear is how many near matches an error lists.
const maxNear = 8

// unknown returns the error of a text that names no object; none is its end where no object is near.
func unknown(kind, what string, near []string, none string) error {
	if len(near) == 0 {
		return fmt.Errorf("%s %q: %w: %s", kind, what, drivebay.ErrNotFound, none)
	}
	if len(near) > maxNear {
		near = append(near[:maxNear], "...")
	}
	return fmt.Errorf("%s %q: %w: did you mean one of these? %s", kind, what, drivebay.ErrAmbiguous, strings.Join(near, ", "))
}

// Bay returns the bay that what names: by its name or number, or by the drive in it. For a
// drive it returns the ID of the drive.
func Bay(s *drivebay.Snapshot, what string) (string, error) {
	var same, all []string
	for _, b := range s.FindBays(what) {
		same = append(same, bayName(b))
	}
	switch d, err := Drive(s, what, false); {
	case len(same) == 1:
		return same[0], nil
	case len(same) > 1:
		return "", fmt.Errorf("bay %q: %w: %s", what, drivebay.ErrAmbiguous, strings.Join(same, ", "))
	case err == nil && d.Slot.Bay == "":
		return "", fmt.Errorf("drive %s (%s): %w: the bay of the drive is not known", d.ID, d.Name, drivebay.ErrNotFound)
	case err == nil:
		return d.ID, nil
	}
	for i := range s.Bays {
		all = append(all, bayName(&s.Bays[i]))
	}
	if len(all) == 0 {
		return "", fmt.Errorf("bay %q: %w: this machine reports no bays", what, drivebay.ErrNotFound)
	}
	return "", fmt.Errorf("bay %q: %w: known bays: %s", what, drivebay.ErrNotFound, strings.Join(all, ", "))
}

// bayName returns the name of a bay that no other bay has.
func bayName(b *drivebay.Bay) string { return strings.TrimPrefix(b.Enclosure+"/"+b.Bay, "/") }

// Volume returns the volume that what names; with whole, what must not be the beginning of a
// name. The error of an unknown name lists near matches.
func Volume(set *drivebay.VolumeSet, what string, whole bool) (*drivebay.VolumeView, error) {
	resolve := set.Resolve
	if whole {
		resolve = set.ResolveWhole
	}
	v, err := resolve(what)
	if !errors.Is(err, drivebay.ErrNotFound) {
		return v, err
	}
	var near []string
	for _, v := range set.Volumes {
		if contains(what, v.ID, v.Name) {
			near = append(near, fmt.Sprintf("%s (%s)", v.ID, v.Name))
		}
	}
	none := "there are no volumes"
	if len(set.Volumes) > 0 {
		none = "`drivebay volumes` lists the volumes; give an ID or a name"
	}
	return nil, unknown("volume", what, near, none)
}
