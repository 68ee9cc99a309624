package volume

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// site is a place where a volume can be made: one drive, or those of a mirror.
type site struct {
	rooms []room
	most  uint64 // bytes that one volume can have
}

// sites returns the places where a volume of a class can be made, best first.
func (s placementView) sites(c drivebay.Class) []site {
	return sitesIn(s.rooms(c), c)
}

func sitesIn(rooms []room, c drivebay.Class) []site {
	if c.Backing == drivebay.BackingMirror {
		return mirrorSites(rooms, overhead(c.Encryption))
	}
	var out []site
	for _, r := range rooms {
		most := uint64(0)
		switch c.Backing {
		case drivebay.BackingPartition:
			most = largest(r.free).size()
		case drivebay.BackingDrive:
			if !r.used {
				most = largest(r.free).size()
			}
		default:
			most = r.extents(kindOf(c.Backing)) * lvm.ExtentSize
		}
		if most -= min(most, overhead(c.Encryption)); most >= smallest(c, true) {
			out = append(out, site{[]room{r}, most})
		}
	}
	return out
}

// mirrorSites returns the existing mirrors, then new ones of two drives each: the largest with the
// largest, which gives the most space.
func mirrorSites(rooms []room, over uint64) []site {
	var out []site
	var single []room
	for _, r := range rooms {
		switch {
		case r.extents(drivebay.LocationMirror) == 0:
		case r.pv == nil || r.pv.group == "":
			single = append(single, r)
		default:
			if s, ok := together(rooms, r); ok {
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(single, func(a, b room) int {
		return int(int64(b.extents(drivebay.LocationMirror)) - int64(a.extents(drivebay.LocationMirror)))
	})
	for ; len(single) > 1; single = single[1:] {
		// LVM makes no group of drives whose blocks differ in size (vgcreate 2.03.16, tried).
		other := 1 + slices.IndexFunc(single[1:], func(r room) bool { return r.drive.LogicalBlock == single[0].drive.LogicalBlock })
		if other > 0 {
			out = append(out, mirrorOf([]room{single[0], single[other]}))
			single = slices.Delete(single, other, other+1)
		}
	}
	for i := range out {
		out[i].most -= min(out[i].most, over)
	}
	return slices.DeleteFunc(out, func(s site) bool { return s.most == 0 })
}

// together returns the mirror that a drive is in, only for the first of its drives.
func together(rooms []room, r room) (site, bool) {
	var all []room
	for _, o := range rooms {
		if o.pv != nil && o.pv.group == r.pv.group {
			all = append(all, o)
		}
	}
	if len(all) < 2 || len(all) != len(r.pv.members) || all[0].drive.ID != r.drive.ID {
		return site{}, false
	}
	return mirrorOf(all), true
}

func mirrorOf(rooms []room) site {
	most := rooms[0].extents(drivebay.LocationMirror)
	for _, r := range rooms[1:] {
		most = min(most, r.extents(drivebay.LocationMirror))
	}
	return site{slices.Clone(rooms), most * lvm.ExtentSize}
}

// choose returns the best place for a volume; drives in without have been tried.
func (s placementView) choose(c drivebay.Class, size uint64, without map[string]bool) (site, error) {
	most := uint64(0)
	for _, at := range s.sites(c) {
		if slices.ContainsFunc(at.rooms, func(r room) bool { return without[r.drive.ID] }) {
			continue
		}
		if at.most >= size {
			return at, nil
		}
		most = max(most, at.most)
	}
	if limit := s.limit(c); limit > 0 && size > limit {
		return site{}, fmt.Errorf("%w: requested %s, but an empty drive of this class holds at most %s", drivebay.ErrRange, sizeText(size), sizeText(limit))
	}
	return site{}, fmt.Errorf("%w: requested %s, but the largest volume of this class can have %s", drivebay.ErrNoSpace, sizeText(size), sizeText(most))
}

// limit returns the largest volume of a class that its drives could hold if all of them were empty
// and GOOD; 0: there is no such drive.
func (s placementView) limit(c drivebay.Class) uint64 {
	var rooms []room
	for i := range s.drives.Drives {
		d := &s.drives.Drives[i]
		if d.Claim != nil && (c.Drives == drivebay.TypeUnknown || c.Drives == d.Type) {
			rooms = append(rooms, room{drive: d, free: freeSpans(d.Size, d.LogicalBlock, nil)})
		}
	}
	out := uint64(0)
	for _, at := range sitesIn(rooms, c) {
		out = max(out, at.most)
	}
	return out
}

// capacity returns the space for new volumes of a class.
func (s placementView) capacity(c drivebay.Class) drivebay.Capacity {
	out := drivebay.Capacity{Smallest: smallest(c, false)}
	for _, at := range s.sites(c) {
		out.Largest = max(out.Largest, at.most)
		out.Available += at.available(c)
	}
	if out.Largest < out.Smallest {
		out.Available, out.Largest = 0, 0
	}
	return out
}

// available returns the space for all volumes together at a place.
func (at site) available(c drivebay.Class) uint64 {
	if c.Backing != drivebay.BackingPartition {
		return at.most
	}
	sum := uint64(0)
	for _, f := range at.rooms[0].free {
		sum += f.size() - min(f.size(), overhead(c.Encryption))
	}
	return sum
}

// locate returns the location of a new volume at a site, and the physical volumes that it needs.
func (at site) locate(c drivebay.Class, id, instance string) (drivebay.Location, map[string]string, error) {
	l := drivebay.Location{Kind: kindOf(c.Backing)}
	for _, r := range at.rooms {
		l.Drives = append(l.Drives, r.drive.ID)
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
		l.Pool = poolName
	}
	if pv := at.rooms[0].pv; pv != nil && pv.group != "" {
		l.VG = pv.group
		return l, pv.members, nil
	}
	pvs := map[string]string{}
	for _, r := range at.rooms {
		if pvs[r.drive.ID] = lvm.NewPVUUID(); r.pv != nil && r.pv.uuid != "" {
			pvs[r.drive.ID] = r.pv.uuid
		}
	}
	l.VG, err = lvm.GroupName(newGroup())
	return l, pvs, err
}

// kindKey is the tag of a group that holds the kind of its volumes.
const kindKey = "kind"

// groupKind returns the kind of the volumes in a group, from its tag.
func groupKind(g *lvm.Group) drivebay.LocationKind {
	for _, t := range g.Tags {
		var kind drivebay.LocationKind
		if key, value, ok := lvm.DecodeTag(t); ok && key == kindKey && kind.UnmarshalText([]byte(value)) == nil {
			return kind
		}
	}
	return drivebay.LocationUnknown
}
