package hostsim_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	sys     *lvm.System
	group   string
	devices []string
	pvs     []lvm.NewPV
	changes []string // commands that were no report
}

func newBench(t *testing.T, group string, drives int) *bench {
	m, _ := load(t, flash)
	b := &bench{Machine: m, t: t, group: group}
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
	if lv := r.LV(b.group, "drivebay-mir"); lv.Type != "raid1" || !lv.Sync.Full() || lv.SyncAction != "idle" || len(r.Group(b.group).Under("drivebay-mir")) != 2 {
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

// TestLVMKilled: lvm is killed at every point of every command of a plan; run
// again, the plan ends where an undisturbed one ends.
func TestLVMKilled(t *testing.T) {
	b := newBench(t, "drivebay-kill", 3)
	killed := 0
	// insist kills the first command earlier, then later, until it comes through.
	insist := func(steps []lvm.Step) {
		t.Helper()
		for n := 1; n < 40; n++ {
			err := b.killing(steps, n)
			if err == nil {
				return
			}
			if exit, ok := errors.AsType[*lvm.Error](err); !ok || exit.Code != -1 {
				t.Fatalf("after it was killed: %v", err)
			}
			killed++
		}
		t.Fatalf("%s does not come through", steps[0].Name)
	}
	insist(plan(lvm.CreateGroup(b.group, nil, b.pvs...)))
	pool, thin := b.volume("drivebay-pool", 32<<20, 1), b.volume("drivebay-thin", 64<<20)
	for _, p := range [][2][]lvm.Step{
		{plan(lvm.CreateLinear(b.volume("drivebay-lin", 40<<20, 0))), lvm.Remove(b.group, "drivebay-lin")},
		{plan(lvm.CreateMirror(b.volume("drivebay-mir", 40<<20, 0, 1))), lvm.Remove(b.group, "drivebay-mir")},
		{slices.Concat(plan(lvm.CreatePool(pool, 4<<20)), plan(lvm.CreateThin(thin, pool.Name)), lvm.Extend(b.group, thin.Name, 128<<20)),
			slices.Concat(lvm.Remove(b.group, thin.Name), lvm.Remove(b.group, pool.Name))},
	} {
		insist(p[0])
		first := b.read()
		insist(p[1])
		calm := b.do(p[0]).Group(b.group)
		if first.FreeExtents != calm.FreeExtents || !slices.Equal(names(first), names(calm)) {
			t.Errorf("killed and run again leaves %v and %d extents, undisturbed %v and %d", names(first), first.FreeExtents, names(calm), calm.FreeExtents)
		}
		b.do(p[1])
	}
	if left := names(b.read()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if killed < 12 {
		t.Errorf("only %d commands were killed", killed)
	}
}

// killing runs a plan in which every command of lvm that changes something is
// killed at its nth point.
func (b *bench) killing(steps []lvm.Step, n int) error {
	_, err := lvm.New(killer{b, n}, "").Run(b.t.Context(), b.group, b.devices, steps)
	b.KillNext(0)
	return err
}

type killer struct {
	*bench
	n int
}

func (k killer) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if k.KillNext(0); argv[1] != "fullreport" {
		k.KillNext(k.n)
	}
	return k.Machine.Run(ctx, argv...)
}

func names(g *lvm.Group) []string {
	var out []string
	for _, lv := range g.LVs {
		out = append(out, lv.Name)
	}
	slices.Sort(out)
	return out
}

// TestLVMLost: a drive is pulled; what is lost shows, the mirror goes on and is
// repaired onto another drive, and its data are there.
func TestLVMLost(t *testing.T) {
	b := newBench(t, "drivebay-lost", 4)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs...)))
	b.do(plan(lvm.CreateMirror(b.volume("drivebay-mir", 40<<20, 0, 1))))
	b.do(plan(lvm.CreateLinear(b.volume("drivebay-lin", 40<<20, 1))))
	d, lin := b.open("drivebay-mir"), b.open("drivebay-lin")
	writeAt(t, d, "precious", 12345)
	writeAt(t, lin, "alone", 0)
	lost := b.pvs[1].UUID
	b.fault(1, "vanish")
	g := b.read()
	if lv := g.LV("drivebay-mir"); !g.Partial || !slices.Equal(g.Missing(), []string{lost}) || !lv.Partial || lv.Attr != "rwi-aor-p-" || !slices.Contains(g.Under("drivebay-mir"), lost) {
		t.Errorf("the lost drive is not in the report: partial %v, missing %v, %+v", g.Partial, g.Missing(), lv)
	}
	if _, err := lin.ReadAt(make([]byte, 5), 0); err == nil {
		t.Error("a linear volume is read without its drive")
	}
	if got := readAt(t, d, 8, 12345); got != "precious" {
		t.Errorf("the mirror reads %q", got)
	}
	writeAt(t, d, "survives", 12345)
	b.refused(lvm.ErrMissingPV, plan(lvm.CreateLinear(b.volume("drivebay-more", 4<<20, 0))))
	b.refused(lvm.ErrMissingPV, lvm.RemoveMissing(b.group))
	b.refused(lvm.ErrMissingPV, lvm.RemoveMissing(b.group, lost))
	b.refused(lvm.ErrMissingPV, lvm.ReplaceLeg(b.group, "drivebay-mir", lost, b.pvs[2].UUID))
	must(t, lin.Close())
	b.do(lvm.RepairMirror(b.group, "drivebay-mir", b.pvs[2].UUID))
	b.fault(0, "eio") // the other old leg
	if got := readAt(t, d, 8, 12345); got != "survives" {
		t.Errorf("the new leg reads %q", got)
	}
	b.fault(0, "heal")
	// The old drive comes back, is still marked as missing, is taken in, and goes.
	b.fault(1, "return")
	b.named(1)
	b.do(lvm.RestoreMissing(b.group, lost))
	b.do(lvm.Remove(b.group, "drivebay-lin"))
	b.fault(1, "vanish")
	b.do(lvm.RemoveMissing(b.group, lost))
	if g := b.read(); g.Partial || len(g.PVs) != 3 || g.LV("drivebay-mir").Health != "refresh needed" {
		t.Errorf("the repaired group is %+v", g)
	}
	// A leg that was away is behind until the tables are loaded anew.
	_, err := b.sys.Run(t.Context(), b.group, b.devices, lvm.Refresh(b.group, "drivebay-mir"))
	must(t, err)
	if lv := b.read().LV("drivebay-mir"); lv.Health != "" || !lv.Sync.Full() || lv.Attr != "rwi-aor---" {
		t.Errorf("after the refresh the mirror is %+v", lv)
	}
	b.do(lvm.ReplaceLeg(b.group, "drivebay-mir", b.pvs[2].UUID, b.pvs[3].UUID))
	b.fault(0, "eio")
	if got := readAt(t, d, 8, 12345); got != "survives" {
		t.Errorf("the replaced leg reads %q", got)
	}
	b.fault(3, "eio")
	if _, err := d.ReadAt(make([]byte, 8), 0); err == nil {
		t.Error("a mirror is read without a leg")
	}
}

// named finds the name of a drive again.
func (b *bench) named(i int) {
	b.t.Helper()
	for _, v := range b.View() {
		if v.Bay == fmt.Sprint(i) {
			b.devices[i] = "/dev/" + v.Name
		}
	}
}

// TestLVMMove: a drive is emptied; the command that waits for it is ended, the
// move taken back, begun again and finished.
func TestLVMMove(t *testing.T) {
	b := newBench(t, "drivebay-move", 2)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs...)))
	b.do(plan(lvm.CreateLinear(b.volume("drivebay-vol", 600<<20, 0))))
	d := b.open("drivebay-vol")
	writeAt(t, d, "moves", 500<<20)
	from := b.pvs[0].UUID
	evacuate := lvm.Evacuate(b.group, from, b.pvs[1].UUID)
	start := func() {
		t.Helper()
		if err := b.killing(evacuate, 4); err == nil {
			t.Fatal("the move was over before it was killed")
		}
		lv := b.read().Move(from)
		if lv == nil || !lv.Sync.Known || lv.Sync.Full() || lv.Sync.Value == 0 {
			t.Fatalf("no move is seen: %+v", lv)
		}
	}
	start()
	if g := b.read(); len(g.Under("drivebay-vol")) != 2 || !g.Uses(b.pvs[1].UUID) {
		t.Errorf("the volume that moves is on %v", g.Under("drivebay-vol"))
	}
	b.do(lvm.AbortEvacuation(b.group, from))
	if g := b.read(); g.Uses(b.pvs[1].UUID) || !g.Uses(from) {
		t.Error("the move was not taken back")
	}
	start()
	writeAt(t, d, "still", 400<<20)
	b.do(evacuate)
	if got := readAt(t, d, 5, 500<<20) + readAt(t, d, 5, 400<<20); got != "movesstill" {
		t.Errorf("the moved volume reads %q", got)
	}
	b.fault(0, "vanish")
	if got := readAt(t, d, 5, 500<<20); got != "moves" {
		t.Errorf("without the old drive it reads %q", got)
	}
	b.fault(0, "return")
	b.named(0)
	b.do(lvm.ReduceGroup(b.group, from))
}

// TestLVMStrangers: what is not in the list of devices is not there.
func TestLVMStrangers(t *testing.T) {
	b := newBench(t, "drivebay-same", 2)
	theirs := []string{"lvm", "vgcreate", "--devices", "/dev/nvme4n1", b.group, "/dev/nvme4n1"}
	if code := exitCode(t, b.Machine, theirs...); code != 0 {
		t.Fatal(code)
	}
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs[0])))
	b.do(plan(lvm.CreateLinear(b.volume("drivebay-vol", 200<<20, 0))))
	r, err := b.sys.Read(t.Context(), b.devices)
	if must(t, err); len(r.Groups) != 1 || len(r.Free) != 0 || r.Groups[0].PVs[0].UUID != b.pvs[0].UUID {
		t.Errorf("the report shows others' things: %+v", r)
	}
	b.devices = append(b.devices, "/dev/nvme4n1")
	b.refused(lvm.ErrForeign, lvm.Remove(b.group, "drivebay-vol"))
}

// TestMapped: an active volume is in sysfs, in /dev and in the events.
func TestMapped(t *testing.T) {
	b := newBench(t, "drivebay-dm", 2)
	events, err := b.Uevents(t.Context())
	must(t, err)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs...)))
	b.do(plan(lvm.CreateMirror(b.volume("drivebay-mir", 40<<20, 0, 1))))
	e := next(t, events, "mirror", func(e host.Uevent) bool {
		return e.Action == "add" && e.Env["DM_NAME"] == "drivebay--dm-drivebay--mir"
	})
	dir := "sys/block/" + e.DevName
	for name, want := range map[string]string{"/dm/name": "drivebay--dm-drivebay--mir", "/size": "81920", "/dev": "253:4"} {
		if got := read(t, b.Machine, dir+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := read(t, b.Machine, dir+"/dm/uuid"); !strings.HasPrefix(got, "LVM-") || len(got) != 68 {
		t.Errorf("its uuid is %s", got)
	}
	slaves, err := b.ReadDir(dir + "/slaves")
	if err != nil || len(slaves) != 4 {
		t.Errorf("it stands on %v, %v", slaves, err)
	}
	if holders, err := b.ReadDir("sys/block/nvme0n1/holders"); err != nil || len(holders) != 2 {
		t.Errorf("the drive is held by %v, %v", holders, err)
	}
	for _, link := range []string{"dev/" + b.group + "/drivebay-mir", "dev/mapper/drivebay--dm-drivebay--mir"} {
		if at, err := b.Resolve(link); err != nil || at != "dev/"+e.DevName {
			t.Errorf("%s leads to %s, %v", link, at, err)
		}
	}
	for _, dev := range []string{"/dev/nvme0n1", "/dev/dm-1"} {
		if _, err := b.OpenDisk(t.Context(), dev, true); !errors.Is(err, host.ErrBusy) {
			t.Errorf("%s alone: %v", dev, err)
		}
	}
	b.fault(0, "vanish")
	if slaves, err := b.ReadDir("sys/block/dm-0/slaves"); err != nil || len(slaves) != 0 {
		t.Errorf("a part of it stands on %v, %v", slaves, err)
	}
	b.fault(0, "return")
	b.named(0)
	b.do(lvm.Deactivate(b.group, "drivebay-mir"))
	if left, err := b.ReadDir("sys/devices/virtual/block"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := b.Resolve("dev/" + b.group); err == nil {
		t.Error("the folder of the group is left")
	}
}

// TestLVMHangs: a drive that hangs holds those commands that may see it.
func TestLVMHangs(t *testing.T) {
	b := newBench(t, "drivebay-hang", 2)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs[0])))
	b.fault(1, "hang")
	if _, err := b.sys.Read(t.Context(), b.devices[:1]); err != nil {
		t.Error(err)
	}
	done := make(chan error)
	go func() { _, err := b.sys.Read(t.Context(), b.devices); done <- err }()
	select {
	case err := <-done:
		t.Errorf("it was read: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	b.fault(1, "heal")
	must(t, <-done)
}

// TestOldData: what was on the extents is there until somebody writes zeros.
func TestOldData(t *testing.T) {
	b := newBench(t, "drivebay-old", 1)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs...)))
	make := plan(lvm.CreateLinear(b.volume("drivebay-a", 40<<20, 0)))
	b.do(make)
	d := b.open("drivebay-a")
	writeAt(t, d, "secret", 8*mib)
	must(t, d.Close())
	b.do(lvm.Remove(b.group, "drivebay-a"))
	b.do(make)
	if got := readAt(t, b.open("drivebay-a"), 6, 8*mib); got != "secret" {
		t.Errorf("a new volume reads %q: extents are not wiped by lvm", got)
	}
}

// TestLVMWords: wrong words are refused as lvm does, and a machine may have none.
func TestLVMWords(t *testing.T) {
	m, _ := load(t, flash)
	for argv, want := range map[string]int{
		"lvm lvcreate --cheese g": 3,
		"lvm cheese":              2,
		"lvm vgs":                 2,
		"lvm lvcreate --name x --size 4m nowhere":                     5,
		"lvm pvcreate --uuid abc --norestorefile /dev/nvme0n1":        5,
		"lvm pvcreate --devices /dev/nvme1n1 /dev/nvme0n1":            5,
		"lvm fullreport --reportformat json":                          3,
		"lvm pvcreate --metadatasize 16m --dataalignment 1m /dev/sdz": 5,
		"lvm pvremove /dev/nvme0n1":                                   5,
	} {
		if got := exitCode(t, m, strings.Fields(argv)...); got != want {
			t.Errorf("%s ends with %d, want %d", argv, got, want)
		}
	}
	lacking, _ := load(t, flash+"without: [lvm]")
	if _, err := lvm.New(lacking, "").Read(t.Context(), []string{"/dev/nvme0n1"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without lvm: %v", err)
	}
}
