package hostsim_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// TestMapped: an active volume is in sysfs, in /dev and in the events.
func TestMapped(t *testing.T) {
	b := newBench(t, "drivebay-dm", 2)
	events, err := b.Uevents(t.Context())
	must(t, err)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs...)))
	b.do(plan(lvm.CreateMirror(b.volume("drivebay-mir", 40<<20, 0, 1))))
	e := next(t, events, "mirror", func(e host.Uevent) bool {
		return e.Action == "add" && e.Env["DM_NAME"] == "drivebay--dm-drivebay--mir"
	})
	dir := "sys/block/" + e.DevName
	for name, want := range map[string]string{"/dm/name": "drivebay--dm-drivebay--mir", "/size": "81920", "/dev": "253:4"} {
		if got := read(t, b.Machine, dir+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := read(t, b.Machine, dir+"/dm/uuid"); !strings.HasPrefix(got, "LVM-") || len(got) != 68 {
		t.Errorf("its uuid is %s", got)
	}
	slaves, err := b.ReadDir(dir + "/slaves")
	if err != nil || len(slaves) != 4 {
		t.Errorf("it stands on %v, %v", slaves, err)
	}
	if holders, err := b.ReadDir("sys/block/nvme0n1/holders"); err != nil || len(holders) != 2 {
		t.Errorf("the drive is held by %v, %v", holders, err)
	}
	for _, link := range []string{"dev/" + b.group + "/drivebay-mir", "dev/mapper/drivebay--dm-drivebay--mir"} {
		if at, err := b.Resolve(link); err != nil || at != "dev/"+e.DevName {
			t.Errorf("%s leads to %s, %v", link, at, err)
		}
	}
	for _, dev := range []string{"/dev/nvme0n1", "/dev/dm-1"} {
		if _, err := b.OpenDisk(t.Context(), dev, true); !errors.Is(err, host.ErrBusy) {
			t.Errorf("%s alone: %v", dev, err)
		}
	}
	b.fault(0, "vanish")
	if slaves, err := b.ReadDir("sys/block/dm-0/slaves"); err != nil || len(slaves) != 0 {
		t.Errorf("a part of it stands on %v, %v", slaves, err)
	}
	b.fault(0, "return")
	b.named(0)
	b.do(lvm.Deactivate(b.group, "drivebay-mir"))
	if left, err := b.ReadDir("sys/devices/virtual/block"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := b.Resolve("dev/" + b.group); err == nil {
		t.Error("the folder of the group is left")
	}
}

// TestLVMHangs: a drive that hangs holds those commands that may see it.
func TestLVMHangs(t *testing.T) {
	b := newBench(t, "drivebay-hang", 2)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs[0])))
	b.fault(1, "hang")
	if _, err := b.sys.Read(t.Context(), b.devices[:1]); err != nil {
		t.Error(err)
	}
	done := make(chan error)
	go func() { _, err := b.sys.Read(t.Context(), b.devices); done <- err }()
	select {
	case err := <-done:
		t.Errorf("it was read: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	b.fault(1, "heal")
	must(t, <-done)
}

// TestOldData: what was on the extents is there until somebody writes zeros.
func TestOldData(t *testing.T) {
	b := newBench(t, "drivebay-old", 1)
	b.do(plan(lvm.CreateGroup(b.group, nil, b.pvs...)))
	make := plan(lvm.CreateLinear(b.volume("drivebay-a", 40<<20, 0)))
	b.do(make)
	d := b.open("drivebay-a")
	writeAt(t, d, "secret", 8*mib)
	must(t, d.Close())
	b.do(lvm.Remove(b.group, "drivebay-a"))
	b.do(make)
	if got := readAt(t, b.open("drivebay-a"), 6, 8*mib); got != "secret" {
		t.Errorf("a new volume reads %q: extents are not wiped by lvm", got)
	}
}

// TestLVMWords: wrong words are refused as lvm does, and a machine may have none.
func TestLVMWords(t *testing.T) {
	m, _ := load(t, flash)
	for argv, want := range map[string]int{
		"lvm lvcreate --cheese g": 3,
		"lvm cheese":              2,
		"lvm vgs":                 2,
		"lvm lvcreate --name x --size 4m nowhere":                     5,
		"lvm pvcreate --uuid abc --norestorefile /dev/nvme0n1":        5,
		"lvm pvcreate --devices /dev/nvme1n1 /dev/nvme0n1":            5,
		"lvm fullreport --reportformat json":                          3,
		"lvm pvcreate --metadatasize 16m --dataalignment 1m /dev/sdz": 5,
		"lvm pvremove /dev/nvme0n1":                                   5,
	} {
		if got := exitCode(t, m, strings.Fields(argv)...); got != want {
			t.Errorf("%s ends with %d, want %d", argv, got, want)
		}
	}
	lacking, _ := load(t, flash+"without: [lvm]")
	if _, err := lvm.New(lacking, "").Read(t.Context(), []string{"/dev/nvme0n1"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without lvm: %v", err)
	}
}
