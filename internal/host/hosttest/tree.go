package hosttest

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/internal/host"
)

// Tree is a sysfs that a test builds: name -> content, or "-> target" for a link
// (from the root of the tree), or "/" for an empty folder.
type Tree map[string]string

// Block adds a block device below dir ("sys/devices/..."), with its links.
func (t Tree) Block(dir, name, devnum string, attrs map[string]string) string {
	at := dir + "/" + name
	all := map[string]string{"size": "4194304", "dev": devnum, "ro": "0", "removable": "0", "queue/rotational": "1", "queue/logical_block_size": "512", "queue/physical_block_size": "4096"}
	maps.Copy(all, attrs)
	for k, v := range all {
		t[at+"/"+k] = v + "\n"
	}
	t["sys/block/"+name] = "-> " + at
	t["sys/class/block/"+name] = "-> " + at
	return at
}

// Partition adds a partition to a block device.
func (t Tree) Partition(disk, name, devnum string) string {
	at := disk + "/" + name
	t[at+"/partition"], t[at+"/dev"], t[at+"/size"] = "1\n", devnum+"\n", "2048\n"
	t["sys/class/block/"+name] = "-> " + at
	return at
}

// SCSI adds a SCSI disk whose device is at dir, which ends in H:C:T:L.
func (t Tree) SCSI(dir, name string, attrs map[string]string) string {
	all := map[string]string{"vendor": "SEAGATE ", "model": "ST18000NM004J", "rev": "E004", "type": "0", "state": "running", "queue_depth": "32"}
	blockAttrs := map[string]string{}
	for k, v := range attrs {
		if strings.HasPrefix(k, "block/") {
			blockAttrs[strings.TrimPrefix(k, "block/")] = v
		} else {
			all[k] = v
		}
	}
	if serial, ok := all["serial"]; ok {
		delete(all, "serial")
		all["vpd_pg80"] = "\x00\x80\x00" + string(rune(len(serial))) + serial
	}
	for k, v := range all {
		t[dir+"/"+k] = v
	}
	minor := 0
	for _, c := range strings.TrimPrefix(name, "sd") {
		minor = minor*26 + int(c-'a') + 1
	}
	at := t.Block(dir+"/block", name, "8:"+strconv.Itoa((minor-1)*16), blockAttrs)
	t[at+"/device"] = "-> " + dir
	return at
}

// SATA and sas are usual places of a SCSI disk.
func (t Tree) SATA(port int, name string, attrs map[string]string) string {
	n := strconv.Itoa(port)
	all := map[string]string{"vendor": "ATA     ", "vpd_pg89": "x"}
	maps.Copy(all, attrs)
	return t.SCSI("sys/devices/pci0000:00/0000:00:17.0/ata"+n+"/host"+n+"/target"+n+":0:0/"+n+":0:0:0", name, all)
}

// SAS adds a disk at a port of an expander.
func (t Tree) SAS(hostNo, port int, name string, attrs map[string]string) string {
	h, n := strconv.Itoa(hostNo), strconv.Itoa(port)
	dir := "sys/devices/pci0000:3a/0000:3a:00." + h + "/host" + h + "/port-" + h + ":0/expander-" + h + ":0/port-" + h + ":0:" + n + "/end_device-" + h + ":0:" + n + "/target" + h + ":0:" + n + "/" + h + ":0:" + n + ":0"
	all := map[string]string{"sas_address": "0x5000c50000000001"}
	maps.Copy(all, attrs)
	return t.SCSI(dir, name, all)
}

// NVMe adds a controller with one namespace that the kernel does no multipath for.
func (t Tree) NVMe(pci string, n int, attrs map[string]string) string {
	name := "nvme" + strconv.Itoa(n)
	ctrl := "sys/devices/pci0000:3a/" + pci + "/nvme/" + name
	all := map[string]string{"model": "SAMSUNG MZWLR3T8", "serial": "S5XANA0R" + strconv.Itoa(n), "firmware_rev": "MPK94R5Q", "state": "live", "address": pci}
	blockAttrs := map[string]string{"wwid": "eui.3656413052" + strconv.Itoa(100000+n), "queue/rotational": "0"}
	for k, v := range attrs {
		if strings.HasPrefix(k, "block/") {
			blockAttrs[strings.TrimPrefix(k, "block/")] = v
		} else {
			all[k] = v
		}
	}
	for k, v := range all {
		t[ctrl+"/"+k] = v + "\n"
	}
	t["sys/class/nvme/"+name] = "-> " + ctrl
	t["sys/bus/pci/devices/"+pci] = "-> sys/devices/pci0000:3a/" + pci
	at := t.Block(ctrl, name+"n1", "259:"+strconv.Itoa(n), blockAttrs)
	t[at+"/device"] = "-> " + ctrl
	return at
}

// DM adds a device-mapper device on top of others.
func (t Tree) DM(n int, name, uuid string, below ...string) string {
	dev := "dm-" + strconv.Itoa(n)
	at := t.Block("sys/devices/virtual/block", dev, "253:"+strconv.Itoa(n), map[string]string{"dm/name": name, "dm/uuid": uuid})
	t.Hold(dev, below...)
	return at
}

// Hold makes a device the holder of others.
func (t Tree) Hold(holder string, below ...string) {
	for _, b := range below {
		t[b+"/holders/"+holder] = "-> sys/devices/virtual/block/" + holder
	}
}

// Write puts the tree below a folder.
func (t Tree) Write(tb testing.TB, dir string) {
	tb.Helper()
	check := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(dir, "sys/block"), 0o755))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		full := filepath.Join(dir, name)
		check(os.MkdirAll(filepath.Dir(full), 0o755))
		target, link := strings.CutPrefix(t[name], "-> ")
		switch {
		case link:
			rel, err := filepath.Rel(path.Dir(name), target)
			check(err)
			check(os.Symlink(rel, full))
		case t[name] == "/":
			check(os.MkdirAll(full, 0o755))
		default:
			check(os.WriteFile(full, []byte(t[name]), 0o644))
		}
	}
}

// Machine is the tree as a recording.
func (t Tree) Machine(tb testing.TB) host.Machine {
	tb.Helper()
	dir := tb.TempDir()
	t.Write(tb, dir)
	m, err := host.Recorded(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// Mount is a mount of a whole filesystem.
func Mount(devnum, target, fs, source string) host.Mount {
	return host.Mount{DevNum: devnum, Target: target, FS: fs, Source: source, Root: "/"}
}
