package inventory

import (
	"errors"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// TestPlanRoom: what moves so that a volume can grow, whereto, and why nothing can.
func TestPlanRoom(t *testing.T) {
	type record = func(*drivebay.VolumeRecord)
	type change = func(*drivebay.Drive)
	used := func(r *drivebay.VolumeRecord) {
		r.Volume.Publications = []drivebay.Publication{{Path: "/x", Staging: true}}
		r.Volume.CSIStatus = drivebay.CSIVolumeReady
	}
	failed := func(r *drivebay.VolumeRecord) {
		r.Volume.CSIStatus = drivebay.CSIFailed
		r.Volume.Failure = &drivebay.Failure[drivebay.CSIStatus]{Before: drivebay.CSICreated, Retry: drivebay.RetryOperator, Cause: "two copies"}
	}
	removing := func(r *drivebay.VolumeRecord) {
		r.Volume.CSIStatus, r.Work = drivebay.CSIRemoving, &drivebay.Work{Op: drivebay.WorkRemove}
	}
	spoiled := func(d *drivebay.Drive) { d.Health = drivebay.HealthSuspect }
	unclaimed := func(d *drivebay.Drive) { d.Claim = nil }
	larger := func(d *drivebay.Drive) { d.LogicalBlock = 4096 }
	nvme := func(d *drivebay.Drive) { d.Type = drivebay.TypeNVMe }
	for name, c := range map[string]struct {
		d1, d2 change // the second drive is away where it is not named
		a, b   record
		parts  []partitions.Part // of drive 1, besides a, which is at 1 MiB and has 10 GiB, and b
		at     uint64            // of b, which has 10 GiB, in GiB; 0: there is no b
		size   uint64            // in GiB
		failed bool              // b could not be moved a moment ago
		want   string            // what moves to which drive; else what the reason says
		wait   bool              // it passes
	}{
		"on its drive":                   {at: 20, size: 40, want: "a to 1"},
		"its own drive before a better":  {at: 20, size: 40, d2: nvme, want: "a to 1"},
		"to another drive":               {at: 70, size: 60, d2: func(*drivebay.Drive) {}, want: "a to 2"},
		"not to an unclaimed one":        {at: 40, size: 60, d2: unclaimed, want: "b to 1"},
		"not to one that is not GOOD":    {at: 40, size: 60, d2: spoiled, want: "b to 1"},
		"not to one of larger blocks":    {at: 40, size: 60, d2: larger, want: "b to 1"},
		"nor the other one":              {at: 12, size: 92, a: used, d2: larger, want: "behind it no drive that volume b may move to has 10 GiB free in one piece"},
		"to one of smaller blocks":       {at: 70, size: 60, d1: larger, d2: func(*drivebay.Drive) {}, want: "a to 2"},
		"from a drive that is not GOOD":  {at: 20, size: 40, d1: spoiled, d2: func(*drivebay.Drive) {}, want: "a to 2"},
		"in use":                         {at: 20, size: 40, a: used, want: "b to 1"},
		"in use, and the end of it":      {size: 120, a: used, want: "its drive ends behind it"},
		"both in use":                    {at: 20, size: 40, a: used, b: used, want: "behind it volume b is in use (staged at /x)"},
		"the other one has no room":      {at: 12, size: 92, a: used, want: "behind it no drive that volume b may move to has 10 GiB free in one piece"},
		"the other one to another drive": {at: 12, size: 92, a: used, d2: func(*drivebay.Drive) {}, want: "b to 2"},
		"not enough without it":          {at: 12, size: 60, a: used, parts: []partitions.Part{oursAt(50*partitions.GiB, partitions.GiB)}, want: "it could have 51199 MiB without volume b behind it"},
		"a physical volume behind it":    {size: 60, a: used, parts: []partitions.Part{{Device: mounttable.Device{Size: partitions.GiB}, Number: 7, Start: 50 * partitions.GiB, Title: ledger.PVPrefix + "x"}}, want: "partition 7 (drivebay-pv-x) lies behind it"},
		"a volume without a record":      {size: 60, a: used, parts: []partitions.Part{oursAt(50*partitions.GiB, partitions.GiB)}, want: "lies behind it"},
		"undecided":                      {at: 20, size: 40, a: used, b: failed, want: "behind it volume b is FAILED"},
		"being removed":                  {at: 20, size: 40, a: used, b: removing, want: "volume b is at work (remove)", wait: true},
		"failed lately":                  {at: 20, size: 40, a: used, failed: true, want: "volume b could not be moved: x"},
		"a leaving":                      {at: 20, size: 40, a: func(r *drivebay.VolumeRecord) { r.Volume.Usage = drivebay.VolumeReleasing }, want: "b to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			one := drive("1")
			if c.d1 != nil {
				c.d1(&one)
			}
			two := drive("2", func(d *drivebay.Drive) { d.Status = drivebay.StatusOffline })
			if c.d2 != nil {
				two = drive("2", c.d2)
			}
			s := PlacementView{Drives: &drivebay.Snapshot{Drives: []drivebay.Drive{one, two}}, unmoved: map[string]string{}}
			parts := c.parts
			volume := func(name string, at uint64, change record) *drivebay.VolumeRecord {
				r := &drivebay.VolumeRecord{Volume: drivebay.Volume{ID: drivebay.VolumeID(name), Name: name, Size: 10 * partitions.GiB, Mode: drivebay.ModeRawPart, CSIStatus: drivebay.CSICreated, Usage: drivebay.VolumeInUse,
					Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{"1"}, Partition: ledger.NewUUID()}}}
				if change != nil {
					change(r)
				}
				if r.Work != nil {
					s.records = append(s.records, r)
				}
				s.volumes = append(s.volumes, r)
				p := partitions.Part{Device: mounttable.Device{Size: 10 * partitions.GiB}, Number: len(parts) + 1, Start: at, Title: ledger.PartitionName(r.Volume.ID), GUID: r.Volume.Location.Partition}
				parts = append([]partitions.Part{p}, parts...)
				return r
			}
			if c.at > 0 {
				if b := volume("b", c.at*partitions.GiB, c.b); c.failed {
					s.unmoved[b.Volume.ID] = "x"
				}
			}
			a := volume("a", partitions.MiB, c.a)
			if len(s.volumes) == 2 && s.volumes[0].Volume.ID > s.volumes[1].Volume.ID {
				s.volumes[0], s.volumes[1] = s.volumes[1], s.volumes[0]
			}
			s.Index.Parts = map[string][]partitions.Part{"1": parts, "2": nil}
			plan, err := s.PlanRoom(&a.Volume, c.size*partitions.GiB)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || errors.Is(err, drivebay.ErrPending) != c.wait || errors.Is(err, drivebay.ErrNoSpace) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			if got := plan.Moves.Volume.Name + " to " + plan.To.Rooms[0].Drive.ID; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if want := c.size * partitions.GiB; plan.Moves == a && plan.Size != want || plan.Moves != a && plan.Size != 10*partitions.GiB {
				t.Errorf("with %d bytes", plan.Size)
			}
		})
	}
}

// TestKeptFree: what a volume is to grow into is no room for others while the one that
// was there moves, and is room for it.
func TestKeptFree(t *testing.T) {
	at := drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{"1"}}
	a := &drivebay.VolumeRecord{Volume: drivebay.Volume{ID: "a", Size: 10 * partitions.GiB, Location: at}}
	b := &drivebay.VolumeRecord{Volume: drivebay.Volume{ID: "b", Size: 10 * partitions.GiB, Location: at}, Work: &drivebay.Work{Op: drivebay.WorkMove,
		Move: &drivebay.Move{From: at, To: drivebay.Location{Drives: []string{"2"}, Partition: "x"}, Growth: &drivebay.Growth{Volume: "a", Size: 60 * partitions.GiB}}}}
	b.Volume.Location.Partition = "x" // it has moved
	one := drive("1")
	parts := []partitions.Part{{Device: mounttable.Device{Size: 10 * partitions.GiB}, Number: 1, Start: partitions.MiB, Title: ledger.PartitionName("a")}}
	s := PlacementView{Drives: &drivebay.Snapshot{Drives: []drivebay.Drive{one}}, Index: partitions.Index{Parts: map[string][]partitions.Part{"1": parts}},
		volumes: []*drivebay.VolumeRecord{a, b}, records: []*drivebay.VolumeRecord{b}}
	if free := s.room(&one, parts).Free; len(free) != 1 || free[0].Start != 60*partitions.GiB+partitions.MiB {
		t.Errorf("free for others is %+v", free)
	}
	if have, err := s.GrowsTo(&a.Volume); err != nil || have < 90*partitions.GiB {
		t.Errorf("it can have %d bytes: %v", have, err)
	}
}

// TestAmbiguous: of two partitions of one name the GUID decides, and without it none.
func TestAmbiguous(t *testing.T) {
	p := func(number int, guid string) partitions.Part {
		return partitions.Part{Number: number, Title: "x", GUID: guid}
	}
	for name, c := range map[string]struct {
		parts []partitions.Part
		want  int // number; 0: it is not to be used
	}{
		"by its GUID":            {[]partitions.Part{p(1, "aa"), p(2, "bb")}, 2},
		"the first one unknown":  {[]partitions.Part{p(1, ""), p(2, "bb")}, 2},
		"alone, unknown":         {[]partitions.Part{p(1, "")}, 1},
		"both unknown":           {[]partitions.Part{p(1, ""), p(2, "")}, 0},
		"its own is the unknown": {[]partitions.Part{p(1, "aa"), p(2, "")}, 0},
		"another one":            {[]partitions.Part{p(1, "aa")}, 0},
	} {
		got, ok := partitions.Instanced(c.parts, "x", "bb")
		if ok = ok && !partitions.Ambiguous(c.parts, got); ok != (c.want != 0) || ok && got.Number != c.want {
			t.Errorf("%s: partition %d, %v", name, got.Number, ok)
		}
	}
}

// TestRoomToLeaveUnasked: before LVM was asked, whether a group has room on another drive is not known.
func TestRoomToLeaveUnasked(t *testing.T) {
	v := drivebay.Volume{Location: drivebay.Location{Kind: drivebay.LocationLVM, VG: "vg", Drives: []string{"a"}}}
	if to, err := (PlacementView{Drives: &drivebay.Snapshot{}}).RoomToLeave(&v, "a"); !errors.Is(err, drivebay.ErrPending) {
		t.Errorf("%q, %v", to, err)
	}
}
