//go:build lab

package suite

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/lvm"
)

// TestLabLVMActivateWhole: LVM activates a mirror without a leg whose label it cannot read, unless
// it is told to activate only what is complete. It then refuses before it makes a device.
func TestLabLVMActivateWhole(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{small(scsi("A", 0x5000c500b0000000)), small(scsi("B", 0x5000c500b0000001))}})
	b := newLVM(t, m, "drivebay-whole", "A", "B")
	const name = "drivebay-mir"
	run := func(steps []lvm.Step) {
		t.Helper()
		_, err := b.sys.Run(t.Context(), b.group, b.devices, steps)
		m.Must(err)
	}
	run(must(lvm.CreateGroup(b.group, nil, b.pvs...)))
	run(must(lvm.CreateMirror(b.volume(name, 16<<20, 0, 1))))
	b.waitSync(name)
	off := lvm.Deactivate(b.group, name)
	run(off)
	run(lvm.ActivateWhole(b.group, name))
	run(off)
	label := func(bytes string) { // the first two of "LVM2 001", the type of the label
		m.Sh("printf '%s' | dd of=%s bs=1 seek=536 conv=notrunc,fsync status=none", bytes, b.devices[0])
	}
	label("XX")
	b.refused(lvm.ErrMissingPV, lvm.ActivateWhole(b.group, name))
	if _, err := b.sys.CopyProgress(t.Context(), b.group, name); !errors.Is(err, lvm.ErrNotFound) {
		t.Errorf("after LVM refused, its device: %v", err)
	}
	run(lvm.Activate(b.group, name))
	if c, err := b.sys.CopyProgress(t.Context(), b.group, name); err != nil || c.Legs != "DA" {
		t.Errorf("activated as it is: %+v, %v", c, err)
	}
	run(off)
	label("LV")
	run(lvm.ActivateWhole(b.group, name))
}
