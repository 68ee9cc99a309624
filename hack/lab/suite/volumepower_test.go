//go:build lab

package suite

import (
	"fmt"
	"testing"
	"time"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabVolumePowerCut: the power goes while pods write and while a volume is
// wiped. What was synced is there, and the wipe goes on.
func TestLabVolumePowerCut(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{
		nvme("NVSTATE"), nvme("NVA"), nvme("NVLVM"), sized(scsi("SDWIPE", 0x5000c500b0000000), 2<<30, 512)}})
	m.Sh("mkfs.ext4 -q /dev/%s", m.Name("NVSTATE"))
	remember := func() { m.Sh("mkdir -p %s && mount /dev/%s %[1]s", lab.DaemonState, m.Name("NVSTATE")) }
	remember()
	o := orchestrate(t, m)
	all := []vol{o.create("part", drivebay.BackingPartition, "xfs", 0, "NVA"), o.create("linear", drivebay.BackingLVM, "ext4", 0, "NVLVM")}
	neighbour := o.create("neighbour", drivebay.BackingPartition, "", 64<<20, "SDWIPE")
	o.wipe = drivebay.WipeZero
	wiped := o.create("wiped", drivebay.BackingPartition, "ext4", 1<<30, "SDWIPE")
	o.use(all...)
	o.use(neighbour, wiped)
	o.Sh("head -c 8M /dev/urandom >%s; sync", neighbour.target())
	o.Sh("yes secret | head -c 32M >%s/file; sync", wiped.target())
	o.drop(neighbour, wiped)
	sums := map[string]string{}
	for _, v := range all {
		sums[v.name] = o.Sh("head -c 4M /dev/urandom >%s/synced; sync %[1]s/synced; cut -c1-32 <<<$(md5sum <%[1]s/synced)", v.target())
		o.Sh("(while :; do head -c 64k /dev/urandom; done >%s/lost) </dev/null >/dev/null 2>&1 &", v.target())
	}
	beside := func() string {
		return o.Sh("head -c 66M /dev/%s | tail -c 65M | head -c 64M | md5sum", m.Name("SDWIPE"))
	}
	before := beside()
	m.Must(m.Slow(t.Context(), "SDWIPE", machine.Limit{IOPS: 4}))
	go o.ctl.DeleteVolume(t.Context(), &wire.DeleteVolumeRequest{VolumeId: wiped.id})
	o.untilGone(wiped, false)
	time.Sleep(3 * time.Second) // in the middle: 32 pieces at four a second
	m.PowerCut()
	m.Must(m.Boot(t.Context()))
	remember()
	o.start()
	for _, v := range all {
		o.d.Until(v.name+" is there and nobody has it", soon, func(*drivebay.Snapshot) error {
			if got := o.view(v); got.Size != uint64(v.size) || got.CSIStatus != drivebay.CSICreated {
				return fmt.Errorf("%d bytes, %v", got.Size, got.CSIStatus)
			}
			return nil
		})
	}
	o.use(all...)
	o.well(all...)
	for _, v := range all {
		if got := o.Sh("cut -c1-32 <<<$(md5sum <%s/synced)", v.target()); got != sums[v.name] {
			t.Errorf("%s: what was synced is %s, was %s", v.name, got, sums[v.name])
		}
	}
	o.untilGone(wiped, true)
	if left := o.Sh("head -c 265M /dev/%s | tail -c 200M | tr -d '\\0' | head -c 99 | wc -c", m.Name("SDWIPE")); left != "0" {
		t.Error("something of what was wiped is on the drive still")
	}
	if got := beside(); got != before {
		t.Error("the volume beside the wiped one has changed")
	}
}

// untilGone waits until a removal has begun, or until it has ended.
func (o *orchestrator) untilGone(v vol, ended bool) {
	o.t.Helper()
	o.d.Until(fmt.Sprintf("%s goes, to the end: %v", v.name, ended), 2*time.Minute, func(*drivebay.Snapshot) error {
		all, err := o.d.Volumes(o.t.Context())
		o.Must(err)
		view, there := all.Get(v.id)
		if ended && there || !ended && (!there || view.Work != string(drivebay.WorkRemove)) {
			return fmt.Errorf("there: %v, %+v", there, view)
		}
		return nil
	})
}
