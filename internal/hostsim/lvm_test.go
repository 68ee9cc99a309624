package hostsim_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/lvm"
)

// flash is a machine with four NVMe drives of 1 GiB, as the recorded reports have.
const flash = `
enclosures: [{name: flash, kind: pci, bays: 5}]
drives: [{bays: 0-4, kind: nvme, size: 1GiB, serial: "N{n}"}]
`

// bench is a group of ours on drives of a simulated machine.
type bench struct {
	*hostsim.Machine
	t       *testing.T
	clock   *hostsim.ManualClock
	sys     *lvm.System
	group   string
	devices []string
	pvs     []lvm.NewPV
	changes []string // commands that were no report
}

func newBench(t *testing.T, group string, drives int) *bench {
	m, clock := load(t, flash)
	b := &bench{Machine: m, t: t, clock: clock, group: group}
	b.sys = lvm.New(b, "/run/lvm")
	for i := range drives {
		dev := fmt.Sprintf("/dev/nvme%dn1", i)
		b.devices = append(b.devices, dev)
		b.pvs = append(b.pvs, lvm.NewPV{UUID: lvm.NewPVUUID(), Device: dev})
	}
	return b
}

func (b *bench) Run(ctx context.Context, argv ...string) ([]byte, error) {
	out, err := b.Machine.Run(ctx, argv...)
	if argv[1] != "fullreport" {
		b.changes = append(b.changes, argv[1])
	}
	return out, err
}

func (b *bench) volume(name string, size uint64, drives ...int) lvm.Volume {
	v := lvm.Volume{Group: b.group, Name: name, Size: size}
	for _, i := range drives {
		v.PVs = append(v.PVs, b.pvs[i].UUID)
	}
	return v
}

// do carries out a plan twice; the second time nothing may be left to do.
func (b *bench) do(steps []lvm.Step) *lvm.Report {
	b.t.Helper()
	first, err := b.sys.Run(b.t.Context(), b.group, b.devices, steps)
	must(b.t, err)
	b.changes = nil
	again, err := b.sys.Run(b.t.Context(), b.group, b.devices, steps)
	if err != nil || len(b.changes) > 0 || !reflect.DeepEqual(first, again) {
		b.t.Errorf("%s: the second run did %v: %v\n%+v\n%+v", steps[0].Name, b.changes, err, first, again)
	}
	return again
}

func (b *bench) refused(kind error, steps []lvm.Step) {
	b.t.Helper()
	if _, err := b.sys.Run(b.t.Context(), b.group, b.devices, steps); !errors.Is(err, kind) {
		b.t.Errorf("%s ended with %v, want %v", steps[0].Name, err, kind)
	}
}

func (b *bench) read() *lvm.Group {
	b.t.Helper()
	r, err := b.sys.Read(b.t.Context(), b.devices)
	must(b.t, err)
	if r.Group(b.group) == nil {
		b.t.Fatalf("no group: %+v", r)
	}
	return r.Group(b.group)
}

func plan(steps []lvm.Step, err error) []lvm.Step {
	if err != nil {
		panic(err)
	}
	return steps
}

// open opens a volume of the group.
func (b *bench) open(name string) host.Disk {
	b.t.Helper()
	return openDisk(b.t, b, "/dev/"+b.group+"/"+name, false)
}

func (b *bench) fault(drive int, fault string) {
	b.t.Helper()
	inject(b.t, b.Machine, fmt.Sprint(drive), fault)
}

// TestLVM: every plan does its work, and twice is once.
func TestLVM(t *testing.T) {
	b := newBench(t, "drivebay-all", 3)
	tag, err := lvm.EncodeTag("name", "a volume")
	must(t, err)
	if code := exitCode(t, b.Machine, "mkfs.ext4", "-q", b.devices[2]); code != 0 {
		t.Fatal(code)
	}
	r := b.do(slices.Concat(plan(lvm.CreateGroup(b.group, []string{tag}, b.pvs[0])), lvm.ExtendGroup(b.group, b.pvs[1])))
	g := r.Group(b.group)
	if g.AutoActivation || !slices.Contains(g.Tags, tag) || g.FreeExtents != 2*251 || g.PVs[0].DataStart != 17<<20 || g.PVs[0].Size != 1052770304 {
		t.Errorf("the group is %+v, recorded was one with 251 extents on each drive", g)
	}
	b.refused(drivebay.ErrRefused, lvm.ExtendGroup(b.group, b.pvs[2]))
	d := openDisk(t, b, b.devices[2], false)
	must(t, d.Zero(t.Context(), 0, mib), d.Close())
	b.do(lvm.ExtendGroup(b.group, b.pvs[2]))

	linear := b.volume("drivebay-lin", 50<<20, 0)
	linear.Tags = []string{tag}
	r = b.do(slices.Concat(plan(lvm.CreateLinear(linear)), lvm.Extend(b.group, linear.Name, 70<<20)))
	if lv := r.LV(b.group, linear.Name); lv.Size != 72<<20 || !slices.Contains(lv.Tags, tag) || !lv.Active || lv.Major != 253 {
		t.Errorf("the linear volume is %+v", lv)
	}
	r = b.do(plan(lvm.CreateMirror(b.volume("drivebay-mir", 40<<20, 0, 1))))
	if lv := r.LV(b.group, "drivebay-mir"); lv.Type != "raid1" || !lv.Sync.Full() || lv.SyncAction != "idle" || len(r.Group(b.group).PhysicalVolumesOf("drivebay-mir")) != 2 {
		t.Errorf("the mirror is %+v", lv)
	}
	b.do(slices.Concat(plan(lvm.CreatePool(b.volume("drivebay-pool", 32<<20, 1), 4<<20)), plan(lvm.CreateThin(b.volume("drivebay-thin", 96<<20), "drivebay-pool"))))
	thin := b.open("drivebay-thin")
	writeAt(t, thin, strings.Repeat("old ", mib), 0)
	b.do(plan(lvm.Snapshot(b.volume("drivebay-snap", 0), "drivebay-thin")))
	writeAt(t, thin, strings.Repeat("new ", mib/4), 0)
	b.do(slices.Concat(plan(lvm.Clone(b.volume("drivebay-clone", 0), "drivebay-snap")), lvm.Activate(b.group, "drivebay-clone")))
	clone := b.open("drivebay-clone")
	if got := readAt(t, clone, 8, 0); got != "old old " {
		t.Errorf("the clone of the snapshot reads %q", got)
	}
	must(t, clone.Close())
	g = b.read()
	if pool := g.LV("drivebay-pool"); pool.Data.Value < 15.6 || pool.Data.Value > 15.7 || !pool.ErrorWhenFull { // 5 of 32 MiB
		t.Errorf("the pool is %+v", pool)
	}
	if snap := g.LV("drivebay-snap"); snap.Attr != "Vri---tz-k" || snap.Origin != "drivebay-thin" || snap.Active {
		t.Errorf("the snapshot is %+v", snap)
	}
	var given uint64
	for _, lv := range g.LVs {
		for _, e := range lv.Extents {
			given += e.Count
		}
	}
	if given*lvm.ExtentSize != g.Size-g.Free || given != 18+2*11+8+1+1 { // as recorded
		t.Errorf("%d extents are accounted for, of %d bytes given", given, g.Size-g.Free)
	}
	b.do(slices.Concat(plan(lvm.TagVolume(b.group, linear.Name, []string{"x=1"}, []string{tag})), plan(lvm.TagGroup(b.group, []string{"y"}, []string{tag}))))

	b.refused(lvm.ErrNoSpace, plan(lvm.CreateLinear(b.volume("drivebay-big", 1<<40))))
	b.refused(lvm.ErrExists, plan(lvm.CreateMirror(b.volume(linear.Name, 50<<20, 0, 1))))
	b.refused(drivebay.ErrNotFound, lvm.Extend(b.group, "drivebay-none", 1<<20))
	b.refused(lvm.ErrInUse, lvm.ReduceGroup(b.group, b.pvs[0].UUID))
	b.mountAndRefuse(linear.Name)

	if _, err := thin.WriteAt(make([]byte, 80*mib), 0); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("writing more than the pool has: %v", err)
	}
	if lv := b.read().LV("drivebay-pool"); lv.Health != "out_of_data" || !lv.Data.Full() {
		t.Errorf("the full pool is %q, %v", lv.Health, lv.Data)
	}
	b.do(lvm.Extend(b.group, "drivebay-pool", 64<<20))
	b.refused(lvm.ErrInUse, lvm.Remove(b.group, "drivebay-thin")) // we have it open
	must(t, thin.Close())
	b.refused(lvm.ErrInUse, lvm.RemoveGroup(b.group, b.pvs[0].UUID))
	b.takeDown(linear.Name)
}

// mountAndRefuse: what is mounted is not removed.
func (b *bench) mountAndRefuse(name string) {
	b.t.Helper()
	dev := "/dev/" + b.group + "/" + name
	if code := exitCode(b.t, b.Machine, "mkfs.ext4", "-q", dev); code != 0 {
		b.t.Fatal(code)
	}
	must(b.t, b.MakePlace("/mnt"))
	p := host.Place{Root: "/", Name: "mnt"}
	must(b.t, b.Mount(b.t.Context(), host.NewMount{Device: dev, FS: "ext4", At: p}))
	if x := mountAt(b.t, b.Machine, "/mnt"); x.DevNum != "253:0" {
		b.t.Errorf("mounted as %+v", x)
	}
	b.refused(drivebay.ErrBusy, lvm.Remove(b.group, name))
	b.refused(drivebay.ErrBusy, lvm.Deactivate(b.group, name))
	must(b.t, b.Unmount(b.t.Context(), p))
}

func (b *bench) takeDown(last string) {
	b.t.Helper()
	var left []lvm.Step
	for _, name := range []string{"drivebay-clone", "drivebay-thin", "drivebay-snap", "drivebay-pool", "drivebay-mir"} {
		left = append(left, lvm.Remove(b.group, name)...)
	}
	b.do(append(left, lvm.ReduceGroup(b.group, b.pvs[1].UUID, b.pvs[2].UUID)...))
	b.do(lvm.Deactivate(b.group, last))
	r := b.do(append(lvm.Remove(b.group, last), lvm.RemoveGroup(b.group, b.pvs[0].UUID)...))
	if len(r.Groups)+len(r.Free) > 0 {
		b.t.Errorf("something is left: %+v", r)
	}
	if names, err := b.ReadDir("sys/devices/virtual/block"); err != nil || len(names) > 0 {
		b.t.Errorf("devices are left: %v, %v", names, err)
	}
	if _, err := b.OpenDisk(b.t.Context(), b.devices[0], true); err != nil {
		b.t.Errorf("the drive is not free: %v", err)
	}
}
