//go:build lab

package suite

import (
	"fmt"
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// TestLabVolumeGrow: every filesystem grows on a partition and on a logical volume
// while a pod writes to it, and what it wrote is there.
func TestLabVolumeGrow(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NVA"), nvme("NVB"), scsi("SDA", 0x5000c500b0000000), nvme("LVM")}})
	o := orchestrate(t, m)
	var all []vol
	for fs, drive := range map[string]string{"ext4": "NVA", "xfs": "SDA", "btrfs": "NVB"} {
		all = append(all, o.create("part-"+fs, drivebay.BackingPartition, fs, 0, drive))
	}
	all = append(all, o.create("lvm-ext4", drivebay.BackingLVM, "ext4", 0, "LVM"))
	part, lv := all[0], all[len(all)-1]
	o.use(all...)
	older := o.layout(part, lv, "before")
	for _, v := range all {
		o.Sh(`(for i in $(seq 1000); do test -e /tmp/enough && break; head -c 65536 /dev/urandom; sleep 0.05; done | tee %[1]s/file | md5sum | cut -c1-32 >/tmp/%[2]s.sum) </dev/null >/dev/null 2>&1 &`, v.target(), v.name)
	}
	const more = 448 << 20
	for _, v := range all {
		was := o.bytes(v)
		grown, err := o.ctl.ControllerExpandVolume(t.Context(), &wire.ControllerExpandVolumeRequest{VolumeId: v.id, CapacityRange: &wire.CapacityRange{RequiredBytes: more}, VolumeCapability: v.capability()})
		o.Must(err)
		if grown.CapacityBytes != more || !grown.NodeExpansionRequired {
			t.Errorf("%s: grown to %d, the node has to: %v", v.name, grown.CapacityBytes, grown.NodeExpansionRequired)
		}
		_, err = o.node.NodeExpandVolume(t.Context(), &wire.NodeExpandVolumeRequest{VolumeId: v.id, VolumePath: v.target(), StagingTargetPath: v.staging()})
		o.Must(err)
		if is := o.bytes(v); is < was+100<<20 {
			t.Errorf("%s: the filesystem had %d bytes and has %d", v.name, was, is)
		}
	}
	o.Sh("touch /tmp/enough; for i in $(seq 100); do pgrep -x tee >/dev/null || break; sleep 0.1; done; sync")
	for _, v := range all {
		// Out of the kernel's memory, and from the disk again.
		o.drop(v)
		o.use(v)
		sums := o.Sh("md5sum %s/file | cut -c1-32; cat /tmp/%s.sum; stat -c %%s %[1]s/file", v.target(), v.name)
		if got := strings.Fields(sums); len(got) != 3 || got[0] != got[1] || len(got[2]) < 6 {
			t.Errorf("%s: read back, written and bytes: %q", v.name, got)
		}
	}
	o.well(all...)
	o.restored(part, lv, older, o.layout(part, lv, "after"))
}

// layout saves the partition table of a volume's drive and the metadata of another one's group, and returns the commands that restore them.
func (o *orchestrator) layout(part, lv vol, when string) string {
	o.t.Helper()
	drive, group := o.Name(part.drives[0]), o.view(lv).Location.VG
	o.Sh("sgdisk --backup=/tmp/%[1]s.gpt /dev/%[2]s >/dev/null && lvm vgcfgbackup -f /tmp/%[1]s.vg %[3]s 2>&1", when, drive, group)
	return fmt.Sprintf("{ sgdisk --load-backup=/tmp/%[1]s.gpt /dev/%[2]s && partprobe /dev/%[2]s && lvm lvchange -an %[3]s && lvm vgcfgrestore --force -f /tmp/%[1]s.vg %[3]s; } 2>&1", when, drive, group)
}

// restored restores the layout from before a growth: what lies behind the volumes is theirs, until they are as large as before.
func (o *orchestrator) restored(part, lv vol, older, newer string) {
	o.t.Helper()
	sums := map[string]string{}
	for _, v := range []vol{part, lv} {
		sums[v.id] = o.Sh("md5sum %s/file", v.target())
		o.drop(v)
	}
	o.Sh("%s", older)
	for _, v := range []vol{part, lv} {
		o.untilCopy(v, "smaller than before", func(is *drivebay.VolumeView) bool { return strings.Contains(is.Condition.Message(), "not whole") })
		if err := o.stage(v); err == nil {
			o.t.Errorf("%s is staged", v.name)
		}
	}
	o.only(part.drives[0], lv.drives[0])
	for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		_, request := o.request("other", backing, "ext4", 64<<20)
		if made, err := o.ctl.CreateVolume(o.t.Context(), request); err == nil {
			o.t.Errorf("made over what lies behind the volumes: %v", made)
		}
	}
	o.Sh("%s", newer)
	for _, v := range []vol{part, lv} {
		o.untilCopy(v, "as large as before", func(is *drivebay.VolumeView) bool {
			return !is.Condition.Abnormal() && o.stage(v) == nil // partprobe has given the partition another number
		})
		o.use(v)
		if got := o.Sh("md5sum %s/file", v.target()); got != sums[v.id] {
			o.t.Errorf("%s: %q, and it was %q", v.name, got, sums[v.id])
		}
	}
}

// bytes is how large the filesystem of a volume says that it is.
func (o *orchestrator) bytes(v vol) (n int64) {
	o.t.Helper()
	_, err := fmt.Sscan(o.Sh("stat -f -c '%%b*%%S' %s | tr '*' ' ' | awk '{print $1*$2}'", v.target()), &n)
	o.Must(err)
	return n
}
