package drivemgr

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// tree is a sysfs that a test draws: name -> content, or "-> target" for a link
// (from the root of the tree), or "/" for an empty folder.
type tree map[string]string

// block adds a block device below dir ("sys/devices/..."), with its links.
func (t tree) block(dir, name, devnum string, attrs map[string]string) string {
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

// partition adds a partition to a block device.
func (t tree) partition(disk, name, devnum string) string {
	at := disk + "/" + name
	t[at+"/partition"], t[at+"/dev"], t[at+"/size"] = "1\n", devnum+"\n", "2048\n"
	t["sys/class/block/"+name] = "-> " + at
	return at
}

// scsi adds a SCSI disk whose device is at dir, which ends in H:C:T:L.
func (t tree) scsi(dir, name string, attrs map[string]string) string {
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
	at := t.block(dir+"/block", name, "8:"+strconv.Itoa((minor-1)*16), blockAttrs)
	t[at+"/device"] = "-> " + dir
	return at
}

// sata and sas are usual places of a SCSI disk.
func (t tree) sata(port int, name string, attrs map[string]string) string {
	n := strconv.Itoa(port)
	all := map[string]string{"vendor": "ATA     ", "vpd_pg89": "x"}
	maps.Copy(all, attrs)
	return t.scsi("sys/devices/pci0000:00/0000:00:17.0/ata"+n+"/host"+n+"/target"+n+":0:0/"+n+":0:0:0", name, all)
}

func (t tree) sas(hostNo, port int, name string, attrs map[string]string) string {
	h, n := strconv.Itoa(hostNo), strconv.Itoa(port)
	dir := "sys/devices/pci0000:3a/0000:3a:00." + h + "/host" + h + "/port-" + h + ":0/expander-" + h + ":0/port-" + h + ":0:" + n + "/end_device-" + h + ":0:" + n + "/target" + h + ":0:" + n + "/" + h + ":0:" + n + ":0"
	all := map[string]string{"sas_address": "0x5000c50000000001"}
	maps.Copy(all, attrs)
	return t.scsi(dir, name, all)
}

// nvme adds a controller with one namespace that the kernel does no multipath for.
func (t tree) nvme(pci string, n int, attrs map[string]string) string {
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
	at := t.block(ctrl, name+"n1", "259:"+strconv.Itoa(n), blockAttrs)
	t[at+"/device"] = "-> " + ctrl
	return at
}

// dm adds a device-mapper device on top of others.
func (t tree) dm(n int, name, uuid string, below ...string) string {
	dev := "dm-" + strconv.Itoa(n)
	at := t.block("sys/devices/virtual/block", dev, "253:"+strconv.Itoa(n), map[string]string{"dm/name": name, "dm/uuid": uuid})
	t.hold(dev, below...)
	return at
}

func (t tree) hold(holder string, below ...string) {
	for _, b := range below {
		t[b+"/holders/"+holder] = "-> sys/devices/virtual/block/" + holder
	}
}

// write puts the tree below a folder.
func (t tree) write(tb testing.TB, dir string) {
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

// machine is the tree as a recording.
func (t tree) machine(tb testing.TB) host.Machine {
	tb.Helper()
	dir := tb.TempDir()
	t.write(tb, dir)
	m, err := host.Recorded(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// observe lists the drives of the tree, by name.
func (t tree) observe(tb testing.TB, opt InventoryOptions, mounts ...host.Mount) (Listing, map[string]drivebay.Drive) {
	tb.Helper()
	l := Observe(t.machine(tb), mounts, opt)
	checkListing(tb, l)
	return l, byName(l)
}

func byName(l Listing) map[string]drivebay.Drive {
	m := map[string]drivebay.Drive{}
	for _, d := range l.Drives {
		m[d.Name] = d
	}
	return m
}

// uses are the uses of a drive, as kind:device:what.
func uses(d drivebay.Drive) string {
	var out []string
	for _, u := range d.Uses {
		out = append(out, strings.TrimRight(u.Kind+":"+u.Device+":"+u.What, ":"))
	}
	return strings.Join(out, " ")
}

func names(l Listing) string {
	var out []string
	for _, d := range l.Drives {
		out = append(out, d.Name)
	}
	return strings.Join(out, " ")
}
