package inventory

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/kernel"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

func TestUses(t *testing.T) {
	rows := []struct {
		name   string
		build  func(w hosttest.Tree, a, b string)
		mounts []host.Mount
		a, b   string
		system [2]bool
	}{
		{name: "nothing"},
		{name: "a data partition",
			build:  func(w hosttest.Tree, a, _ string) { w.Partition(a, "sda1", "8:1") },
			mounts: []host.Mount{hosttest.Mount("8:1", "/mnt/data", "ext4", "/dev/sda1")},
			a:      "partition:sda1 mount:sda1:/mnt/data"},
		{name: "mounted, in a table without numbers",
			mounts: []host.Mount{hosttest.Mount("", "/mnt/data", "ext4", "/dev/sdb")}, b: "mount:sdb:/mnt/data"},
		{name: "root on md of two drives",
			build: func(w hosttest.Tree, a, b string) {
				w.Block("sys/devices/virtual/block", "md0", "9:0", map[string]string{"md/level": "raid1"})
				w.Hold("md0", w.Partition(a, "sda2", "8:2"), w.Partition(b, "sdb2", "8:18"))
			},
			mounts: []host.Mount{hosttest.Mount("9:0", "/", "ext4", "/dev/md0")},
			a:      "partition:sda2 md:md0:raid1 mount:md0:/", b: "partition:sdb2 md:md0:raid1 mount:md0:/", system: [2]bool{true, true}},
		{name: "root on LUKS on LVM on a partition",
			build: func(w hosttest.Tree, a, _ string) {
				lv := w.DM(0, "vg-root", "LVM-abc", w.Partition(a, "sda3", "8:3"))
				w.DM(1, "root_crypt", "CRYPT-LUKS2-abc", lv)
			},
			mounts: []host.Mount{hosttest.Mount("253:1", "/", "xfs", "/dev/mapper/root_crypt")},
			a:      "partition:sda3 lvm:dm-0:vg-root crypt:dm-1:root_crypt mount:dm-1:/", system: [2]bool{true, false}},
		{name: "btrfs of two drives on /",
			build: func(w hosttest.Tree, a, b string) {
				w["sys/fs/btrfs/uuid/devices/sda"], w["sys/fs/btrfs/uuid/devices/sdb"] = "-> "+a, "-> "+b
			},
			mounts: []host.Mount{hosttest.Mount("0:35", "/", "btrfs", "/dev/sdb")},
			a:      "btrfs:sda:/", b: "btrfs:sdb:/", system: [2]bool{true, true}},
		{name: "btrfs of a name nobody knows",
			build:  func(w hosttest.Tree, a, _ string) { w["sys/fs/btrfs/uuid/devices/sda"] = "-> " + a },
			mounts: []host.Mount{hosttest.Mount("0:35", "/", "btrfs", "/dev/root")},
			a:      "btrfs:sda:/", system: [2]bool{true, false}},
		{name: "swap on a partition",
			build: func(w hosttest.Tree, a, _ string) {
				w.Partition(a, "sda1", "8:1")
				w["proc/swaps"] = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda1                               partition\t8388604\t0\t-2\n"
			},
			a: "partition:sda1 swap:sda1", system: [2]bool{true, false}},
		{name: "swap by a mapper name",
			build: func(w hosttest.Tree, _, b string) {
				w.DM(3, "vg-swap", "LVM-x", b)
				w["proc/swaps"] = "Filename Type\n/dev/mapper/vg-swap partition 1 0 -2\n"
			},
			b: "lvm:dm-3:vg-swap swap:dm-3", system: [2]bool{false, true}},
		{name: "zfs, as udev saw it",
			build: func(w hosttest.Tree, a, _ string) {
				w.Partition(a, "sda1", "8:1")
				w["run/udev/data/b8:1"] = "S:disk/by-label/tank\nE:ID_FS_TYPE=zfs_member\n"
			},
			a: "partition:sda1 zfs:sda1"},
		{name: "holders in a ring",
			build: func(w hosttest.Tree, a, _ string) {
				one := w.DM(0, "a", "x", a)
				w.DM(1, "b", "x", one)
				w.Hold("dm-0", "sys/devices/virtual/block/dm-1")
			},
			a: "dm:dm-0:a dm:dm-1:b"},
	}
	for _, r := range rows {
		w := hosttest.Tree{}
		a := w.SATA(1, "sda", map[string]string{"serial": "A1"})
		b := w.SATA(2, "sdb", map[string]string{"serial": "B1"})
		if r.build != nil {
			r.build(w, a, b)
		}
		_, drives := listTree(t, w, Options{}, r.mounts...)
		da, db := drives["sda"], drives["sdb"]
		if uses(da) != r.a || uses(db) != r.b {
			t.Errorf("%s: %q and %q, want %q and %q", r.name, uses(da), uses(db), r.a, r.b)
		}
		if got := [2]bool{da.System, db.System}; got != r.system {
			t.Errorf("%s: system %v, want %v", r.name, got, r.system)
		}
		for _, d := range []drivebay.Drive{da, db} {
			// Only its table says whose a partition without a name is, and that was not read.
			unread := r.name == "a data partition"
			if (len(d.Uses) > 0 && !unread) != (d.Content.Kind == drivebay.ContentForeign) {
				t.Errorf("%s: %s is used %q and %v", r.name, d.Name, uses(d), d.Content.Kind)
			}
		}
	}
}

func TestManyVolumesOnOneDrive(t *testing.T) {
	w := hosttest.Tree{}
	a := w.SATA(1, "sda", map[string]string{"serial": "A1"})
	for i := range 400 {
		w.DM(i, "vg-v"+string(rune('a'+i%26)), "LVM-x", a)
	}
	_, drives := listTree(t, w, Options{}, hosttest.Mount("253:99", "/var", "ext4", "x"), hosttest.Mount("253:399", "/", "ext4", "x"))
	if d := drives["sda"]; !d.System || len(d.Uses) != 402 {
		t.Errorf("system %v, %d uses", d.System, len(d.Uses))
	}
}

func TestPathsOfOneDrive(t *testing.T) {
	same := map[string]string{"serial": "Z1", "wwid": "naa.5000c500a0000001"}
	w := hosttest.Tree{}
	w.SAS(1, 4, "sda", same)
	b := w.SAS(2, 4, "sdb", same)
	w.Partition(b, "sdb1", "8:17")
	w.SAS(1, 5, "sdc", map[string]string{"serial": "Z2", "wwid": "naa.5000c500a0000002"})
	_, drives := listTree(t, w, Options{}, hosttest.Mount("8:17", "/", "ext4", "/dev/sdb1"))
	d := drives["sda"]
	if len(drives) != 2 || len(d.Paths) != 2 || d.Paths[1].Name != "sdb" || !d.System || d.Transport != drivebay.TransportSAS || d.IdentityIssue != "" {
		t.Errorf("%d drives, %+v", len(drives), d)
	}

	// Two bays are two drives, whatever they say of themselves.
	for i, bay := range []string{"Slot 01", "Slot 02"} {
		at := "sys/devices/enc/0:0:9:0/enclosure/0:0:9:0/" + bay
		w[at+"/type"] = "array device\n"
		w[at+"/device"] = "-> " + [2]string{"sys/devices/pci0000:3a/0000:3a:00.1/host1/port-1:0/expander-1:0/port-1:0:4/end_device-1:0:4/target1:0:4/1:0:4:0", "sys/devices/pci0000:3a/0000:3a:00.2/host2/port-2:0/expander-2:0/port-2:0:4/end_device-2:0:4/target2:0:4/2:0:4:0"}[i]
	}
	w["sys/class/enclosure/0:0:9:0"] = "-> sys/devices/enc/0:0:9:0/enclosure/0:0:9:0"
	if _, drives := listTree(t, w, Options{}); len(drives) != 3 || drives["sda"].IdentityIssue == "" {
		t.Errorf("two bays: %d drives, issue %q", len(drives), drives["sda"].IdentityIssue)
	}

	w = hosttest.Tree{}
	a := w.SATA(1, "sda", same)
	b = w.SATA(2, "sdb", same)
	w.DM(0, "mpatha", "mpath-35000c500a0000001", a, b)
	if _, drives := listTree(t, w, Options{}); len(drives) != 1 || len(drives["sda"].Paths) != 2 || uses(drives["sda"]) != "multipath:dm-0:mpatha" {
		t.Errorf("multipath: %d drives, %+v", len(drives), drives["sda"])
	}
}

func TestNVMePaths(t *testing.T) {
	w := hosttest.Tree{}
	subsys := "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
	w[subsys+"/model"], w[subsys+"/serial"], w[subsys+"/firmware_rev"] = "MODEL\n", "SER1\n", "F1\n"
	head := w.Block(subsys, "nvme0n1", "259:0", map[string]string{"wwid": "eui.0025385500000001", "queue/rotational": "0"})
	w[head+"/device"] = "-> " + subsys
	w.Partition(head, "nvme0n1p1", "259:1")
	for i, state := range []string{"dead", "live"} {
		name, pci := "nvme"+string(rune('0'+i)), "0000:3"+string(rune('b'+i))+":00.0"
		ctrl := "sys/devices/pci0000:3a/" + pci + "/nvme/" + name
		w[ctrl+"/state"], w[ctrl+"/address"] = state+"\n", pci+"\n"
		w["sys/class/nvme/"+name] = "-> " + ctrl
		w["sys/bus/pci/devices/"+pci] = "-> sys/devices/pci0000:3a/" + pci
		w.Block(ctrl, "nvme0c"+string(rune('0'+i))+"n1", "259:"+string(rune('4'+i)), map[string]string{"hidden": "1"})
	}
	w["sys/bus/pci/slots/14/address"] = "0000:3c:00\n"
	w["sys/bus/pci/slots/14/attention"] = "0\n"
	l, drives := listTree(t, w, Options{}, hosttest.Mount("259:1", "/data", "xfs", "/dev/nvme0n1p1"))
	d := drives["nvme0n1"]
	if len(l.Drives) != 1 || len(d.Paths) != 2 || d.Paths[0].State != "dead" || d.Paths[1].State != "live" || d.Model != "MODEL" || d.ID != "eui-0025385500000001" {
		t.Errorf("%d drives, %+v", len(l.Drives), d)
	}
	if uses(d) != "partition:nvme0n1p1 mount:nvme0n1p1:/data" || d.Slot.Bay != "14" {
		t.Errorf("uses %q, bay %q", uses(d), d.Slot.Bay)
	}
	if k := kernel.Read(w.Machine(t), &d, nil, drives["nvme0n1"].FirstSeen); k.State != "live" {
		t.Errorf("the better way is %q", k.State)
	}
}

// TestLeavesBeforeItsBay: a drive that is removed after its attributes were read, and before its bay, is
// not listed: it would be a drive in no bay.
func TestLeavesBeforeItsBay(t *testing.T) {
	w := hosttest.Tree{}
	w.NVMe("0000:3b:00.0", 0, map[string]string{"uevent": "x", "block/uevent": "x"})
	w.NVMe("0000:3c:00.0", 1, map[string]string{"uevent": "x", "block/uevent": "x"})
	w["sys/bus/pci/slots/7/address"], w["sys/bus/pci/slots/8/address"] = "0000:3b:00\n", "0000:3c:00\n"
	removed := false
	leaves := refusing{w.Machine(t), func(name string) error {
		removed = removed || name == "sys/bus/pci/devices/0000:3c:00.0"
		if removed && (strings.Contains(name, "0000:3c:00.0") || strings.Contains(name, "nvme1n1")) {
			return fs.ErrNotExist
		}
		return nil
	}}
	if l := Observe(leaves, nil, Options{}); !removed || names(l) != "nvme0n1" || l.Drives[0].Slot.Bay != "7" || !l.Complete {
		t.Errorf("removed %v: %q, complete %v", removed, names(l), l.Complete)
	}
}

func TestBays(t *testing.T) {
	w := hosttest.Tree{}
	enc := "sys/devices/pci0000:3a/enc/0:0:9:0/enclosure/0:0:9:0"
	w["sys/class/enclosure/0:0:9:0"] = "-> " + enc
	w[enc+"/id"] = "0x50030480001a2b3f\n"
	for i, bay := range []string{"Slot 01", "Slot 02", "Slot 03"} {
		at := enc + "/" + bay
		w[at+"/type"], w[at+"/slot"], w[at+"/locate"], w[at+"/fault"] = "array device\n", string(rune('1'+i))+"\n", string("010"[i])+"\n", "0\n"
	}
	w[enc+"/Slot 01/status"], w[enc+"/Slot 03/status"] = "OK\n", "not installed\n" // the second is of a kernel that cannot tell
	w[enc+"/Fan 1/type"] = "cooling\n"
	w.SAS(1, 1, "sda", map[string]string{"serial": "A1"})
	w[enc+"/Slot 01/device"] = "-> sys/devices/pci0000:3a/0000:3a:00.1/host1/port-1:0/expander-1:0/port-1:0:1/end_device-1:0:1/target1:0:1/1:0:1:0"
	w.SAS(1, 2, "sdb", map[string]string{"serial": "B1"}) // no link from the bay, but the transport knows
	w["sys/class/sas_device/end_device-1:0:2/bay_identifier"], w["sys/class/sas_device/end_device-1:0:2/enclosure_identifier"] = "2\n", "0x50030480001a2b3f\n"
	w.NVMe("0000:3b:00.0", 0, nil)
	w.NVMe("0000:3c:00.0", 1, nil)
	w.NVMe("0000:3d:00.0", 2, nil)
	w["sys/bus/pci/slots/7/address"], w["sys/bus/pci/slots/7/attention"] = "0000:3b:00\n", "1\n"
	w["sys/bus/pci/slots/8/address"] = "0000:3c:00\n"
	w["sys/class/leds/0000:3c:00.0:enclosure:locate/brightness"] = "1\n"
	l, drives := listTree(t, w, Options{})
	se := "sys/class/enclosure/0:0:9:0/"
	for name, want := range map[string]drivebay.Slot{
		"sda":     {Enclosure: "0x50030480001a2b3f", Bay: "Slot 01", Locate: se + "Slot 01/locate", Fault: se + "Slot 01/fault", Status: "OK"},
		"sdb":     {Enclosure: "0x50030480001a2b3f", Bay: "Slot 02", Locate: se + "Slot 02/locate", Fault: se + "Slot 02/fault", Lit: true},
		"nvme0n1": {Bay: "7", Locate: "sys/bus/pci/slots/7/attention", Lit: true},
		"nvme1n1": {Bay: "8", Locate: "sys/class/leds/0000:3c:00.0:enclosure:locate/brightness", Lit: true},
		"nvme2n1": {},
	} {
		if drives[name].Slot != want {
			t.Errorf("%s: %+v, want %+v", name, drives[name].Slot, want)
		}
	}
	if len(l.Bays) != 5 {
		t.Errorf("%d bays: %+v", len(l.Bays), l.Bays)
	}
	if empty := l.Bays[2]; empty.Bay != "Slot 03" || empty.Status != "not installed" {
		t.Errorf("the empty bay: %+v", empty)
	}
	if l, _ := listTree(t, w, Options{SkipEnclosures: true}); l.Bays[1].Lit || l.Bays[2].Status != "" {
		t.Errorf("the enclosure was asked in the dark: %+v", l.Bays)
	}
}
