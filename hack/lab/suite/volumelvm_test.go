//go:build lab

package suite

import (
	"testing"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func sized(d machine.Drive, size int64, block int) machine.Drive {
	d.Size, d.Block = size, block
	return d
}

// TestLabVolumeRoom: the largest volume that GetCapacity promises can be made of
// every backing, on drives of several kinds, and one unit more cannot; what is
// made so serves, until a leg of the mirror is pulled and the pool runs full.
func TestLabVolumeRoom(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		sized(nvme("NV"), 512<<20, 512), sized(nvme("NV4K"), 400<<20, 4096),
		sized(scsi("SD", 0x5000c500b0000000), 300<<20+512, 512), sized(scsi("SD4K", 0x5000c500b0000001), 333<<20, 4096),
		sized(scsi("SD2", 0x5000c500b0000002), 200<<20, 512)}})
	o := orchestrate(t, m)
	for drive, backing := range map[string]drivebay.Backing{"NV": drivebay.BackingPartition, "NV4K": drivebay.BackingDrive, "SD": drivebay.BackingDrive, "SD4K": drivebay.BackingPartition} {
		v := o.largest(backing, "ext4", 1<<20, drive)
		o.Must(o.remove(v))
	}
	o.largest(drivebay.BackingLVM, "ext4", 4<<20, "SD4K")
	thin := o.largest(drivebay.BackingThin, "", 4<<20, "NV")
	o.only("NV4K", "SD")
	if has, err := o.ctl.GetCapacity(t.Context(), &wire.GetCapacityRequest{Parameters: map[string]string{drivebay.ParameterBacking: string(drivebay.BackingMirror)}}); err != nil || has.MaximumVolumeSize.Value != 0 {
		t.Errorf("LVM makes no mirror of drives whose blocks differ, and %v are promised, %v", has, err)
	}
	mirror := o.largest(drivebay.BackingMirror, "ext4", 4<<20, "SD", "SD2")
	o.use(thin, mirror)
	o.heals(mirror, time.Minute) // until it is copied
	o.well(thin)

	m.Must(m.Unplug(t.Context(), "SD"))
	o.ails(mirror, "DiskRemoved", time.Now(), 2*time.Second) // the budget is held in TestLabVolumeHealth
	if view := o.view(mirror); view.Condition.Severity() != drivebay.SeverityDegraded {
		t.Errorf("a mirror with one leg is %v: %s", view.Condition.Severity(), view.Condition.Message())
	}
	o.Sh("echo still >%s/file && sync %[1]s/file && grep -q still %[1]s/file", mirror.target())

	o.Sh("dd if=/dev/zero of=%s bs=1M count=%d oflag=direct status=none", thin.target(), thin.size*95/100>>20)
	o.ails(thin, "ThinPoolLowOnDataSpace", time.Now(), 40*time.Second)
	o.drop(thin, mirror)
}

// largest makes the largest volume that there can be on drives, after it was
// refused to make one that is a unit larger.
func (o *orchestrator) largest(backing drivebay.Backing, fs string, unit int64, on ...string) vol {
	o.t.Helper()
	o.only(on...)
	name := "largest-" + string(backing) + "-" + on[0]
	v, req := o.request(name, backing, fs, 0)
	has, err := o.ctl.GetCapacity(o.t.Context(), &wire.GetCapacityRequest{Parameters: req.Parameters, VolumeCapabilities: req.VolumeCapabilities})
	o.Must(err)
	most := has.MaximumVolumeSize.Value
	req.CapacityRange.RequiredBytes = most + 1
	if _, err := o.ctl.CreateVolume(o.t.Context(), req); status.Code(err) != codes.ResourceExhausted && status.Code(err) != codes.OutOfRange { // of an empty drive
		o.t.Errorf("%s, more than the %d bytes that there are: %v", name, most, err)
	}
	began := time.Now()
	v = o.create(name, backing, fs, most, on...)
	o.t.Logf("%s on %v: %d bytes, made in %v", backing, on, v.size, time.Since(began).Round(time.Millisecond))
	if v.size != most || most%unit != 0 {
		o.t.Errorf("%s has %d bytes, promised were %d, in units of %d", name, v.size, most, unit)
	}
	if has, err = o.ctl.GetCapacity(o.t.Context(), &wire.GetCapacityRequest{Parameters: req.Parameters}); err != nil || has.AvailableCapacity != 0 {
		o.t.Errorf("%s takes all, and %d bytes are left, %v", name, has.GetAvailableCapacity(), err)
	}
	return v
}
