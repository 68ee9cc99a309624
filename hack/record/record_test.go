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
		dev + "/vpd_pg80":              "\x00\x80\x00\x14ZA12QX77            ",
		dev + "/vpd_pg83":              "\x00\x83\x00\x0c\x01\x03\x00\x08\x50\x00\xc5\x00\xa0\xb1\xc2\xd3",
		dev + "/block/sda/size":        "2048\n",
		dev + "/block/sda/dev":         "8:0\n",
		dev + "/block/sda/queue/depth": "0000000000000000\n",
		"run/udev/data/b8:0":           "S:disk/by-id/ata-LABDISK_ZA12QX77\nE:ID_SERIAL=LABDISK_ZA12QX77\nE:ID_SERIAL_SHORT=ZA12QX77\nE:ID_WWN=0x5000c500a0b1c2d3\nE:ID_FS_UUID=1b4e28ba-2fa1-11d2-883f-0016d3cca427\nE:ID_FS_TYPE=ext4\n",
		"proc/1/mountinfo":             "1 0 8:0 / / rw - ext4 /dev/disk/by-uuid/1b4e28ba-2fa1-11d2-883f-0016d3cca427 rw\n",
		"etc/hostname":                 "prod-storage-17\n",
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
		"sys/block/sda":             "../devices/pci0000:00/ata1/host1/1:0:0:0/block/sda",
		dev + "/block/sda/device":   "../../../1:0:0:0",
		"sys/class/block/sda":       "../../devices/pci0000:00/ata1/host1/1:0:0:0/block/sda",
		"sys/class/scsi_device/1:0": "../../devices/pci0000:00/ata1/host1/1:0:0:0",
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
