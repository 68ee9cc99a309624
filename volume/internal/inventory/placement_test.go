package inventory

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
)

func drive(id string, change ...func(*drivebay.Drive)) drivebay.Drive {
	d := drivebay.Drive{ID: id, Name: id, Status: drivebay.StatusOnline, Usage: drivebay.UsageInUse, Health: drivebay.HealthGood, Type: drivebay.TypeHDD,
		LogicalBlock: 512, Claim: &drivebay.Claim{By: drivebay.ClaimedByOperator}, Content: drivebay.Content{Kind: drivebay.ContentBlank}}
	d.Size = 100 * partitions.GiB
	for _, f := range change {
		f(&d)
	}
	return d
}

func worn(percent int) func(*drivebay.Drive) {
	return func(d *drivebay.Drive) { d.Wear = &drivebay.Wear{PercentUsed: percent} }
}

// nvmeAt and sasAt make a drive a namespace of a controller and a unit of a target.
func nvmeAt(controller string) func(*drivebay.Drive) {
	return func(d *drivebay.Drive) {
		d.Transport, d.Serial, d.Paths = drivebay.TransportNVMe, "S1", []drivebay.Path{{Address: controller}}
	}
}

func sasAt(address string) func(*drivebay.Drive) {
	return func(d *drivebay.Drive) {
		d.Transport, d.Serial, d.Paths = drivebay.TransportSAS, "S1", []drivebay.Path{{Address: address}}
	}
}

// TestUnitsOfOneDevice: the legs of a mirror are on two devices, as long as a third one can be paired with one of them, and
// the leg that is made in place of a lost one is not on the device of the other one.
func TestUnitsOfOneDevice(t *testing.T) {
	s := PlacementView{Drives: &drivebay.Snapshot{Drives: []drivebay.Drive{drive("a", nvmeAt("0000:01:00.0")), drive("b", nvmeAt("0000:01:00.0")), drive("c")}},
		Index: partitions.Index{Parts: map[string][]partitions.Part{"a": nil, "b": nil, "c": nil}}}
	at, err := s.Choose(drivebay.Class{Backing: drivebay.BackingMirror, FSType: "ext4"}, partitions.GiB, nil)
	if err != nil || len(at.Rooms) != 2 || at.Rooms[0].Drive.ID != "a" || at.Rooms[1].Drive.ID != "c" {
		t.Errorf("a mirror: %+v, %v", at, err)
	}
	if d, err := s.Spare(Want{Block: 512}, []string{"a"}); err != nil || d.ID != "c" {
		t.Errorf("a leg beside a: %+v, %v", d, err)
	}
	if at, err := s.ChooseToLeave(&drivebay.Volume{FSType: "ext4", Mode: drivebay.ModeFS, Location: drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{"a"}}}, partitions.GiB); err != nil || at.Rooms[0].Drive.ID != "c" {
		t.Errorf("a volume leaves a: %+v, %v", at, err)
	}
	if d, err := s.Spare(Want{Block: 512}, []string{"a", "c"}); !errors.Is(err, drivebay.ErrNoSpace) {
		t.Errorf("a leg beside a, in place of c: %+v, %v", d, err)
	}
}

func oursAt(start, size uint64) partitions.Part {
	return partitions.Part{Device: mounttable.Device{Size: size}, Start: start, Title: ledger.PartitionName(drivebay.VolumeID("x"))}
}

// TestPlacement: who may get a volume, and in which order.
func TestPlacement(t *testing.T) {
	type change = func(*drivebay.Drive)
	partition := drivebay.Class{Backing: drivebay.BackingPartition, FSType: "ext4"}
	nvme := drivebay.Class{Backing: drivebay.BackingPartition, FSType: "ext4", Drives: drivebay.TypeNVMe}
	whole := drivebay.Class{Backing: drivebay.BackingDrive, FSType: "ext4"}
	mirror := drivebay.Class{Backing: drivebay.BackingMirror, FSType: "ext4"}
	for name, c := range map[string]struct {
		class  drivebay.Class
		a, b   change
		parts  map[string][]partitions.Part
		size   uint64
		want   string // drives; empty: no space
		listed bool
	}{
		"by id":                   {class: partition, want: "a"},
		"not claimed":             {class: partition, a: func(d *drivebay.Drive) { d.Claim = nil }, want: "b"},
		"cordoned":                {class: partition, a: func(d *drivebay.Drive) { d.Cordoned = true }, want: "b"},
		"suspect":                 {class: partition, a: func(d *drivebay.Drive) { d.Health = drivebay.HealthSuspect }, want: "b"},
		"bad":                     {class: partition, a: func(d *drivebay.Drive) { d.Health = drivebay.HealthBad }, want: "b"},
		"not known how it is":     {class: partition, a: func(d *drivebay.Drive) { d.Health = drivebay.HealthUnknown }, want: "b"},
		"foreign":                 {class: partition, a: func(d *drivebay.Drive) { d.Content.Kind = drivebay.ContentForeign }, want: "b"},
		"leaving":                 {class: partition, a: func(d *drivebay.Drive) { d.Usage = drivebay.UsageReleasing }, want: "b"},
		"offline":                 {class: partition, a: func(d *drivebay.Drive) { d.Status = drivebay.StatusOffline }, want: "b"},
		"of another type":         {class: nvme, b: func(d *drivebay.Drive) { d.Type = drivebay.TypeNVMe }, want: "b"},
		"less worn":               {class: partition, a: worn(9), b: worn(3), want: "b"},
		"less filled":             {class: partition, parts: map[string][]partitions.Part{"a": {oursAt(partitions.MiB, partitions.GiB)}}, want: "b"},
		"worn counts before full": {class: partition, b: worn(1), parts: map[string][]partitions.Part{"a": {oursAt(partitions.MiB, partitions.GiB)}}, want: "a"},
		"not large enough":        {class: partition, size: 100 * partitions.GiB, want: ""},
		"a stranger's partition":  {class: partition, parts: map[string][]partitions.Part{"a": {{Device: mounttable.Device{Size: partitions.GiB}, Start: partitions.MiB, Title: "data"}}}, want: "b"},
		"a nameless partition":    {class: partition, parts: map[string][]partitions.Part{"a": {{Device: mounttable.Device{Size: partitions.GiB}, Start: partitions.MiB}}}, want: "b"},
		"a whole drive is blank":  {class: whole, parts: map[string][]partitions.Part{"a": {oursAt(partitions.MiB, partitions.GiB)}}, want: "b"},
		"a mirror takes two":      {class: mirror, want: "a b"},
		"a mirror of one":         {class: mirror, a: func(d *drivebay.Drive) { d.Claim = nil }, want: ""},
		"a mirror that fits one":  {class: mirror, b: func(d *drivebay.Drive) { d.Size = 30 * partitions.GiB }, size: 40 * partitions.GiB, want: ""},
		"a mirror of one device":  {class: mirror, a: nvmeAt("0000:01:00.0"), b: nvmeAt("0000:01:00.0"), want: ""},
		"a mirror of one disk":    {class: mirror, a: sasAt("1:0:1:0"), b: sasAt("1:0:1:1"), want: ""},
		"a mirror of one serial":  {class: mirror, a: sasAt("1:0:1:0"), b: sasAt("1:0:2:0"), want: "a b"},
		"a mirror of two blocks":  {class: mirror, b: func(d *drivebay.Drive) { d.LogicalBlock = 4096 }, want: ""},
	} {
		var changes [2][]change
		for i, f := range []change{c.a, c.b} {
			if f != nil {
				changes[i] = []change{f}
			}
		}
		s := PlacementView{Drives: &drivebay.Snapshot{Drives: []drivebay.Drive{drive("a", changes[0]...), drive("b", changes[1]...)}}, Index: partitions.Index{Parts: map[string][]partitions.Part{"a": c.parts["a"], "b": c.parts["b"]}}}
		at, err := s.Choose(c.class, max(c.size, partitions.GiB), nil)
		got := ""
		for _, r := range at.Rooms {
			if got != "" {
				got += " "
			}
			got += r.Drive.ID
		}
		if got != c.want || (c.want == "") != (errors.Is(err, drivebay.ErrNoSpace) || errors.Is(err, drivebay.ErrRange)) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// TestPending: what is being made or grown has its place already.
func TestPending(t *testing.T) {
	class := drivebay.Class{Backing: drivebay.BackingPartition, FSType: "ext4"}
	linear := drivebay.Class{Backing: drivebay.BackingLVM, FSType: "ext4"}
	s := PlacementView{Drives: &drivebay.Snapshot{Drives: []drivebay.Drive{drive("a")}}, Index: partitions.Index{Parts: map[string][]partitions.Part{"a": nil}}}
	all := s.Capacity(class).Largest
	record := func(op drivebay.WorkOp, l drivebay.Location, size uint64) *drivebay.VolumeRecord {
		l.Drives = []string{"a"}
		return &drivebay.VolumeRecord{Volume: drivebay.Volume{ID: drivebay.VolumeID("x"), Location: l}, Work: &drivebay.Work{Op: op, Size: size, PVs: map[string]string{"a": "uuid"}}}
	}
	s.records = []*drivebay.VolumeRecord{record(drivebay.WorkCreate, drivebay.Location{Kind: drivebay.LocationPartition}, 3*partitions.GiB)}
	if got := s.Capacity(class).Largest; got != all-3*partitions.GiB {
		t.Errorf("while a partition is made: %d of %d", got, all)
	}
	s.Index.Parts["a"] = []partitions.Part{oursAt(partitions.MiB, 3*partitions.GiB)}
	if got := s.Capacity(class).Largest; got != all-3*partitions.GiB {
		t.Errorf("once the kernel has it: %d of %d", got, all)
	}
	s.records = []*drivebay.VolumeRecord{record(drivebay.WorkExpand, drivebay.Location{Kind: drivebay.LocationPartition}, 5*partitions.GiB)}
	if got := s.Capacity(class).Largest; got != all-5*partitions.GiB {
		t.Errorf("while it grows: %d of %d", got, all)
	}
	s.Index.Parts["a"] = nil
	lv := drivebay.Location{Kind: drivebay.LocationLVM, VG: "drivebay-g", LV: "drivebay-v"}
	whole := s.Capacity(linear).Largest
	s.records = []*drivebay.VolumeRecord{record(drivebay.WorkCreate, lv, 3*partitions.GiB)}
	if got := s.Capacity(linear).Largest; got != whole-3*partitions.GiB {
		t.Errorf("while its group is made: %d of %d", got, whole)
	}
	at, err := s.Choose(linear, partitions.GiB, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l, pvs, err := at.Locate(linear, drivebay.VolumeID("y"), ledger.NewUUID()); err != nil || l.VG != lv.VG || pvs["a"] != "uuid" {
		t.Errorf("the next one joins it: %+v %v, %v", l, pvs, err)
	}
	if got := s.Capacity(drivebay.Class{Backing: drivebay.BackingThin, FSType: "ext4"}).Largest; got != 0 {
		t.Errorf("a thin volume in a linear group: %d", got)
	}
	if got := s.Capacity(class).Largest; got != 0 {
		t.Errorf("a partition beside a physical volume that takes all: %d", got)
	}
}

// FuzzFreeSpans holds what is said of the room on a drive against the table itself.
func FuzzFreeSpans(f *testing.F) {
	f.Add(uint64(10_000_000_000), false, uint64(5), uint64(77), uint64(3))
	f.Add(uint64(1<<40), true, uint64(1), uint64(1), uint64(1000))
	f.Fuzz(func(t *testing.T, size uint64, large bool, a, b, c uint64) {
		block := 512
		if large {
			block = 4096
		}
		size = size % (1 << 44) / uint64(block) * uint64(block)
		table, err := gpt.New(empty{size, block})
		if err != nil {
			if got := place.FreeSpans(size, block, nil); len(got) > 0 {
				t.Fatalf("%d bytes: %v, the table says %v", size, got, err)
			}
			return
		}
		var taken []place.Span
		for _, n := range []uint64{a, b, c} {
			p, err := table.Add((n%4096+1)*partitions.MiB, partitions.MiB, ledger.TypeRaw, ledger.NewUUID(), "drivebay-x")
			if err == nil {
				taken = append(taken, place.Span{Start: p.Start, End: p.Start + p.Size})
			}
		}
		var want []place.Span
		for _, r := range table.Free(gpt.Align) {
			want = append(want, place.Span{Start: r.Start, End: r.Start + r.Size, After: r.After})
		}
		got := place.FreeSpans(size, block, taken)
		if len(got) != len(want) {
			t.Fatalf("%d bytes: %v, want %v", size, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%d bytes: %v, want %v", size, got, want)
			}
		}
	})
}

// empty is the size of a drive, for a table that is never written.
type empty struct {
	size  uint64
	block int
}

func (e empty) Size() uint64 { return e.size }

func (e empty) BlockSize() int { return e.block }

func (e empty) Sync() error { return nil }

func (e empty) ReadAt(b []byte, _ int64) (int, error) { return len(b), nil }

func (e empty) WriteAt(b []byte, _ int64) (int, error) { return 0, errors.ErrUnsupported }

func TestSizes(t *testing.T) {
	part := drivebay.Class{Backing: drivebay.BackingPartition, FSType: "ext4"}
	xfs := drivebay.Class{Backing: drivebay.BackingLVM, FSType: "xfs"}
	for _, c := range []struct {
		r     drivebay.SizeRange
		class drivebay.Class
		block bool
		want  uint64
		err   error
	}{
		{drivebay.SizeRange{}, part, false, partitions.GiB, nil},
		{drivebay.SizeRange{Required: 1}, part, true, partitions.MiB, nil},
		{drivebay.SizeRange{Required: 1}, part, false, 16 * partitions.MiB, nil},
		{drivebay.SizeRange{Required: partitions.GiB + 1}, part, true, partitions.GiB + partitions.MiB, nil},
		{drivebay.SizeRange{Required: partitions.GiB + 1, Limit: partitions.GiB + 2}, part, true, 0, drivebay.ErrRange},
		{drivebay.SizeRange{Limit: 100*partitions.MiB + 5}, part, true, 100 * partitions.MiB, nil},
		{drivebay.SizeRange{Required: 2, Limit: 1}, part, true, 0, drivebay.ErrInvalid},
		{drivebay.SizeRange{Required: 1 << 63}, part, true, 0, drivebay.ErrRange},
		{drivebay.SizeRange{Required: partitions.MiB, Limit: 10 * partitions.MiB}, xfs, false, 0, drivebay.ErrRange},
		{drivebay.SizeRange{Required: partitions.MiB}, xfs, false, 300 * partitions.MiB, nil},
		{drivebay.SizeRange{Required: 5 * partitions.MiB}, xfs, true, 2 * lvm.ExtentSize, nil},
	} {
		if got, err := place.SizeOf(c.r, c.class, c.block, 0); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%+v of %s: %d, %v, want %d, %v", c.r, c.class.Backing, got, err, c.want, c.err)
		}
	}
}
