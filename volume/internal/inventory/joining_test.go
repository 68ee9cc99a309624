package inventory

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
)

// groupOn adds a group of a kind with room for free bytes to what is seen, on one
// physical volume for each drive.
func (s *PlacementView) groupOn(t *testing.T, kind drivebay.LocationKind, free uint64, drives ...string) {
	t.Helper()
	tag, err := groups.Tags(map[string]string{place.KindKey: kind.String()})
	if err != nil {
		t.Fatal(err)
	}
	g := lvm.Group{Name: "drivebay-" + drives[0], Tags: append(tag, lvm.Tag), LVs: []lvm.LV{{Name: place.PoolName, Size: free}}}
	for _, id := range drives {
		p := partitions.Part{Device: mounttable.Device{Dev: "/dev/" + id + "1", Size: 98 * partitions.GiB}, Start: partitions.MiB, Title: ledger.PVPrefix + id}
		s.Index.Parts[id], s.Index.LVM.PVs[id] = []partitions.Part{p}, p.Dev
		g.PVs = append(g.PVs, lvm.PV{UUID: id, Device: p.Dev, Free: free, Allocatable: true})
	}
	s.Index.LVM.Report.Groups = append(s.Index.LVM.Report.Groups, g)
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
		"a linear group":            {backing: drivebay.BackingLVM, group: drivebay.LocationLVM, on: []string{"c"}, free: 2 * partitions.GiB, want: "c"},
		"a thin pool":               {backing: drivebay.BackingThin, group: drivebay.LocationThin, on: []string{"c"}, free: 2 * partitions.GiB, want: "c"},
		"a mirror":                  {backing: drivebay.BackingMirror, group: drivebay.LocationMirror, on: []string{"c", "d"}, free: 2 * partitions.GiB, want: "c"},
		"on a drive that is worn":   {backing: drivebay.BackingLVM, group: drivebay.LocationLVM, on: []string{"c"}, free: 2 * partitions.GiB, worn: "c", want: "c"},
		"with too little room":      {backing: drivebay.BackingLVM, group: drivebay.LocationLVM, on: []string{"c"}, free: partitions.GiB, size: 2 * partitions.GiB, want: "a"},
		"a mirror with too little":  {backing: drivebay.BackingMirror, group: drivebay.LocationMirror, on: []string{"c", "d"}, free: partitions.GiB, size: partitions.GiB, want: "a"},
		"that is full":              {backing: drivebay.BackingLVM, group: drivebay.LocationLVM, on: []string{"c"}, want: "a"},
		"of another kind":           {backing: drivebay.BackingLVM, group: drivebay.LocationThin, on: []string{"a"}, free: 2 * partitions.GiB, want: "b"},
		"partitions keep off it":    {backing: drivebay.BackingPartition, group: drivebay.LocationLVM, on: []string{"a"}, free: 2 * partitions.GiB, want: "b"},
		"so do whole drives":        {backing: drivebay.BackingDrive, group: drivebay.LocationThin, on: []string{"a"}, free: 2 * partitions.GiB, want: "b"},
		"none, then the least worn": {backing: drivebay.BackingLVM, worn: "a", want: "b"},
	} {
		s := PlacementView{Drives: &drivebay.Snapshot{}, Index: partitions.Index{Parts: map[string][]partitions.Part{}, LVM: &partitions.LVMIndex{PVs: map[string]string{}, Report: &lvm.Report{}}}}
		for _, id := range []string{"a", "b", "c", "d"} {
			d := drive(id)
			if id == c.worn {
				worn(9)(&d)
			}
			s.Drives.Drives, s.Index.Parts[id] = append(s.Drives.Drives, d), nil
		}
		if c.on != nil {
			s.groupOn(t, c.group, c.free, c.on...)
		}
		at, err := s.Choose(drivebay.Class{Backing: c.backing, FSType: "ext4"}, max(c.size, partitions.GiB), nil)
		if err != nil || at.Rooms[0].Drive.ID != c.want {
			t.Errorf("%s: %+v, %v, want %s", name, at.Rooms, err, c.want)
		}
	}
}
