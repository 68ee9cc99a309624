package hostsim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay/lvm"
)

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
	if lv := g.LV("drivebay-mir"); !g.Partial || !slices.Equal(g.Missing(), []string{lost}) || !lv.Partial || lv.Attr != "rwi-aor-p-" || !slices.Contains(g.PhysicalVolumesOf("drivebay-mir"), lost) {
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
	b.clock.Advance(time.Second) // until it is copied
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

// TestLVMMove: a volume moves below who writes to it: the command that has begun that
// ends, the kernel copies on, it is taken back, begun again and ended.
func TestLVMMove(t *testing.T) {
	b := newBench(t, "drivebay-move", 2)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs...)))
	b.do(plan(lvm.CreateLinear(b.volume("drivebay-vol", 600<<20, 0))))
	d := b.open("drivebay-vol")
	writeAt(t, d, "moves", 500<<20)
	m := lvm.PVMove{Group: b.group, Volume: "drivebay-vol", From: b.pvs[0].UUID, To: b.pvs[1].UUID}
	start := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		came := make(chan error)
		go func() { came <- b.sys.StartMove(ctx, b.devices, m) }()
		for b.read().Move(m.From) == nil {
		}
		if cancel(); !errors.Is(<-came, context.Canceled) {
			t.Fatal("the command did not wait")
		}
		if g := b.read(); len(g.Moved(g.AnyMove())) != 1 || len(g.VolumesOn(m.From)) != 0 || g.AllocatedOn(m.To) != 600<<20 {
			t.Errorf("%v move, %v stay", g.Moved(g.AnyMove()), g.VolumesOn(m.From))
		}
	}
	start()
	if g := b.read(); len(g.PhysicalVolumesOf("drivebay-vol")) != 2 || !g.Uses(m.To) {
		t.Errorf("the volume that moves is on %v", g.PhysicalVolumesOf("drivebay-vol"))
	}
	b.do(lvm.AbortMove(b.group, m.From))
	if g := b.read(); g.Uses(m.To) || !g.Uses(m.From) {
		t.Error("the move was not taken back")
	}
	start()
	writeAt(t, d, "still", 400<<20)
	for {
		b.clock.Advance(time.Second)
		c, err := b.sys.CopyProgress(t.Context(), b.group, "pvmove0")
		if must(t, err); c.Whole() {
			break
		}
	}
	b.do(lvm.EndMove(b.group, m.From))
	if got := readAt(t, d, 5, 500<<20) + readAt(t, d, 5, 400<<20); got != "movesstill" {
		t.Errorf("the moved volume reads %q", got)
	}
	b.fault(0, "vanish")
	if got := readAt(t, d, 5, 500<<20); got != "moves" {
		t.Errorf("without the old drive it reads %q", got)
	}
	b.fault(0, "return")
	b.named(0)
	b.do(lvm.ReduceGroup(b.group, m.From))
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
