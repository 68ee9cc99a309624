//go:build lab

package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabVolumeCopy has drives leave that cannot read a few of their sectors: exactly
// these are named, before anything is lost, and everything else arrives.
func TestLabVolumeCopy(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NVOLD"), nvme("NVNEW"), scsi("SDOLD", 0x5000c500b0000000), scsi("SDNEW", 0x5000c500b0000001)}})
	o := orchestrate(t, m)
	for _, kind := range []string{"NV", "SD"} {
		t.Run(kind, func(t *testing.T) { o.For(t).copies(kind+"OLD", kind+"NEW") })
	}
}

// TestLabVolumeCopyPowerCut: the power goes while a volume is copied, and again while
// what it has left on its old drive is wiped.
func TestLabVolumeCopyPowerCut(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NVSTATE"), nvme("NVOLD"), nvme("NVNEW")}})
	m.Sh("mkfs.ext4 -q /dev/%s", m.Name("NVSTATE"))
	remember := func() { m.Sh("mkdir -p %s && mount /dev/%s %[1]s", lab.DaemonState, m.Name("NVSTATE")) }
	remember()
	o := orchestrate(t, m)
	o.wipe = drivebay.WipeZero
	v := o.create("cut", drivebay.BackingPartition, "ext4", 64<<20, "NVOLD")
	o.only()
	o.use(v)
	want := o.Sh("head -c 40M /dev/urandom >%s/synced; sync; cut -c1-32 <<<$(md5sum <%[1]s/synced)", v.target())
	o.drop(v)
	old := o.view(v).Location
	again := func() {
		t.Helper()
		m.PowerCut()
		m.Must(m.Boot(t.Context()))
		remember()
		o.start()
	}
	m.Must(m.Slow(t.Context(), "NVNEW", machine.Limit{IOPS: 20}))
	o.Must(o.d.Operate(t.Context(), "NVOLD", drivebay.LeaveRelease, ""))
	o.untilCopy(v, "being copied", func(view *drivebay.VolumeView) bool { return view.Work == string(drivebay.WorkMove) })
	time.Sleep(5 * time.Second)
	if view := o.view(v); view.Location.Partition != old.Partition {
		t.Fatalf("it was moved before the power went: %+v", view.Location)
	}
	again()
	m.Must(m.Heal(t.Context(), "NVNEW"))
	m.Must(m.Slow(t.Context(), "NVOLD", machine.Limit{IOPS: 10}))
	o.untilCopy(v, "on its new drive", func(view *drivebay.VolumeView) bool { return view.Location.Partition != old.Partition })
	again()
	o.untilCopy(v, "moved", func(view *drivebay.VolumeView) bool {
		return view.Work == "" && view.Location.Partition != old.Partition && view.Usage == drivebay.VolumeInUse
	})
	o.use(v)
	if got := o.Sh("cut -c1-32 <<<$(md5sum <%s/synced)", v.target()); got != want {
		t.Errorf("it was %s, and is %s", want, got)
	}
	o.well(v)
	if left := o.Sh("head -c 96M /dev/%s | tr -d '\\0' | head -c 99 | wc -c", m.Name("NVOLD")); left != "0" {
		t.Errorf("%s bytes are left on the old drive", left)
	}
	o.drop(v)
}

// Two sectors beside each other, one alone, and the last of all.
var badSectors = []drivebay.Extent{{Offset: 10<<20 + 512, Length: 1024}, {Offset: 17<<20 + 7*512, Length: 512}, {Offset: copied - 512, Length: 512}}

// copied is how much is copied; an emulated machine takes half a minute to sum up 64 MiB.
const copied = 20 << 20

func (o *orchestrator) copies(from, to string) {
	o.t.Helper()
	v := o.create("copy-"+from, drivebay.BackingPartition, "", copied, from)
	o.use(v)
	o.Sh("dd if=/dev/urandom of=%s bs=1M count=%d oflag=direct status=none", v.target(), copied>>20)
	// What is lost reads as zeros: so it is summed up.
	o.Sh("cp --sparse=never %s /tmp/%s", v.target(), v.name)
	for _, x := range badSectors {
		o.Sh("dd if=/dev/zero of=/tmp/%s bs=512 seek=%d count=%d conv=notrunc status=none", v.name, x.Offset/512, x.Length/512)
	}
	want := o.md5("/tmp/" + v.name)
	part := strings.TrimSpace(o.Sh("lsblk -n -o NAME -l /dev/%s | tail -1", o.Name(from)))
	var start uint64
	fmt.Sscan(o.Sh("cat /sys/class/block/%s/start", part), &start)
	var faults []machine.IOError
	for _, x := range badSectors {
		for at := x.Offset; at < x.Offset+x.Length; at += 512 {
			faults = append(faults, machine.IOError{Op: "read", Sector: int64(start + at/512)})
		}
	}
	o.only(to, from)
	o.Must(o.d.Operate(o.t.Context(), from, drivebay.LeaveRelease, ""))
	o.d.UntilDrive(from, "waiting for its user", soon, func(d *drivebay.Drive) error {
		if d.Leaving == nil || !strings.Contains(d.Leaving.Cause, "published at "+v.target()) {
			return fmt.Errorf("%v %+v", d.Usage, d.Leaving)
		}
		return nil
	})
	o.Must(o.FailIO(o.t.Context(), from, faults...))
	o.drop(v)
	began := time.Now()
	lost := o.untilCopy(v, "waiting for a word", func(view *drivebay.VolumeView) bool { return view.Usage == drivebay.VolumeUsageFailed })
	o.t.Logf("%s: asked after %v: %s", from, time.Since(began), lost.UsageFailure.Cause)
	if lost.Location.Drives[0] != o.d.BySerial(from).ID || !strings.Contains(lost.UsageFailure.Cause, (&drivebay.Lost{Bytes: 2048, Count: 3, Extents: badSectors}).String()) {
		o.t.Errorf("it is on %v, and says %s", lost.Location.Drives, lost.UsageFailure.Cause)
	}
	o.Must(o.d.AcceptLoss(o.t.Context(), v.name))
	view := o.untilCopy(v, "moved", func(view *drivebay.VolumeView) bool { return view.Work == "" && view.Usage == drivebay.VolumeInUse })
	if view.Location.Drives[0] == lost.Location.Drives[0] || view.Lost == nil || !slices.Equal(view.Lost.Extents, badSectors) || view.Condition.Severity() != drivebay.SeverityDataLoss {
		o.t.Errorf("moved to %v, without %+v: %v", view.Location.Drives, view.Lost, view.Condition)
	}
	o.use(v)
	if got := o.md5(v.target()); got != want {
		o.t.Errorf("%s was %s, and is %s", v.name, want, got)
	}
	o.drop(v)
	if left := o.journal(v, drivebay.EventVolumeLeft); len(left) > 0 {
		o.t.Errorf("on the old drive is left: %q", left)
	}
	o.Must(o.d.ClearVolume(o.t.Context(), v.id))
	o.Must(o.remove(v))
}

func (o *orchestrator) md5(file string) string {
	o.t.Helper()
	return strings.Fields(o.Sh("md5sum %s", file))[0]
}

func (o *orchestrator) untilCopy(v vol, what string, is func(*drivebay.VolumeView) bool) *drivebay.VolumeView {
	o.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		view := o.view(v)
		if is(view) {
			return view
		}
		if time.Now().After(end) {
			o.t.Fatalf("%s is not %s: %+v, %q; %v %+v", v.name, what, view.Volume, view.Work, o.d.BySerial(v.drives[0]).Usage, o.d.BySerial(v.drives[0]).Leaving)
		}
	}
}
