package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay/internal/host"
)

// source is a small machine with one SATA drive, a partition and a mount.
func source(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	dev := "sys/devices/pci0000:00/ata1/host1/1:0:0:0"
	for name, text := range map[string]string{
		dev + "/vendor": "ATA     \n", dev + "/model": "LABDISK\n", dev + "/wwid": "naa.5000c500a0b1c2d3\n",
		dev + "/vpd_pg80":                      "\x00\x80\x00\x14ZA12QX77            ",
		dev + "/vpd_pg83":                      "\x00\x83\x00\x0c\x01\x03\x00\x08\x50\x00\xc5\x00\xa0\xb1\xc2\xd3",
		dev + "/block/sda/size":                "2048\n",
		dev + "/block/sda/dev":                 "8:0\n",
		dev + "/block/sda/queue/depth":         "0000000000000000\n",
		"run/udev/data/b8:0":                   "S:disk/by-id/ata-LABDISK_ZA12QX77\nE:ID_SERIAL=LABDISK_ZA12QX77\nE:ID_SERIAL_SHORT=ZA12QX77\nE:ID_WWN=0x5000c500a0b1c2d3\nE:ID_FS_UUID=1b4e28ba-2fa1-11d2-883f-0016d3cca427\nE:ID_FS_TYPE=ext4\n",
		"proc/1/mountinfo":                     "1 0 8:0 / / rw - ext4 /dev/disk/by-uuid/1b4e28ba-2fa1-11d2-883f-0016d3cca427 rw\n",
		"sys/devices/virtual/block/loop0/size": "0\n",
		"sys/devices/virtual/block/loop1/size": "8\n",
		dev + "/config":                        "PCI space",
		"etc/hostname":                         "prod-storage-17\n",
		"sys/bus/scsi/drivers_probe":           "",
	} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"sys/block/loop0": "../devices/virtual/block/loop0", "sys/block/loop1": "../devices/virtual/block/loop1",
		"sys/bus/pci/devices/0000:00:17.0": "../../../devices/pci0000:00/ata1",
		"sys/bus/pci/devices/0000:00:18.0": "../../../bus/scsi", // leads to no drive
		dev + "/subsystem":                 "../../../../../bus/scsi",
		"sys/block/sda":                    "../devices/pci0000:00/ata1/host1/1:0:0:0/block/sda",
		dev + "/block/sda/device":          "../../../1:0:0:0",
		"sys/class/block/sda":              "../../devices/pci0000:00/ata1/host1/1:0:0:0/block/sda",
		"sys/class/scsi_device/1:0":        "../../devices/pci0000:00/ata1/host1/1:0:0:0",
	} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, full); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Nothing that names the drive, its data or its host may be left, in any form.
func TestScrubbedRecordingKeepsNoSecret(t *testing.T) {
	m, err := host.Real(source(t))
	if err != nil {
		t.Fatal(err)
	}
	r, err := collect(context.Background(), m, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	identify := make([]byte, 512)
	copy(identify[20:], swapped("            ZA12QX77"))
	wwn, _ := hex.DecodeString("5000c500a0b1c2d3")
	copy(identify[216:], wwn)
	identify[510] = 0xa5
	fixChecksum(identify)
	r.files["pages/sda/ata-identify.bin"] = identify
	r.files["pages/sda/ata-smart-data.bin"] = make([]byte, 512)

	scrubbed := r.scrubbed()
	secrets := [][]byte{[]byte("ZA12QX77"), swapped("ZA12QX77"), []byte("5000c500a0b1c2d3"), wwn, []byte("1b4e28ba"), []byte("0016d3cca427"), []byte("prod-storage-17")}
	for name, b := range scrubbed.files {
		for _, s := range secrets {
			if bytes.Contains(b, s) || strings.Contains(name, string(s)) {
				t.Errorf("%s still holds %q", name, s)
			}
		}
	}
	var sum byte
	for _, c := range scrubbed.files["pages/sda/ata-identify.bin"] {
		sum += c
	}
	if sum != 0 {
		t.Error("the identify page lost its checksum")
	}
	if !bytes.Equal(scrubbed.files["pages/sda/ata-smart-data.bin"], make([]byte, 512)) {
		t.Error("a page without identities was changed")
	}
	if got := string(scrubbed.files["sys/devices/pci0000:00/ata1/host1/1:0:0:0/block/sda/queue/depth"]); got != "0000000000000000\n" {
		t.Errorf("a number was taken for an identity: %q", got)
	}
}

// Every way in which an identity is written down, and next to it what must stay.
func TestScrubbedForms(t *testing.T) {
	vpd83 := "\x00\x83\x00\x30\x01\x03\x00\x08\x50\x00\xc5\x00\xa0\xb1\xc2\xd3\x61\x93\x00\x08\x50\x00\xc5\x00\xa0\xb1\xc2\xd1\x63\xa8\x00\x14naa.5000C500A0B1C2D3\x00"
	lun := strings.Repeat("aB3dE6", 5) + "x1"
	r := &recording{host: "prod-storage-17.example.net", links: map[string]string{}, files: map[string][]byte{}}
	for name, text := range map[string]string{
		"sys/block/sda/device/wwid":                 "t10.ATA     WDC_WD40EFRX-68N32N0                    WD-WCC7K0ABCDEF\n",
		"sys/block/sda/device/model":                "WDC_WD40EFRX-68N32N0\n",
		"sys/block/sda/device/vpd_pg80":             "\x00\x80\x00\x0fWD-WCC7K0ABCDEF",
		"sys/block/sda/queue/io_timeout":            "30000\n",
		"sys/block/sdb/device/vpd_pg80":             "\x00\x80\x00\x0530000",
		"pages/sdb/scsi-vpd-83.bin":                 vpd83,
		"run/udev/data/b8:16":                       "S:disk/by-id/scsi-35000c500a0b1c2d3\nE:ID_SERIAL=35000c500a0b1c2d3\nE:ID_SERIAL_SHORT=5000c500a0b1c2d3\nE:ID_SCSI_SERIAL=30000\n",
		"sys/block/dm-0/dm/uuid":                    "LVM-" + lun + strings.ToUpper(lun) + "\n",
		"sys/block/dm-0/dm/name":                    "prod--storage--17-root\n",
		"sys/block/dm-1/dm/uuid":                    "CRYPT-LUKS2-1b4e28ba2fa111d2883f0016d3cca427-crypt\n",
		"commands/lvm fullreport.txt":               `{"vg_uuid":"` + lun[:6] + "-" + lun[6:10] + "-" + lun[10:14] + "-" + lun[14:18] + "-" + lun[18:22] + "-" + lun[22:26] + "-" + lun[26:] + `"}`,
		"sys/class/nvme/nvme0/serial":               "S4EVNX0R123456      \n",
		"sys/block/nvme0n1/wwid":                    "nvme.144d-" + hex.EncodeToString([]byte("S4EVNX0R123456")) + "-53616d73756e67-00000001\n",
		"sys/block/nvme0n1/eui":                     "00 25 38 5b 71 b0 12 34\n",
		"pages/nvme0n1/nvme-identify-namespace.bin": strings.Repeat("\x00", 120) + "\x00\x25\x38\x5b\x71\xb0\x12\x34",
		"pages/sdc/ata-identify.bin":                strings.Repeat("\x00", 20) + string(swapped("             BRIDGED")) + strings.Repeat(" ", 472),
	} {
		r.files[name] = []byte(text)
	}
	out := r.scrubbed()
	for name, b := range out.files {
		for _, secret := range []string{"WCC7K0", "\xa0\xb1\xc2", "a0b1c2d3", "A0B1C2D3", lun, strings.ToUpper(lun), lun[:6] + "-", "storage", "1b4e28ba", "S4EVNX",
			hex.EncodeToString([]byte("S4EVNX")), "5b 71 b0", "\x5b\x71\xb0", "RBDIEG", string(swapped(" BRIDGED"))} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s still holds %q: %q", name, secret, b)
			}
		}
	}
	for name, want := range map[string]string{
		"sys/block/sda/device/model": "WDC_WD40EFRX-68N32N0\n", "sys/block/sda/device/wwid": "t10.ATA     WDC_WD40EFRX-68N32N0 ",
		"sys/block/sda/queue/io_timeout": "30000\n", "sys/block/dm-0/dm/uuid": "LVM-", "sys/block/dm-1/dm/uuid": "CRYPT-LUKS2-", "sys/block/nvme0n1/wwid": "nvme.144d-",
	} {
		if !strings.HasPrefix(string(out.files[name]), want) {
			t.Errorf("%s reads %q, want %q", name, out.files[name], want)
		}
	}
	serial := string(out.files["sys/block/sdb/device/vpd_pg80"][4:])
	if udev := string(out.files["run/udev/data/b8:16"]); serial == "30000" || !strings.Contains(udev, "ID_SCSI_SERIAL="+serial+"\n") {
		t.Errorf("short serial %q is not that of udev: %s", serial, udev)
	}
	if wwid := string(out.files["sys/block/nvme0n1/wwid"]); !strings.Contains(wwid, hex.EncodeToString(bytes.TrimSpace(out.files["sys/class/nvme/nvme0/serial"]))) {
		t.Errorf("the serial in %q is not that of the controller", wwid)
	}
	if len(r.files) != len(out.files) || len(out.files["pages/sdb/scsi-vpd-83.bin"]) != len(vpd83) {
		t.Error("something changed its length or went")
	}
}

// What belongs together still does, and the recording opens as a machine.
func TestRecordingReadsBack(t *testing.T) {
	out := filepath.Join(t.TempDir(), "rec")
	if err := run(context.Background(), source(t), out, true); err != nil {
		t.Fatal(err)
	}
	m, err := host.Recorded(out)
	if err != nil {
		t.Fatal(err)
	}
	udev, err := m.ReadFile("run/udev/data/b8:0")
	if err != nil {
		t.Fatal(err)
	}
	serial, err := m.ReadFile("sys/block/sda/device/vpd_pg80")
	if err != nil {
		t.Fatal(err)
	}
	if s := strings.TrimSpace(string(serial[4:])); len(s) != len("ZA12QX77") || !strings.Contains(string(udev), "ID_SERIAL_SHORT="+s+"\n") {
		t.Errorf("serial %q is not that of udev:\n%s", s, udev)
	}
	wwid, _ := m.ReadFile("sys/block/sda/device/wwid")
	if digits := strings.TrimSpace(strings.TrimPrefix(string(wwid), "naa.")); !strings.Contains(string(udev), "ID_WWN=0x"+digits+"\n") {
		t.Errorf("worldwide name %q is not that of udev:\n%s", wwid, udev)
	}
	if got, err := m.ReadFile("sys/block/sda/size"); err != nil || string(got) != "2048\n" {
		t.Errorf("size %q, %v", got, err)
	}
	for link, want := range map[string]string{"sys/bus/pci/devices/0000:00:17.0": "sys/devices/pci0000:00/ata1", "sys/block/sda/device/subsystem": "sys/bus/scsi"} {
		if got, err := m.Resolve(link); err != nil || got != want {
			t.Errorf("%s leads to %q, %v", link, got, err)
		}
	}
	if names, err := m.ReadDir("sys/block"); err != nil || strings.Join(names, " ") != "loop1 sda" {
		t.Errorf("block devices %q, %v", names, err)
	}
	if _, err := m.Readlink("sys/bus/pci/devices/0000:00:18.0"); err == nil {
		t.Error("a device without drives was recorded")
	}
	if _, err := m.ReadFile("sys/block/sda/device/config"); err == nil {
		t.Error("PCI configuration space was recorded")
	}
	if err := run(context.Background(), source(t), out, true); err == nil {
		t.Error("an older recording was overwritten")
	}
	if err := run(context.Background(), t.TempDir(), filepath.Join(t.TempDir(), "x"), true); err == nil {
		t.Error("an empty machine was recorded")
	}
	if _, err := os.Stat(filepath.Join(out, "etc")); !os.IsNotExist(err) {
		t.Errorf("more was recorded than the drives: %v", err)
	}
}

// Pages come from drives, and recordings from strangers.
func FuzzIdentities(f *testing.F) {
	f.Add("scsi-vpd-83.bin", []byte("\x00\x83\x00\x0c\x01\x03\x00\x08\x50\x00\xc5\x00\xa0\xb1\xc2\xd3"))
	f.Add("ata-identify.bin", make([]byte, 512))
	f.Add("vpd_pg80", []byte("\x00\x80\x00\xffABC"))
	f.Add("wwid", []byte("t10.ATA     MODEL   SERIAL7\n"))
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		r := &recording{host: "host-1", files: map[string][]byte{"pages/sda/" + name: b}}
		for _, got := range r.scrubbed().files {
			if len(got) != len(b) {
				t.Errorf("%d bytes became %d", len(b), len(got))
			}
		}
	})
}
