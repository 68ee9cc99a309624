package drivemgr

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/poll"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

func TestSame(t *testing.T) {
	w := hosttest.Tree{}
	a := w.SATA(1, "sda", map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001"})
	b := w.SATA(2, "sdb", map[string]string{"serial": "B1"})
	c := w.SATA(3, "sdc", map[string]string{"serial": "C1"})
	none := w.SATA(4, "sdd", nil)
	for num, at := range map[string]string{"8:0": a, "8:1": w.Partition(a, "sda1", "8:1"), "8:16": b, "8:32": c, "8:48": none, "253:0": w.DM(0, "x", "x")} {
		w["sys/dev/block/"+num] = "-> " + at
	}
	drives := map[string]drivebay.Drive{}
	for _, d := range inventory.Observe(w.Machine(t), nil, inventory.Options{}).Drives {
		drives[d.Name] = d
	}
	m := New(w.Machine(t), nil, state.Options{})
	m.tracking.ApplyListing(inventory.Observe(m.state.Machine, nil, inventory.Options{}))
	m.publish()
	w[c+"/size"] = "999\n"
	m.state.Machine = w.Machine(t)
	for _, c := range []struct {
		drive, num string
		want       error
	}{
		{"sda", "8:0", nil}, {"sda", "8:1", nil}, {"sdb", "8:16", nil},
		{"sda", "8:16", drivebay.ErrRefused}, // renamed between reading and write
		{"sda", "253:0", drivebay.ErrRefused},
		{"sda", "8:99", drivebay.ErrRefused},
		{"sdc", "8:32", drivebay.ErrRefused}, // of another size
		{"sdd", "8:48", drivebay.ErrRefused}, // nothing tells it from others
	} {
		if err := m.tracking.ProveIdentity(t.Context(), drives[c.drive].ID, c.num); !errors.Is(err, c.want) {
			t.Errorf("%s and %s: %v, want %v", c.drive, c.num, err, c.want)
		}
	}
	// A duplicate in the place of a drive, before drives are listed again: the kernel gives
	// no disk the number of another.
	w["proc/sys/kernel/random/boot_id"], w[a+"/diskseq"] = "boot\n", "8\n"
	m.state.Machine = w.Machine(t)
	m.tracking.ApplyListing(inventory.Observe(m.state.Machine, nil, inventory.Options{}))
	m.publish()
	if err := m.tracking.ProveIdentity(t.Context(), drives["sda"].ID, "8:0"); err != nil {
		t.Error(err)
	}
	w[a+"/diskseq"] = "9\n"
	m.state.Machine = w.Machine(t)
	if err := m.tracking.ProveIdentity(t.Context(), drives["sda"].ID, "8:0"); !errors.Is(err, drivebay.ErrRefused) {
		t.Errorf("another disk by the name of the first: %v", err)
	}
	if err := m.tracking.ProveIdentity(t.Context(), "sda", "8:0"); !errors.Is(err, drivebay.ErrNotFound) {
		t.Errorf("a name is no id: %v", err)
	}
}

func TestKernelLogReachesItsDrive(t *testing.T) {
	sata := &drivebay.Drive{Name: "sdc", Paths: []drivebay.Path{{Name: "sdc", Address: "1:0:0:0", SysPath: "sys/devices/pci0000:00/0000:00:05.0/ata1/host1/target1:0:0/1:0:0:0/block/sdc"}},
		Uses: []drivebay.Use{{Kind: "lvm", Device: "dm-3"}}}
	nvme := &drivebay.Drive{Name: "nvme0n1", Paths: []drivebay.Path{{Name: "nvme0c1n1", Address: "0000:04:00.0", SysPath: "sys/devices/pci0000:00/0000:04:00.0/nvme/nvme1/nvme0c1n1"}}}
	for dev, want := range map[string][2]bool{
		"sdc": {true, false}, "1:0:0:0": {true, false}, "ata1": {true, false}, "dm-3": {true, false}, "ata11": {false, false},
		"nvme0n1": {false, true}, "nvme0c1n1": {false, true}, "nvme1": {false, true}, "0000:04:00.0": {false, true}, "nvme0": {false, false}, "": {false, false},
	} {
		if got := [2]bool{poll.NamesDrive(dev, sata), poll.NamesDrive(dev, nvme)}; got != want {
			t.Errorf("%q speaks of the SATA drive: %v, of the NVMe drive: %v", dev, got[0], got[1])
		}
	}
}
