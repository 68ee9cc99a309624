package hardware_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hardware"
	"github.com/drivebay/drivebay/internal/hostsim"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// dmi makes a machine with the files of SMBIOS, behind the link that sysfs has.
func dmi(t *testing.T, fields map[string]string) string {
	t.Helper()
	root := t.TempDir()
	const at = "sys/devices/virtual/dmi/id"
	must(t, os.MkdirAll(filepath.Join(root, at), 0o755))
	must(t, os.MkdirAll(filepath.Join(root, "sys/class/dmi"), 0o755))
	must(t, os.MkdirAll(filepath.Join(root, "sys/block"), 0o755))
	must(t, os.Symlink("../../devices/virtual/dmi/id", filepath.Join(root, "sys/class/dmi/id")))
	for name, text := range fields {
		put(t, root, at+"/"+name, text+"\n")
	}
	return root
}

var acme = map[string]string{
	"sys_vendor": "ACME", "product_name": "R740", "product_version": "2.1", "product_sku": "SKU-0042", "product_serial": "ABC123", "product_uuid": "4c4c4544-0000-1000-8000-000000000000",
	"chassis_type": "23", "chassis_vendor": "ACME", "chassis_serial": "CH77", "chassis_asset_tag": "rack 4, unit 12",
	"board_vendor": "ACME", "board_name": "0X3D66", "board_version": "A07", "board_serial": ".BRD9.",
	"bios_vendor": "ACME", "bios_version": "2.19.1", "bios_date": "06/14/2023",
}

var acmeIs = drivebay.Hardware{
	Vendor: "ACME", Product: "R740", Version: "2.1", SKU: "SKU-0042", Serial: "ABC123",
	Chassis: drivebay.Chassis{Type: "Rack mount chassis", Vendor: "ACME", Serial: "CH77", AssetTag: "rack 4, unit 12"},
	Board:   drivebay.Board{Vendor: "ACME", Product: "0X3D66", Version: "A07", Serial: ".BRD9."},
	BIOS:    drivebay.BIOS{Vendor: "ACME", Version: "2.19.1", Date: "06/14/2023"},
}

// read opens a folder as a real machine and as a recording, which must say the same.
func read(t *testing.T, root string) *drivebay.Hardware {
	t.Helper()
	var all []*drivebay.Hardware
	for _, open := range []func() (host.Machine, error){
		func() (host.Machine, error) { return host.Real(root) },
		func() (host.Machine, error) { return host.Recorded(root) },
	} {
		m, err := open()
		must(t, err)
		h, err := hardware.Read(m)
		must(t, err)
		all = append(all, h)
	}
	real, _ := json.Marshal(all[0])
	if recorded, _ := json.Marshal(all[1]); string(real) != string(recorded) {
		t.Errorf("real %s\nrecorded %s", real, recorded)
	}
	return all[0]
}

func is(t *testing.T, got *drivebay.Hardware, want drivebay.Hardware, server string) {
	t.Helper()
	if got == nil || *got != want || got.Server() != server {
		t.Errorf("%+v\n%s\nwant %+v\n%s", got, got.Server(), want, server)
	}
}

// TestRead: a tree as the kernel of a server shows it, of which ghw prints nothing and takes no part from
// the environment.
func TestRead(t *testing.T) {
	t.Setenv("GHW_CHROOT", dmi(t, map[string]string{"sys_vendor": "other", "product_name": "machine", "product_serial": "XYZ"}))
	t.Setenv("GHW_LOG_LEVEL", "debug")
	printed := capture(t, func() {
		is(t, read(t, dmi(t, acme)), acmeIs, "server ACME R740, serial ABC123")
		if h := read(t, dmi(t, nil)); h != nil {
			t.Errorf("a machine without fields: %+v", h)
		}
	})
	if printed != "" {
		t.Errorf("printed: %s", printed)
	}
}

// capture returns what is written to stderr meanwhile.
func capture(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	was := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = was }()
	f()
	w.Close()
	out, err := io.ReadAll(r)
	must(t, err)
	return string(out)
}

// TestSaysNothing: fields that a vendor did not fill in are left out.
func TestSaysNothing(t *testing.T) {
	fields := map[string]string{
		"sys_vendor": "To Be Filled By O.E.M.", "product_name": "System Product Name", "product_version": "Default string", "product_serial": "0123456789", "product_sku": "to be filled by O.E.M.",
		"chassis_type": "1", "chassis_vendor": "Not Specified", "chassis_serial": "................", "chassis_asset_tag": "Asset-1234567890",
		"board_vendor": "None", "board_name": "N/A", "board_version": "x.x", "board_serial": "00000000",
		"bios_vendor": " ", "bios_version": "\x01\xff", "bios_date": "Unknown",
	}
	if h := read(t, dmi(t, fields)); h != nil {
		t.Errorf("%+v", h)
	}
	fields["product_serial"], fields["chassis_serial"], fields["board_vendor"], fields["board_name"], fields["bios_version"] = "System Serial Number", "C8150LF01", "Supermicro", "X11DPH-T", "3.3"
	is(t, read(t, dmi(t, fields)), drivebay.Hardware{
		Serial: "C8150LF01", Chassis: drivebay.Chassis{Serial: "C8150LF01"}, Board: drivebay.Board{Vendor: "Supermicro", Product: "X11DPH-T"}, BIOS: drivebay.BIOS{Version: "3.3"},
	}, "server Supermicro X11DPH-T, serial C8150LF01")
	for _, vm := range []map[string]string{
		{"sys_vendor": "QEMU", "product_name": "Standard PC (Q35 + ICH9, 2009)", "product_version": "pc-q35-7.2", "chassis_type": "1"},
		{"sys_vendor": "VMware, Inc.", "product_name": "VMware7,1", "product_serial": "VMware-56 4d 01 02"},
		{"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine", "product_serial": "0000-0014-5555"},
	} {
		if h := read(t, dmi(t, vm)); h != nil {
			t.Errorf("a virtual machine: %+v", h)
		}
	}
	// Without root, the numbers cannot be read.
	is(t, read(t, dmi(t, map[string]string{"sys_vendor": "ACME", "product_name": "R740"})), drivebay.Hardware{Vendor: "ACME", Product: "R740"}, "server ACME R740")
	is(t, read(t, dmi(t, map[string]string{"sys_vendor": "HPE", "product_name": "HPE  ProLiant\tDL380\n", "product_serial": strings.Repeat("9Z", 300)})),
		drivebay.Hardware{Vendor: "HPE", Product: "HPE ProLiant DL380", Serial: strings.Repeat("9Z", 46) + "9…"}, "server HPE ProLiant DL380, serial "+strings.Repeat("9Z", 46)+"9…")
}

// TestDeviceTree: a machine without SMBIOS.
func TestDeviceTree(t *testing.T) {
	root := t.TempDir()
	put(t, root, "sys/block/.keep", "")
	for name, text := range map[string]string{"model": "ACME Storage Board\x00", "compatible": "acme,board\x00acme,soc\x00", "serial-number": "DT77\x00", "chassis-type": "server\x00", "chosen/u-boot,version": "2024.01\x00"} {
		put(t, root, "sys/firmware/devicetree/base/"+name, text)
	}
	is(t, read(t, root), drivebay.Hardware{
		Vendor: "acme", Product: "ACME Storage Board", Serial: "DT77", Chassis: drivebay.Chassis{Type: "Main server chassis", Vendor: "acme", Serial: "DT77"},
		Board: drivebay.Board{Vendor: "acme", Product: "ACME Storage Board", Serial: "DT77"}, BIOS: drivebay.BIOS{Vendor: "U-Boot", Version: "2024.01"},
	}, "server ACME Storage Board, serial DT77")
}

// TestRecordingLeadsNowhere: links out of a recording, pipes and huge files in it are not read.
func TestRecordingLeadsNowhere(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, "secret", "SECRET")
	root := dmi(t, map[string]string{"sys_vendor": "ACME", "board_name": strings.Repeat("x1", 4096)})
	id := filepath.Join(root, "sys/devices/virtual/dmi/id")
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(id, "product_name")))
	must(t, os.Symlink("../../../../../../../../../../../../../../"+filepath.Join(outside, "secret"), filepath.Join(id, "product_sku")))
	must(t, syscall.Mkfifo(filepath.Join(id, "product_serial"), 0o644))
	m, err := host.Recorded(root)
	must(t, err)
	h, err := hardware.Read(m)
	must(t, err)
	is(t, h, drivebay.Hardware{Vendor: "ACME"}, "")
}

// TestSimulated: the simulated machine has an identity of its own, and leaves nothing behind.
func TestSimulated(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	m, err := hostsim.New(hostsim.Generate(3))
	must(t, err)
	defer m.Close()
	h, err := hardware.Read(m)
	must(t, err)
	if h.Server() == "" || h.Serial == "" || h.Chassis.Type != "Rack mount chassis" || h.BIOS.Version == "" || h.Board.Product == "" {
		t.Errorf("%+v", h)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func BenchmarkRead(b *testing.B) {
	m, err := hostsim.New(hostsim.Generate(3))
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := hardware.Read(m); err != nil {
			b.Fatal(err)
		}
	}
}
