package place

import (
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/units"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// Site is a place where a volume can be made: one drive, or those of a mirror.
type Site struct {
	Rooms []DriveSpace
	Most  uint64 // bytes that one volume can have
}

// Key identifies the place by its drives.
func (at Site) Key() string {
	var drives []string
	for _, r := range at.Rooms {
		drives = append(drives, r.Drive.ID)
	}
	return KeyOf(drives)
}

// KeyOf returns the key of the place that has these drives; of one drive, it is the id of the drive.
func KeyOf(drives []string) string { return strings.Join(slices.Sorted(slices.Values(drives)), " ") }

// SitesIn returns the places for volumes of a class.
func SitesIn(rooms []DriveSpace, c drivebay.Class) []Site {
	if c.Backing == drivebay.BackingMirror {
		return mirrorSites(rooms, Overhead(c.Encryption))
	}
	var out []Site
	for _, r := range rooms {
		most := uint64(0)
		switch c.Backing {
		case drivebay.BackingPartition:
			most = Largest(r.Free).Size()
		case drivebay.BackingDrive:
			if !r.Used {
				most = Largest(r.Free).Size()
			}
		default:
			most = r.extents(c.Backing.Location()) * lvm.ExtentSize
		}
		if most -= min(most, Overhead(c.Encryption)); most >= Smallest(c, true) {
			out = append(out, Site{[]DriveSpace{r}, most})
		}
	}
	return out
}

// mirrorSites returns the existing mirrors, then new ones of two drives each: the largest with the
// largest, which gives the most space.
func mirrorSites(rooms []DriveSpace, over uint64) []Site {
	var out []Site
	var single []DriveSpace
	for _, r := range rooms {
		switch {
		case r.extents(drivebay.LocationMirror) == 0:
		case r.PV == nil || r.PV.Group == "":
			single = append(single, r)
		default:
			if s, ok := together(rooms, r); ok {
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(single, func(a, b DriveSpace) int {
		return int(int64(b.extents(drivebay.LocationMirror)) - int64(a.extents(drivebay.LocationMirror)))
	})
	for ; len(single) > 1; single = single[1:] {
		// LVM makes no group of drives whose blocks differ in size (vgcreate 2.03.16, tried).
		other := 1 + slices.IndexFunc(single[1:], func(r DriveSpace) bool {
			return r.Drive.LogicalBlock == single[0].Drive.LogicalBlock && !units.OfOneDevice(r.Drive, single[0].Drive)
		})
		if other > 0 {
			out = append(out, mirrorOf([]DriveSpace{single[0], single[other]}))
			single = slices.Delete(single, other, other+1)
		}
	}
	for i := range out {
		out[i].Most -= min(out[i].Most, over)
	}
	return slices.DeleteFunc(out, func(s Site) bool { return s.Most == 0 })
}

// together returns the mirror that a drive is in, only for the first of its drives.
func together(rooms []DriveSpace, r DriveSpace) (Site, bool) {
	var all []DriveSpace
	for _, o := range rooms {
		if o.PV != nil && o.PV.Group == r.PV.Group {
			all = append(all, o)
		}
	}
	if len(all) < 2 || len(all) != len(r.PV.Members) || all[0].Drive.ID != r.Drive.ID || units.OfOneDevice(all[0].Drive, all[1].Drive) {
		return Site{}, false
	}
	return mirrorOf(all), true
}

func mirrorOf(rooms []DriveSpace) Site {
	most := rooms[0].extents(drivebay.LocationMirror)
	for _, r := range rooms[1:] {
		most = min(most, r.extents(drivebay.LocationMirror))
	}
	return Site{slices.Clone(rooms), most * lvm.ExtentSize}
}

// Available returns the space for all volumes together at a place.
func (at Site) Available(c drivebay.Class) uint64 {
	if c.Backing != drivebay.BackingPartition {
		return at.Most
	}
	sum := uint64(0)
	for _, f := range at.Rooms[0].Free {
		sum += f.Size() - min(f.Size(), Overhead(c.Encryption))
	}
	return sum
}

// Backings returns the space of a drive for volumes of each backing; of a mirror, for one leg.
func (r DriveSpace) Backings() map[drivebay.Backing]drivebay.BackingRoom {
	out := map[drivebay.Backing]drivebay.BackingRoom{}
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin} {
		c := drivebay.Class{Backing: b}
		for _, at := range SitesIn([]DriveSpace{r}, c) {
			out[b] = drivebay.BackingRoom{Largest: at.Most, Available: at.Available(c)}
		}
	}
	if leg := r.extents(drivebay.LocationMirror) * lvm.ExtentSize; leg > 0 {
		out[drivebay.BackingMirror] = drivebay.BackingRoom{Largest: leg, Available: leg}
	}
	return out
}

// Locate returns the location of a new volume at a site, and the physical volumes that it needs.
func (at Site) Locate(c drivebay.Class, id, instance string) (drivebay.Location, map[string]string, error) {
	l := drivebay.Location{Kind: c.Backing.Location()}
	for _, r := range at.Rooms {
		l.Drives = append(l.Drives, r.Drive.ID)
	}
	if l.Kind == drivebay.LocationPartition || l.Kind == drivebay.LocationDrive {
		l.Partition = instance
		return l, nil, nil
	}
	var err error
	l.Instance = instance
	if l.LV, err = lvm.VolumeName(id); err != nil {
		return l, nil, err
	}
	if l.Kind == drivebay.LocationThin {
		l.Pool = PoolName
	}
	if pv := at.Rooms[0].PV; pv != nil && pv.Group != "" {
		l.VG = pv.Group
		return l, pv.Members, nil
	}
	pvs := map[string]string{}
	for _, r := range at.Rooms {
		if pvs[r.Drive.ID] = lvm.NewPVUUID(); r.PV != nil && r.PV.UUID != "" {
			pvs[r.Drive.ID] = r.PV.UUID
		}
	}
	l.VG, err = lvm.GroupName(ledger.NewGroup())
	return l, pvs, err
}

// KindKey is the tag of a group that holds the kind of its volumes.
const KindKey = "kind"

// GroupKind returns the kind of the volumes in a group, from its tag.
func GroupKind(g *lvm.Group) drivebay.LocationKind {
	for _, t := range g.Tags {
		var kind drivebay.LocationKind
		if key, value, ok := lvm.DecodeTag(t); ok && key == KindKey && kind.UnmarshalText([]byte(value)) == nil {
			return kind
		}
	}
	return drivebay.LocationUnknown
}
