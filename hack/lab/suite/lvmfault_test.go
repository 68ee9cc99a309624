//go:build lab

package suite

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/lvm"
)

// TestLabLVMKilled: lvm is killed earlier and later in every command of a plan;
// run again, the plan ends where an undisturbed one ends.
func TestLabLVMKilled(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("A"), nvme("B")}})
	b := newLVM(t, m, "drivebay-kill", "A", "B")
	b.insist(must(lvm.CreateGroup(b.group, nil, b.pvs...)))
	pool, thin := b.volume("drivebay-pool", 32<<20, 1), b.volume("drivebay-thin", 64<<20)
	mirrors := [2][]lvm.Step{must(lvm.CreateMirror(b.volume("drivebay-mir", 40<<20, 0, 1))), lvm.Remove(b.group, "drivebay-mir")}
	pools := [2][]lvm.Step{
		slices.Concat(must(lvm.CreatePool(pool, 4<<20)), must(lvm.CreateThin(thin, pool.Name))),
		slices.Concat(lvm.Remove(b.group, thin.Name), lvm.Remove(b.group, pool.Name), lvm.ClearLeftovers(b.group, pool.Name, 4<<20)),
	}
	for _, plan := range [][2][]lvm.Step{mirrors, pools} {
		create, remove := plan[0], plan[1]
		b.insist(create)
		killed := b.read().Group(b.group)
		b.insist(remove)
		calm := b.do(create).Group(b.group)
		if killed.FreeExtents != calm.FreeExtents || !slices.Equal(names(killed), names(calm)) {
			t.Errorf("killed and run again leaves %v and %d extents, undisturbed %v and %d",
				names(killed), killed.FreeExtents, names(calm), calm.FreeExtents)
		}
		b.do(remove)
	}
	// Killed at one moment of many it leaves a part of a pool active: that moment is made.
	m.Sh("lvcreate -q -y -L 4m %s; lvs %[1]s/lvol0", b.group) // and what was to be its bookkeeping
	b.do(pools[0])
	b.do(slices.Concat(lvm.Deactivate(b.group, thin.Name), lvm.Deactivate(b.group, pool.Name)))
	m.Sh("lvchange --yes -ay %s/%s_tmeta", b.group, pool.Name)
	b.do(lvm.Activate(b.group, thin.Name))
	b.do(pools[1])
	if len(names(b.read().Group(b.group))) > 1 { // lvm keeps lvol0_pmspare
		t.Errorf("left: %v", names(b.read().Group(b.group)))
	}
	t.Logf("%d commands were killed", b.killed)
	if b.killed < 6 {
		t.Errorf("only %d commands were killed", b.killed)
	}
}

// TestLabLVMNoTable: a command that was killed while it activated a volume leaves a device without a table, which LVM calls active. It is
// neither said to be active nor in the way.
func TestLabLVMNoTable(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("A"), nvme("B")}})
	b := newLVM(t, m, "drivebay-half", "A", "B")
	pool := b.volume("drivebay-pool", 32<<20, 1)
	b.do(must(lvm.CreateGroup(b.group, nil, b.pvs...)))
	b.do(must(lvm.CreatePool(pool, 4<<20)))
	plans := map[string][]lvm.Step{
		"linear": must(lvm.CreateLinear(b.volume("drivebay-linear", 40<<20, 0))),
		"mirror": must(lvm.CreateMirror(b.volume("drivebay-mirror", 40<<20, 0, 1))),
		"thin":   must(lvm.CreateThin(b.volume("drivebay-thin", 64<<20), pool.Name)),
	}
	for _, name := range few("thin", "mirror", "linear") {
		create := plans[name]
		b.do(create)
		name = "drivebay-" + name
		dm := strings.NewReplacer("-", "--").Replace(b.group) + "-" + strings.NewReplacer("-", "--").Replace(name)
		leave := func(table bool) {
			t.Helper()
			uuid := m.Sh("dmsetup info -c --noheadings -o uuid %s", dm)
			b.do(lvm.Deactivate(b.group, name))
			m.Sh("dmsetup create --notable -u %s %s", uuid, dm)
			if table {
				m.Sh("dmsetup load %s --table '0 81920 zero'", dm)
			}
			if lv := b.read().LV(b.group, name); lv == nil || lv.Active || !lv.NoTable {
				t.Errorf("%s, inactive table %v: %+v", name, table, lv)
			}
		}
		for _, table := range []bool{false, true} {
			leave(table)
			b.do(lvm.Activate(b.group, name))
			if lv := b.read().LV(b.group, name); lv == nil || !lv.Active || lv.NoTable {
				t.Errorf("%s is activated, inactive table %v: %+v", name, table, lv)
			}
			m.Sh("dd if=/dev/zero of=/dev/%s/%s bs=4k count=1 oflag=direct status=none", b.group, name)
			leave(table)
			b.do(lvm.Remove(b.group, name))
			b.do(create)
		}
	}
}

// small is a drive that is quickly read whole.
func small(d machine.Drive) machine.Drive {
	d.Size = 96 << 20
	return d
}

func names(g *lvm.Group) []string {
	var out []string
	for _, lv := range g.LVs {
		out = append(out, lv.Name)
	}
	slices.Sort(out)
	return out
}

// insist kills every command of a plan, later each time, until it comes through.
func (b *lvmBench) insist(steps []lvm.Step) {
	b.t.Helper()
	defer func() { b.kill = 0 }()
	for b.kill = 150 * time.Millisecond; b.kill < 40*time.Second; b.kill *= 3 {
		before := b.killed
		_, err := b.sys.Run(b.t.Context(), b.group, b.devices, steps)
		if err == nil {
			return
		}
		if strings.Contains(err.Error(), "used by a VG but its metadata is missing") {
			b.unmark()
			continue
		}
		if b.killed == before {
			b.t.Fatalf("after it was killed: %v", err)
		}
	}
	b.t.Fatalf("%s does not come through", steps[0].Name)
}

// unmark removes the labels of physical volumes that a killed vgcreate has marked as used,
// before it had written the group. No command of LVM but a forced one accepts them, and a
// damaged group looks the same, so a plan refuses them: an operator decides (docs/safety.md).
func (b *lvmBench) unmark() {
	b.t.Helper()
	b.t.Log("killed between the labels and the group: the labels are removed")
	for _, dev := range b.devices {
		b.m.Sh("wipefs -q -a %s", dev)
	}
}

// TestLabLVMStrangers: a group of another owner with our name, and a guest's
// inside our volume, are neither seen nor touched, and nobody activates ours.
func TestLabLVMStrangers(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("OURS"), small(nvme("THEIRS")), scsi("SPARE", 0x5000c500b0000000), small(nvme("HOST"))}})
	b := newLVM(t, m, "drivebay-same", "OURS", "SPARE")
	theirs := "/dev/" + m.Name("THEIRS")
	m.Sh("vgcreate -q %s %s; lvcreate -q -y -an -Zn -n theirs -L 40m %[1]s", b.group, theirs)
	before := m.Sh("sha256sum <%s", theirs)
	b.do(must(lvm.CreateGroup(b.group, nil, b.pvs[0])))
	b.do(must(lvm.CreateLinear(b.volume("drivebay-vol", 200<<20, 0))))
	// A guest makes its own group in the volume that it was given.
	inside := "/dev/" + b.group + "/drivebay-vol"
	m.Sh("lvm vgcreate -q --config 'devices{scan_lvs=1 use_devicesfile=0}' --devices %s guest %[1]s", inside)
	m.Sh("lvm lvcreate -q -y -an --config 'devices{scan_lvs=1}' --devices %s -n disk -L 40m guest", inside)
	guest := m.Sh("head -c 1M %s | sha256sum", inside)

	b.do(lvm.ExtendGroup(b.group, b.pvs[1]))
	b.do(lvm.Extend(b.group, "drivebay-vol", 300<<20))
	b.do(lvm.Deactivate(b.group, "drivebay-vol"))
	b.do(lvm.Activate(b.group, "drivebay-vol"))
	r := b.read()
	if len(r.Groups) != 1 || len(r.Free) != 0 || len(r.Groups[0].LVs) != 1 || r.Groups[0].PVs[0].UUID != b.pv(0) {
		t.Errorf("the report shows others' things: %+v", r)
	}
	if got := m.Sh("head -c 1M %s | sha256sum", inside); got != guest {
		t.Error("the guest's group has changed")
	}
	if dm := m.Sh("dmsetup ls"); strings.Contains(dm, "guest") {
		t.Errorf("a guest's volume is active on the host: %s", dm)
	}

	// The host's own rules see drives come and activate what lvm made with its
	// defaults, but nothing of ours.
	m.Sh("vgcreate -q host /dev/%s; lvcreate -q -y -an -Zn -n vol -L 40m host", m.Name("HOST"))
	b.do(lvm.Deactivate(b.group, "drivebay-vol"))
	for _, id := range []string{"OURS", "SPARE", "HOST"} {
		m.Must(m.Unplug(t.Context(), id))
	}
	for _, id := range []string{"OURS", "SPARE", "HOST"} {
		m.Must(m.Replug(t.Context(), id))
		m.Name(id)
	}
	m.Must(m.Settle(t.Context()))
	dm := m.Sh("dmsetup ls")
	if strings.Contains(dm, "drivebay") || !strings.Contains(dm, "host-vol") {
		t.Errorf("the host activated %s, want its own volume only", dm)
		t.Log(m.Output("ls -R /run/lvm; lsblk; ls -la /run/systemd; udevadm test /block/" + m.Name("HOST") + " 2>&1 | tail -40; pvs; vgs"))
	}
	if got := m.Sh("sha256sum <%s", theirs); got != before {
		t.Error("the stranger's drive has changed")
	}

	// With the stranger's drive in the list no command could say which group it means.
	both := newLVM(t, m, b.group, "OURS", "SPARE", "THEIRS")
	both.refused(lvm.ErrForeign, lvm.Remove(b.group, "drivebay-vol"))
	if got := m.Sh("sha256sum <%s", theirs); got != before {
		t.Error("the stranger's drive has changed")
	}
}

// TestLabLVMLost: a drive is pulled; what is lost is carried in the report, the
// mirror is repaired onto another drive and its data are there.
func TestLabLVMLost(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{scsi("A", 0x5000c500b0000000), scsi("B", 0x5000c500b0000001), nvme("C"), nvme("D")}})
	b := newLVM(t, m, "drivebay-lost", "A", "B", "C", "D")
	b.do(must(lvm.CreateGroup(b.group, nil, b.pvs...)))
	b.do(must(lvm.CreateMirror(b.volume("drivebay-mir", 40<<20, 0, 1))))
	m.Sh("dd if=/dev/urandom of=/dev/%s/drivebay-mir bs=1M count=40 oflag=direct status=none", b.group)
	sum := m.Sh("sha256sum </dev/%s/drivebay-mir", b.group)
	lost := b.pv(1)
	m.Must(m.Unplug(t.Context(), "B"))
	m.Sh("dd if=/dev/%s/drivebay-mir of=/dev/%[1]s/drivebay-mir bs=4k count=1 oflag=direct status=none", b.group)
	b.record("lost")
	g := b.read().Group(b.group)
	if lv := g.LV("drivebay-mir"); !g.Partial || !slices.Equal(g.Missing(), []string{lost}) || !lv.Partial || !slices.Contains(g.PhysicalVolumesOf("drivebay-mir"), lost) {
		t.Errorf("the lost drive is not in the report: partial %v, missing %v, %+v", g.Partial, g.Missing(), lv)
	}
	b.refused(lvm.ErrMissingPV, must(lvm.CreateLinear(b.volume("drivebay-lin", 4<<20, 0))))
	b.refused(lvm.ErrMissingPV, lvm.RemoveMissing(b.group))       // nobody said so
	b.refused(lvm.ErrMissingPV, lvm.RemoveMissing(b.group, lost)) // the mirror's leg
	b.refused(lvm.ErrMissingPV, lvm.ReplaceLeg(b.group, "drivebay-mir", lost, b.pv(2)))
	b.do(lvm.RepairMirror(b.group, "drivebay-mir", b.pv(2)))
	b.waitSync("drivebay-mir")
	if got := m.Sh("sha256sum </dev/%s/drivebay-mir", b.group); got != sum {
		t.Error("the repaired mirror holds other data")
	}
	// It comes back, is still marked as missing, is taken in, and goes for good.
	b.back(1)
	b.do(lvm.RestoreMissing(b.group, lost))
	m.Must(m.Unplug(t.Context(), "B"))
	b.do(lvm.RemoveMissing(b.group, lost))
	b.record("repaired")

	// A leg that was away for a moment is behind, whatever the report says of it,
	// until the tables are loaded anew.
	m.Must(m.Unplug(t.Context(), "A"))
	m.Sh("dd if=/dev/urandom of=/dev/%s/drivebay-mir bs=1M count=8 oflag=direct status=none", b.group)
	sum = m.Sh("sha256sum </dev/%s/drivebay-mir", b.group)
	b.back(0)
	if _, err := b.sys.Run(t.Context(), b.group, b.devices, lvm.Refresh(b.group, "drivebay-mir")); err != nil {
		t.Error(err)
	}
	b.waitSync("drivebay-mir")
	b.do(lvm.ReplaceLeg(b.group, "drivebay-mir", b.pv(2), b.pv(3)))
	b.waitSync("drivebay-mir")
	if got := m.Sh("sha256sum </dev/%s/drivebay-mir", b.group); got != sum {
		t.Error("the leg that was away and the new one hold other data")
	}
}

// back puts a pulled drive in again, which may get another name.
func (b *lvmBench) back(i int) {
	b.t.Helper()
	id := string(rune('A' + i))
	b.m.Must(b.m.Replug(b.t.Context(), id))
	b.devices[i] = "/dev/" + b.m.Name(id)
}

// waitSync waits until a mirror has copied everything.
func (b *lvmBench) waitSync(name string) {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		lv := b.read().LV(b.group, name)
		if lv.Sync.Full() && lv.Health == "" {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s is not in sync: %v, %q", name, lv.Sync, lv.Health)
		}
	}
}

// TestLabLVMMove: a drive is emptied while its volume is used; the command that
// waits for it is killed, the move taken back, begun again and finished.
func TestLabLVMMove(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("A"), nvme("B")}})
	b := newLVM(t, m, "drivebay-move", "A", "B")
	b.do(must(lvm.CreateGroup(b.group, nil, b.pvs...)))
	b.do(must(lvm.CreateLinear(b.volume("drivebay-vol", 600<<20, 0))))
	m.Sh("dd if=/dev/urandom of=/dev/%s/drivebay-vol bs=1M count=20 oflag=direct status=none", b.group)
	sum := m.Sh("head -c 20M /dev/%s/drivebay-vol | sha256sum", b.group)
	m.Sh("modprobe dm-mirror; echo 2 >/sys/module/dm_mirror/parameters/raid1_resync_throttle")
	move := lvm.PVMove{Group: b.group, Volume: "drivebay-vol", From: b.pv(0), To: b.pv(1)}
	start := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		came := make(chan error)
		go func() { came <- b.sys.StartMove(ctx, b.devices, move) }()
		for b.read().Group(b.group).Move(b.pv(0)) == nil {
		}
		m.Sh("pkill -KILL -x lvm") // as with us
		cancel()
		<-came
		c, err := b.sys.CopyProgress(t.Context(), b.group, "pvmove0")
		if err != nil || c.Total == 0 || c.Whole() || c.Unread() || c.Unwritten() >= 0 {
			t.Fatalf("%+v, %v", c, err)
		}
		t.Logf("the move is at %d of %d", c.Done, c.Total)
	}
	start()
	b.record("moving")
	if g := b.read().Group(b.group); len(g.PhysicalVolumesOf("drivebay-vol")) != 2 || !slices.Equal(g.Moved(g.AnyMove()), []string{"drivebay-vol"}) {
		t.Errorf("the volume that moves is on %v", g.PhysicalVolumesOf("drivebay-vol"))
	}
	b.do(lvm.AbortMove(b.group, b.pv(0)))
	if g := b.read().Group(b.group); g.Uses(b.pv(1)) || !g.Uses(b.pv(0)) {
		t.Error("the move was not taken back")
	}
	start()
	m.Sh("echo 100 >/sys/module/dm_mirror/parameters/raid1_resync_throttle")
	for began := time.Now(); time.Since(began) < time.Minute; {
		if c, err := b.sys.CopyProgress(t.Context(), b.group, "pvmove0"); err != nil || c.Whole() {
			m.Must(err)
			break
		}
	}
	b.do(lvm.EndMove(b.group, b.pv(0)))
	if got := m.Sh("head -c 20M /dev/%s/drivebay-vol | sha256sum", b.group); got != sum {
		t.Error("the moved volume holds other data")
	}
	b.do(lvm.ReduceGroup(b.group, b.pv(0)))
}
