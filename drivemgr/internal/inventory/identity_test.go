package inventory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/identity"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

// id is the id that a drive of an identity gets when it is alone.
func idOf(vendor, model, serial, wwn, sysPath string) (string, string) {
	d := []drivebay.Drive{{Name: "sdq", Identity: drivebay.Identity{Vendor: vendor, Model: model, Serial: serial, WWN: sysfs.UsableWWN(wwn)}, Paths: []drivebay.Path{{Name: "sdq", SysPath: sysPath}}}}
	identity.Assign(d)
	return d[0].ID, d[0].IdentityIssue
}

func TestIDs(t *testing.T) {
	const sata = "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sdq"
	rows := []struct{ vendor, model, serial, wwn, sysPath, want string }{
		{"", "ST4000", "ZA1", "naa.5000C500A1B2C3D4", sata, "naa-5000c500a1b2c3d4"},
		{"", "SAMSUNG", "S5", "eui.36564130525001310025384500000001", sata, "eui-36564130525001310025384500000001"},
		{"", "QEMU", "Q", "uuid.3f4c1d5e-0000-1111-2222-333344445555", sata, "uuid-3f4c1d5e-0000-1111-2222-333344445555"},
		{"ATA", "ST4000", "ZA1", "naa.0000000000000000", sata, "sn-ata-st4000-za1"},
		{"", "ST4000", "ZA1", "naa.5000000000000000", sata, "sn-st4000-za1"},
		{"", "ST4000", "ZA1", "eui.ffffffffffffffff", sata, "sn-st4000-za1"},
		{"", "ST4000", "ZA1", "t10.ATA     ST4000 ZA1", sata, "sn-st4000-za1"},
		{"", "QEMU", "Q1", "nvme.1b36-51-51-00000001", sata, "sn-qemu-q1"},
		{"", "", "Q1", "", sata, "sn-q1"},
		{"", "M", "AbC", "", sata, "sn-m-abc-" + identity.Hash("AbC")},
		{"", "M", "abc", "", sata, "sn-m-abc-" + identity.Hash("abc")},
		{"", "M", "A_B", "", sata, "sn-m-a-b-" + identity.Hash("A_B")},
		{"", "M", "", "", sata, "path-pci0000-00-0000-00-17-0-ata3-0-0-0"},
		{"", "M", "", "", strings.Replace(strings.Replace(sata, "/host2/target2:0:0/2:", "/host7/target7:0:0/7:", 1), "sdq", "sdaa", 1), "path-pci0000-00-0000-00-17-0-ata3-0-0-0"},
		{"", "M", "", "", "sys/devices/pci0000:00/0000:3b:00.0/nvme/nvme4/nvme4n2", "path-pci0000-00-0000-3b-00-0-n2"},
		{"", "M", "", "", "sys/devices/pci0000:00/0000:00:05.0/virtio3/block/vdb", "path-pci0000-00-0000-00-05-0"},
		{"", "M", "", "", "sys/devices/pci0000:3a/0000:3a:00.0/host9/port-9:0/expander-9:0/port-9:0:4/end_device-9:0:4/target9:0:4/9:0:4:0/block/sdq", "path-pci0000-3a-0000-3a-00-0-port-0-expander-0-port-0-4-end-device-0-4-0-4-0"},
		{"", "M", "", "", "sys/devices/virtual/block/loop3", "path-loop3"},
		{"", "M", "", "", "", "path-sdq"},
	}
	for _, r := range rows {
		if got, _ := idOf(r.vendor, r.model, r.serial, r.wwn, r.sysPath); got != r.want {
			t.Errorf("%+v: %s", r, got)
		}
	}
	for _, d := range []drivebay.Drive{{Name: "nvme0n1"}, {Name: "nvme0n2", Namespace: "1"}} { // pulled while it was mounted, and back
		d.Model, d.Serial = "M", "N1"
		if id, _ := identity.Base(&d); id != "sn-m-n1" {
			t.Errorf("%s: %s", d.Name, id)
		}
	}
	for _, serial := range []string{"", "0", "00000000", "0123456789ABCDEF", "123456789", "1234567890", "DEADBEEF", "FFFFFFFF", "none", "N/A", "Serial Number", "XXXXXXXX", "To be filled by O.E.M.", "a\uFFFDb"} {
		if id, issue := idOf("", "M", serial, "", sata); !strings.HasPrefix(id, "path-") || issue == "" {
			t.Errorf("serial %q: %s, issue %q", serial, id, issue)
		}
		if id, issue := idOf("", "M", serial, "naa.5000c500a1b2c3d4", sata); id != "naa-5000c500a1b2c3d4" || issue != "" {
			t.Errorf("serial %q with a worldwide name: %s, issue %q", serial, id, issue)
		}
	}
	for _, long := range []string{strings.Repeat("A", 400), strings.Repeat("-", 400), strings.Repeat("é", 300)} {
		id, _ := idOf("V", long, long, "", sata)
		if !legalID.MatchString(id) || len(id) > 253 {
			t.Errorf("%d characters: %s", len(id), id)
		}
	}
}

func TestTwins(t *testing.T) {
	const same, other = "naa.5000c500a1b2c3d4", "naa.5000c500a1b2c3d5"
	rows := []struct {
		name           string
		a, b           map[string]string
		issue, sameIDs bool
	}{
		{"serial and WWN", map[string]string{"serial": "S1", "wwid": same}, map[string]string{"serial": "S1", "wwid": same}, true, false},
		{"serial, no WWN", map[string]string{"serial": "S1"}, map[string]string{"serial": "S1"}, true, false},
		{"serial only", map[string]string{"serial": "S1", "wwid": same}, map[string]string{"serial": "S1", "wwid": other}, true, false},
		{"WWN only", map[string]string{"serial": "S1", "wwid": same}, map[string]string{"serial": "S2", "wwid": same}, true, false},
		{"serials that differ in case", map[string]string{"serial": "s1"}, map[string]string{"serial": "S1"}, false, false},
		{"no serial and no WWN", map[string]string{}, map[string]string{}, true, false},
		{"a serial of one on models of two", map[string]string{"serial": "S1", "wwid": same, "model": "X"}, map[string]string{"serial": "S1", "wwid": other, "model": "Y"}, false, false},
		{"nothing", map[string]string{"serial": "S1", "wwid": same}, map[string]string{"serial": "S2", "wwid": other}, false, false},
	}
	for _, r := range rows {
		w := hosttest.Tree{}
		w.SATA(1, "sda", r.a)
		w.SATA(2, "sdb", r.b)
		l, drives := listTree(t, w, Options{})
		if len(l.Drives) != 2 {
			t.Errorf("%s: %d drives", r.name, len(l.Drives))
			continue
		}
		a, b := drives["sda"].IdentityIssue, drives["sdb"].IdentityIssue
		if (a != "") != r.issue || (b != "") != r.issue {
			t.Errorf("%s: issues %q and %q", r.name, a, b)
		}
		if r.issue && r.a["serial"] != "" && (!strings.Contains(a, "sdb") || !strings.Contains(b, "sda")) {
			t.Errorf("%s: the issues do not name the other: %q, %q", r.name, a, b)
		}
	}
}

// TestUnitsOfOneDevice are rightly of one serial: namespaces, and the actuators of
// a drive that is two logical units.
func TestUnitsOfOneDevice(t *testing.T) {
	w := hosttest.Tree{}
	ctrl := strings.TrimSuffix(w.NVMe("0000:3b:00.0", 0, nil), "/nvme0n1")
	w[w.Block(ctrl, "nvme0n2", "259:9", map[string]string{"wwid": "eui.3656413052999999"})+"/device"] = "-> " + ctrl
	first := w.SAS(1, 1, "sda", map[string]string{"serial": "DUAL1", "wwid": "naa.5000c500a0000001"})
	dir := strings.TrimSuffix(first, "/1:0:1:0/block/sda") + "/1:0:1:1"
	w.SCSI(dir, "sdb", map[string]string{"serial": "DUAL1", "wwid": "naa.5000c500a0010001"})
	l, _ := listTree(t, w, Options{})
	if names(l) != "nvme0n1 nvme0n2 sda sdb" {
		t.Errorf("drives %q", names(l))
	}
	for _, d := range l.Drives {
		if d.IdentityIssue != "" {
			t.Errorf("%s: %s", d.Name, d.IdentityIssue)
		}
	}
}

// TestIDsOutliveReboots shuffles drives and their kernel names; who a drive is
// must not depend on either.
func TestIDsOutliveReboots(t *testing.T) {
	var drives []drivebay.Drive
	for i := range 40 {
		d := drivebay.Drive{Identity: drivebay.Identity{Model: "M", Serial: fmt.Sprintf("S%d", i/2), Size: uint64(i)}}
		switch i % 5 {
		case 0:
			d.WWN = fmt.Sprintf("naa.5000c5000000%04d", i/10)
		case 1:
			d.Serial = ""
		}
		drives = append(drives, d)
	}
	var first map[uint64]string
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		names := random.Perm(len(drives))
		random.Shuffle(len(drives), func(i, j int) { drives[i], drives[j] = drives[j], drives[i] })
		for i := range drives {
			d, host := &drives[i], names[i]
			d.Name = fmt.Sprintf("sd%c%c", 'a'+host/26, 'a'+host%26)
			d.Paths = []drivebay.Path{{SysPath: fmt.Sprintf("sys/devices/pci0000:00/0000:00:%02x.0/host%d/target%d:0:0/%d:0:0:0/block/%s", d.Size, host, host, host, d.Name)}}
		}
		identity.Assign(drives)
		ids := map[uint64]string{}
		for _, d := range drives {
			ids[d.Size] = d.ID
		}
		checkListing(t, Listing{Drives: drives})
		if round == 0 {
			first = ids
		}
		for size, id := range ids {
			if first[size] != id {
				t.Fatalf("round %d: drive %d is %s, was %s", round, size, id, first[size])
			}
		}
	}
}

func FuzzIdentify(f *testing.F) {
	f.Add("SEAGATE", "ST4000", "ZA1", "naa.5000c500a1b2c3d4", "ZA1", "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda")
	f.Add("", "", "", "eui.", "x-at-00000000", "sys/devices/virtual/block/loop0")
	f.Add("é", "\xff", "---", "naa.0", "A b", "")
	f.Add("", "m", "", "", "", "sys/devices//n1")
	f.Fuzz(func(t *testing.T, vendor, model, serial, wwid, serial2, sysPath string) {
		one := func(name, serial, place string) drivebay.Drive {
			return drivebay.Drive{Name: name, Identity: drivebay.Identity{Vendor: sysfs.Clean(vendor), Model: sysfs.Clean(model), Serial: sysfs.Clean(serial), WWN: sysfs.UsableWWN(sysfs.Clean(wwid))}, Paths: []drivebay.Path{{Name: name, SysPath: place}}}
		}
		drives := []drivebay.Drive{one("sda", serial, sysPath), one("sdb", serial2, sysPath), one("sdc", serial, sysPath+"x"), one("sdd", serial2, "")}
		identity.Assign(drives)
		checkListing(t, Listing{Drives: drives})
		for _, d := range drives {
			if d.WWN == "" && identity.UsableSerial(d.Serial) != "" && d.IdentityIssue == "" {
				t.Errorf("%q is known by nothing and nobody is told", d.ID)
			}
		}
	})
}
