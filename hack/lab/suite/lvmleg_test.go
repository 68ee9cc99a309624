//go:build lab

package suite

import (
	"slices"
	"testing"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
	"github.com/drivebay/drivebay/lvm"
)

// TestLabLVMAddedLeg: why a linear volume does not move by a second leg that replaces the first one
// (docs/lab.md, "Moves by a second leg"). A full drive has no extent for the metadata of its
// leg. After one failed write to the new leg, LVM reports that everything is in sync and removes the
// only leg that holds everything. Copy.Whole recognizes that state, which the engine checks before
// it removes a leg.
func TestLabLVMAddedLeg(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{small(scsi("A", 0x5000c500b0000000)), small(scsi("B", 0x5000c500b0000001))}})
	b := newLVM(t, m, "drivebay-leg", "A", "B")
	run := func(steps ...lvm.Step) {
		t.Helper()
		_, err := b.sys.Run(t.Context(), b.group, b.devices, steps)
		m.Must(err)
	}
	linear := func(name string, size uint64) []lvm.Step { return must(lvm.CreateLinear(b.volume(name, size, 0))) }
	run(slices.Concat(must(lvm.CreateGroup(b.group, nil, b.pvs...)), linear("drivebay-vol", 16<<20), []lvm.Step{lvm.AddLeg(b.group, "drivebay-vol", b.pv(1))})...)
	b.waitSync("drivebay-vol")
	content := func() string {
		return m.Sh("dd if=/dev/%s/drivebay-vol bs=1M count=1 iflag=direct status=none | md5sum", b.group)
	}
	old := content()
	m.Must(m.FailIO(t.Context(), "B", machine.IOError{Op: "write", Sector: machine.Everywhere}))
	m.Sh("dd if=/dev/urandom of=/dev/%s/drivebay-vol bs=1M count=1 oflag=direct status=none", b.group)
	m.Must(m.Heal(t.Context(), "B"))
	written := content()
	c, err := b.sys.CopyProgress(t.Context(), b.group, "drivebay-vol")
	m.Must(err)
	if c.Legs != "AD" || c.Done != c.Total || c.Whole() {
		t.Errorf("a leg without the last write: %+v, whole: %v", c, c.Whole())
	}
	if lv := b.read().LV(b.group, "drivebay-vol"); !lv.Sync.Full() {
		t.Errorf("LVM reports %v", lv.Sync)
	}
	m.Sh("lvconvert -q -y -m0 %s/drivebay-vol %s", b.group, b.devices[0])
	g := b.read().Group(b.group)
	if on := g.PhysicalVolumesOf("drivebay-vol"); !slices.Equal(on, []string{b.pv(1)}) {
		t.Fatalf("the volume is on %v", on)
	}
	if is := content(); written == old || is != old {
		t.Errorf("on the new drive alone it holds %s; before the failed write %s, written was %s", is, old, written)
	}

	half := (g.FreeExtents + 16<<20/lvm.ExtentSize) / 2 // the first drive, which is empty again
	run(linear("drivebay-full", half*lvm.ExtentSize)...)
	b.refused(lvm.ErrNoSpace, []lvm.Step{lvm.AddLeg(b.group, "drivebay-full", b.pv(1))})
}
