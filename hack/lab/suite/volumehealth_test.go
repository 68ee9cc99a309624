//go:build lab

package suite

import (
	"slices"
	"testing"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabVolumeHealth breaks drives below volumes that pods use, and holds what
// CSI says of them, on both wires, against the budgets.
func TestLabVolumeHealth(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		nvme("NVPULL"), nvme("NVWARN"), nvme("NVTHIN"), scsi("SDLVM", 0x5000c500b0000004), scsi("SDPULL", 0x5000c500b0000000), scsi("SDHANG", 0x5000c500b0000001), scsi("SDERR", 0x5000c500b0000002), scsi("SDWELL", 0x5000c500b0000003)}})
	o := orchestrate(t, m)
	of := func(backing drivebay.Backing, drive, fs string) vol {
		t.Helper()
		v := o.create("on-"+drive, backing, fs, 0, drive)
		o.use(v)
		return v
	}
	on := func(drive, fs string) vol { t.Helper(); return of(drivebay.BackingPartition, drive, fs) }
	lin, thin := of(drivebay.BackingLVM, "SDLVM", "ext4"), of(drivebay.BackingThin, "NVTHIN", "xfs")
	pull, nv, hang, bad, warn, well := on("SDPULL", "ext4"), on("NVPULL", "xfs"), on("SDHANG", "ext4"), on("SDERR", "ext4"), on("NVWARN", ""), on("SDWELL", "ext4")
	spare := o.create("spare", drivebay.BackingPartition, "", 64<<20, "SDPULL")
	o.well(pull, nv, hang, bad, warn, well)

	m.Must(m.SetCriticalWarning(t.Context(), "NVWARN", 4))
	o.ails(warn, "DiskFailure", time.Now(), poll)

	t.Run("pulled", func(t *testing.T) {
		o := o.For(t)
		var took []time.Duration
		for _, v := range []vol{pull, nv, lin, thin} {
			took = append(took, o.pulled(v, well))
		}
		slices.Sort(took)
		within(t, "the median of the pulled drives", took[len(took)/2], time.Duration(float64(time.Second)*min(busy(t), 2)))
		// Whatever a pod has left of it goes; the volume itself cannot be removed while
		// its drive is away, and stays listed.
		o.drop(pull, lin, thin)
		if err := o.remove(spare); err == nil {
			t.Error("a volume on a drive that is away was removed")
		}
		o.view(spare)
		if view := o.view(pull); view.OperationalStatus != drivebay.Missing {
			t.Errorf("it is %v", view.OperationalStatus)
		}
		o.swapped(nv, pull, lin, thin)
		for _, v := range []vol{spare, pull, lin, thin} {
			o.Must(o.remove(v))
		}
	})
	t.Run("errors", func(t *testing.T) {
		o := o.For(t)
		o.Must(m.FailIO(t.Context(), "SDERR", machine.IOError{Op: "read", Sector: machine.Everywhere}))
		began := time.Now()
		o.Output("dd if=" + o.device(bad) + " of=/dev/null bs=4096 count=1 skip=50 iflag=direct 2>&1") // a pod
		o.ails(bad, "RWIOError", began, 5*time.Second)
		o.well(well)
		o.Must(m.Heal(t.Context(), "SDERR"))
	})
	t.Run("hang", func(t *testing.T) { o.For(t).hung(hang, well) })
	o.drop(bad, warn)
	o.Must(o.remove(warn))
}

// pulled takes the drive of a volume away, and returns how long it took until the volume was abnormal. The budget of 1 s is
// for the median, on a host that has nothing else to do: alone, an emulated machine took 0.1 to 0.8 s, and beside another one 0.5 to 1.6 s.
func (o *orchestrator) pulled(v, other vol) (took time.Duration) {
	o.t.Helper()
	o.Must(o.Unplug(o.t.Context(), v.drives[0]))
	took = o.ails(v, "DiskRemoved", time.Now(), 2*time.Second)
	o.well(other)
	list, err := o.ctl.ListVolumes(o.t.Context(), &wire.ListVolumesRequest{})
	o.Must(err)
	if !slices.ContainsFunc(list.Entries, func(e *wire.ListVolumesResponse_Entry) bool { return e.Volume.VolumeId == v.id }) {
		o.t.Errorf("%s is not listed any more", v.name)
	}
	return took
}

// swapped puts the drives of volumes back: the first is still mounted, on a device
// that is dead, the others were let go of while their drives were away.
func (o *orchestrator) swapped(held vol, free ...vol) {
	o.t.Helper()
	all := append(free, held)
	for _, v := range all {
		o.Must(o.Replug(o.t.Context(), v.drives[0]))
	}
	for _, v := range all {
		o.d.UntilDrive(v.drives[0], "back", soon, is(drivebay.StatusOnline))
	}
	began := time.Now()
	for {
		_, left := o.health(held)
		if !slices.Contains(left, "DiskRemoved") {
			break
		}
		if time.Since(began) > soon {
			o.t.Fatalf("%s: its drive is back, and it says %q", held.name, left)
		}
	}
	if node, _ := o.health(held); !slices.Contains(node, "VolumeUnmounted") {
		o.t.Errorf("%s is mounted from a device that is gone, and says %q", held.name, node)
	}
	o.drop(held)
	o.use(all...)
	// The drives say for ten minutes more that they were away.
	for _, v := range all {
		o.heals(v, soon, "DiskDegrading")
		o.Sh("echo back >%s/file && sync %[1]s/file", v.target())
	}
	o.drop(free...)
}

// hung holds back all reads and writes of a volume's drive.
func (o *orchestrator) hung(v, other vol) {
	o.t.Helper()
	calm := o.pace(other)
	o.Must(o.Hang(o.t.Context(), v.drives[0]))
	began := time.Now()
	o.Sh("(dd if=%s of=/dev/null bs=64k count=4 iflag=direct >/dev/null 2>&1 </dev/null &)", o.device(v)) // a pod
	o.ails(v, "HighLatency", began, 10*time.Second)
	o.well(other)
	// No call waits for the drive: figures that it would have to be asked for are
	// those of before.
	ours := o.pace(v)
	while := o.pace(other)
	o.t.Logf("NodeGetVolumeStats takes %.1f times a Probe, while another drive hangs %.1f times, of the hung volume %.1f times", calm, while, ours)
	// The design wants 1.2 times; here a factor of two is noise.
	if while > 3*calm || ours > 3*calm {
		o.t.Errorf("stats take %.2f times as long while another drive hangs, of the hung volume %.2f times", while/calm, ours/calm)
	}
	o.Must(o.Heal(o.t.Context(), v.drives[0]))
	o.heals(v, poll, "DiskDegrading", "DiskFailure")
	o.drop(v)
}

// pace is how many times longer than an empty call NodeGetVolumeStats takes: both
// feel the load of the host.
func (o *orchestrator) pace(v vol) float64 {
	o.t.Helper()
	var stats, probe []time.Duration
	for range 60 {
		began := time.Now()
		_, err := o.id.Probe(o.t.Context(), &wire.ProbeRequest{})
		o.Must(err)
		between := time.Now()
		_, err = o.node.NodeGetVolumeStats(o.t.Context(), &wire.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: v.target(), StagingTargetPath: v.staging()})
		o.Must(err)
		probe, stats = append(probe, between.Sub(began)), append(stats, time.Since(between))
	}
	slices.Sort(probe)
	slices.Sort(stats)
	return float64(stats[len(stats)/2]) / float64(probe[len(probe)/2])
}
