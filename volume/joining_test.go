package volume

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// groupOn adds a group of a kind with room for free bytes to what is seen, on one
// physical volume for each drive.
func (s *placementView) groupOn(t *testing.T, kind drivebay.LocationKind, free uint64, drives ...string) {
	t.Helper()
	tag, err := tags(map[string]string{kindKey: kind.String()})
	if err != nil {
		t.Fatal(err)
	}
	g := lvm.Group{Name: "drivebay-" + drives[0], Tags: append(tag, lvm.Tag), LVs: []lvm.LV{{Name: poolName, Size: free}}}
	for _, id := range drives {
		p := part{device: device{dev: "/dev/" + id + "1", size: 98 * gib}, start: mib, title: pvPrefix + id}
		s.index.parts[id], s.index.lvm.pvs[id] = []part{p}, p.dev
		g.PVs = append(g.PVs, lvm.PV{UUID: id, Device: p.dev, Free: free, Allocatable: true})
	}
	s.index.lvm.report.Groups = append(s.index.lvm.report.Groups, g)
}

// TestJoining: a volume joins a group before another drive becomes one, so that
// there are drives left for what is not made by LVM.
func TestJoining(t *testing.T) {
	for name, c := range map[string]struct {
		backing drivebay.Backing
		group   drivebay.LocationKind
		on      []string // the drives of the group
		free    uint64
		worn    string // a drive
		size    uint64
		want    string // the first of its drives
	}{
		"a linear group":            {backing: drivebay.BackingLVM, group: drivebay.LocationLVM, on: []string{"c"}, free: 2 * gib, want: "c"},
		"a thin pool":               {backing: drivebay.BackingThin, group: drivebay.LocationThin, on: []string{"c"}, free: 2 * gib, want: "c"},
		"a mirror":                  {backing: drivebay.BackingMirror, group: drivebay.LocationMirror, on: []string{"c", "d"}, free: 2 * gib, want: "c"},
		"on a drive that is worn":   {backing: drivebay.BackingLVM, group: drivebay.LocationLVM, on: []string{"c"}, free: 2 * gib, worn: "c", want: "c"},
		"with too little room":      {backing: drivebay.BackingLVM, group: drivebay.LocationLVM, on: []string{"c"}, free: gib, size: 2 * gib, want: "a"},
		"a mirror with too little":  {backing: drivebay.BackingMirror, group: drivebay.LocationMirror, on: []string{"c", "d"}, free: gib, size: gib, want: "a"},
		"that is full":              {backing: drivebay.BackingLVM, group: drivebay.LocationLVM, on: []string{"c"}, want: "a"},
		"of another kind":           {backing: drivebay.BackingLVM, group: drivebay.LocationThin, on: []string{"a"}, free: 2 * gib, want: "b"},
		"partitions keep off it":    {backing: drivebay.BackingPartition, group: drivebay.LocationLVM, on: []string{"a"}, free: 2 * gib, want: "b"},
		"so do whole drives":        {backing: drivebay.BackingDrive, group: drivebay.LocationThin, on: []string{"a"}, free: 2 * gib, want: "b"},
		"none, then the least worn": {backing: drivebay.BackingLVM, worn: "a", want: "b"},
	} {
		s := placementView{drives: &drivebay.Snapshot{}, index: index{parts: map[string][]part{}, lvm: &lvmIndex{pvs: map[string]string{}, report: &lvm.Report{}}}}
		for _, id := range []string{"a", "b", "c", "d"} {
			d := drive(id)
			if id == c.worn {
				worn(9)(&d)
			}
			s.drives.Drives, s.index.parts[id] = append(s.drives.Drives, d), nil
		}
		if c.on != nil {
			s.groupOn(t, c.group, c.free, c.on...)
		}
		at, err := s.choose(drivebay.Class{Backing: c.backing, FSType: "ext4"}, max(c.size, gib), nil)
		if err != nil || at.rooms[0].drive.ID != c.want {
			t.Errorf("%s: %+v, %v, want %s", name, at.rooms, err, c.want)
		}
	}
}
