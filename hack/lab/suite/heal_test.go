//go:build lab

package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/internal/api"
)

// swap pulls the drives of two volumes and puts them back, so that each has the
// other's name.
func (o *orchestrator) swap(a, b vol) {
	o.t.Helper()
	was := map[string]string{}
	for _, v := range []vol{a, b} {
		was[v.drives[0]] = o.Name(v.drives[0])
		o.Must(o.Unplug(o.t.Context(), v.drives[0]))
		began := time.Now()
		for o.view(v).OperationalStatus != drivebay.Missing {
			if time.Since(began) > soon {
				o.t.Fatalf("%s is %v", v.name, o.view(v).OperationalStatus)
			}
		}
		within(o.t, v.name+" is MISSING", time.Since(began), 2*time.Second) // the budget is held in TestLabVolumeHealth
	}
	back := []vol{a, b} // the kernel gives the first free name
	slices.SortFunc(back, func(a, b vol) int { return strings.Compare(was[b.drives[0]], was[a.drives[0]]) })
	for _, v := range back {
		o.Must(o.Replug(o.t.Context(), v.drives[0]))
		o.d.UntilDrive(v.drives[0], "back", soon, is(drivebay.StatusOnline))
	}
	for _, v := range back {
		if now := o.Name(v.drives[0]); now == was[v.drives[0]] {
			o.t.Errorf("%s came back as %s, as which it went", v.drives[0], now)
		}
	}
}

// TestLabVolumeHealReturned: the drives of linear volumes are pulled below pods, and
// are back under other names. NodeHealer takes them in, and the daemon by itself
// where that is its policy.
func TestLabVolumeHealReturned(t *testing.T) {
	t.Parallel()
	o := hospital(t, healing, scsi("SDA", 0x5000c500b0000000), scsi("SDB", 0x5000c500b0000001))
	a, b := o.create("ext4", drivebay.BackingLVM, "ext4", 0, "SDA"), o.create("xfs", drivebay.BackingLVM, "xfs", 0, "SDB")
	o.use(a, b)
	sums := map[string]string{a.id: o.write(a), b.id: o.write(b)}

	o.swap(a, b)
	for _, v := range []vol{a, b} {
		o.asks(v)
		o.intact(v, sums[v.id])
		o.heals(v, soon, "DiskDegrading", "RWIOError") // of the drive, for a while: it was away
	}

	o.d.Stop()
	o.config = tending
	o.start()
	o.swap(a, b)
	for _, v := range []vol{a, b} {
		o.byItself(v, "restore the bind mounts of pods", 2*time.Minute)
		o.intact(v, sums[v.id])
		o.heals(v, soon, "DiskDegrading", "RWIOError")
	}
	o.drop(a, b)
}

// TestLabVolumeHealMounts: filesystems are unmounted behind the back of everybody,
// and give up after a write that failed once.
func TestLabVolumeHealMounts(t *testing.T) {
	t.Parallel()
	o := hospital(t, healing, scsi("SDA", 0x5000c500b0000000), scsi("SDB", 0x5000c500b0000001), scsi("SDC", 0x5000c500b0000002))
	t.Logf("Linux %s", o.Sh("uname -r"))
	var all []vol
	sums := map[string]string{}
	for fs, drive := range map[string]string{"ext4": "SDA", "xfs": "SDB", "btrfs": "SDC"} {
		v := o.create(fs, drivebay.BackingPartition, fs, 0, drive)
		o.use(v)
		all, sums[v.id] = append(all, v), o.write(v)
	}
	for _, v := range all {
		o.Sh("umount %s && umount %s", v.target(), v.staging())
		time.Sleep(time.Second) // who looks at the mount table shares it for a moment
		if node, _ := o.health(v); !slices.Contains(node, "VolumeUnmounted") {
			t.Errorf("%s was unmounted, and the node says %q", v.name, node)
		}
		if o.asks(v); !t.Failed() {
			o.intact(v, sums[v.id])
		}
		o.well(v)
	}
	for _, v := range all {
		o.gaveUp(v, sums[v.id])
	}
	o.drop(all...)
}

// gaveUp lets writes fail for a while, until the filesystem takes no more.
func (o *orchestrator) gaveUp(v vol, sum string) {
	o.t.Helper()
	o.Must(o.FailIO(o.t.Context(), v.drives[0], machine.IOError{Op: "write", Sector: machine.Everywhere}))
	o.Output(fmt.Sprintf("for i in 1 2 3; do mkdir %s/dir$i; sync; done 2>&1", v.target()))
	o.Must(o.Heal(o.t.Context(), v.drives[0]))
	out := o.Output("grep " + v.target() + " /proc/mounts; mount -o remount,rw " + v.staging() + " 2>&1; touch " + v.target() + "/x 2>&1 && echo written")
	if o.t.Logf("%s: %s", v.name, out); strings.Contains(out, "written") {
		o.t.Fatalf("%s takes writes after they have failed", v.name)
	}
	node, _ := o.health(v)
	for began := time.Now(); !slices.Contains(node, "ReadOnlyFilesystem") && !slices.Contains(node, "FilesystemShutdown"); node, _ = o.health(v) {
		if time.Since(began) > soon {
			o.t.Errorf("%s takes no writes, and the node says %q", v.name, node)
			break
		}
	}
	if o.asks(v); !o.t.Failed() {
		o.intact(v, sum)
	}
	if done := o.journal(v, drivebay.EventVolumeHealed); len(done) == 0 || !strings.Contains(done[len(done)-1], ": mount a failed filesystem again: ") {
		o.t.Errorf("%s was healed by %q", v.name, done)
	}
}

// TestLabVolumeHealCorrupted: metadata are overwritten. That is reported, and repaired
// only for who asks, and only while nobody has the volume mounted.
func TestLabVolumeHealCorrupted(t *testing.T) {
	t.Parallel()
	o := hospital(t, tending, scsi("SDA", 0x5000c500b0000000), scsi("SDB", 0x5000c500b0000001))
	for fs, c := range map[string]struct{ drive, spoil string }{
		// The bitmaps of the first group: what is in use, and what is not.
		"ext4": {"SDA", `bs=$(dumpe2fs -h %[1]s 2>/dev/null | awk '/^Block size/ {print $3}')
			for at in $(dumpe2fs %[1]s 2>/dev/null | sed -n '/^Group 0:/,/^Group 1:/s/.*bitmap at \([0-9]*\).*/\1/p'); do
			dd if=/dev/urandom of=%[1]s bs=$bs seek=$at count=1 conv=notrunc,fsync status=none; done`},
		// The headers of the second allocation group: free space, inodes, free list.
		"xfs": {"SDB", `at=$(xfs_db -r -c 'sb 0' -c 'p agblocks' %[1]s | awk '{print $3}')
			dd if=/dev/urandom of=%[1]s bs=512 seek=$((at*8+1)) count=3 conv=notrunc,fsync status=none`},
	} {
		v := o.create(fs, drivebay.BackingPartition, fs, 0, c.drive)
		o.use(v)
		sum := o.write(v)
		dev := o.device(v)
		asked := func(fsck bool) drivebay.HealReport {
			t.Helper()
			report, err := o.d.HealVolume(t.Context(), v.id, api.HealBody{Fsck: fsck})
			o.Must(err)
			return report
		}
		if report := asked(true); len(report.Steps) != 1 || report.Steps[0].Failed == "" {
			t.Errorf("%s: repaired while it was mounted: %+v", fs, report)
		}
		o.drop(v)
		o.Sh(c.spoil, dev)
		o.Must(o.d.ScrubVolume(t.Context(), v.id))
		o.corrupted(v)
		spoilt := o.Sh("sha256sum <%s", dev)
		if report := asked(false); len(report.Steps) > 0 {
			t.Errorf("%s: nobody asked for a repair: %+v", fs, report)
		}
		if o.Sh("sha256sum <%s", dev) != spoilt {
			t.Errorf("%s: its drive was written to", fs)
		}
		report := asked(true)
		t.Logf("%s: %+v", fs, report.Steps)
		if len(report.Steps) != 1 || report.Steps[0].Failed != "" {
			t.Errorf("%s: not repaired", fs)
		}
		o.use(v)
		o.intact(v, sum)
		o.well(v)
		if done := o.journal(v, drivebay.EventVolumeHealed); len(done) != 1 {
			t.Errorf("%s: %q", fs, done)
		}
		o.drop(v)
	}
}

// corrupted waits until that is said of a volume that nobody uses.
func (o *orchestrator) corrupted(v vol) {
	o.t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		view := o.view(v)
		if slices.ContainsFunc(view.Condition, func(f drivebay.VolumeFinding) bool { return f.Reason == "FilesystemCorruption" }) {
			o.t.Logf("%s: after %v: %s", v.name, time.Since(began).Round(time.Millisecond), view.Condition.Message())
			return
		}
		if time.Since(began) > 2*time.Minute {
			o.t.Fatalf("%s: it is corrupted, and nobody says so: %s", v.name, view.Condition.Message())
		}
	}
}

// TestLabVolumeHealPool: a pool is said to be nearly full while writes still succeed,
// and has by itself what its group has to give.
func TestLabVolumeHealPool(t *testing.T) {
	t.Parallel()
	o := hospital(t, tending, nvme("NV"))
	v := o.create("thin", drivebay.BackingThin, "ext4", 0, "NV")
	o.use(v)
	sum := o.write(v)
	vg := o.view(v).Location.VG
	lvm := func(args string) string { t.Helper(); return o.Sh("lvm %s", args) }
	// Somebody else makes what the pool has not promised us: only so it can be full.
	pool := func(field string) string {
		t.Helper()
		return strings.TrimSpace(lvm(fmt.Sprintf("lvs --noheadings --nosuffix --units b -o %s %s/drivebay-pool", field, vg)))
	}
	t.Logf("pool of %s bytes, %s %% used", pool("lv_size"), pool("data_percent"))
	lvm(fmt.Sprintf("lvcreate -q -y -V 1g -n stranger --thinpool drivebay-pool %s", vg))
	fill := "dd if=/dev/zero of=/dev/" + vg + "/stranger bs=1M oflag=direct status=none seek=%d count=%d"
	var size, used float64
	fmt.Sscan(pool("lv_size"), &size)
	fmt.Sscan(pool("data_percent"), &used)
	first := int(size*(0.93-used/100)) >> 20
	o.Sh(fill, 0, first)
	o.ails(v, "ThinPoolLowOnDataSpace", time.Now(), 40*time.Second)
	o.intact(v, sum) // it takes writes still
	// What was kept for a repair is given away: now the group has room.
	was := pool("lv_size")
	lvm(fmt.Sprintf("lvremove -q -y %s/lvol0_pmspare", vg))
	o.byItself(v, "extend the thin pool", 2*time.Minute)
	if is := pool("lv_size"); is == was {
		t.Errorf("it has %s bytes as before", is)
	}
	o.intact(v, sum)
	lvm(fmt.Sprintf("lvremove -q -y %s/stranger", vg))
	o.heals(v, time.Minute)
	o.intact(v, sum)
	o.drop(v)
}
