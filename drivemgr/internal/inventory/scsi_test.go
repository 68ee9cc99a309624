package inventory

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

// ataPage is VPD page 89h with the identify data of a drive (SAT-4 12.4.2).
func ataPage(model, serial, firmware string, wwn uint64) string {
	page := make([]byte, 572)
	copy(page, "\x00\x89\x02\x38")
	id := page[60:]
	text := func(word, words int, s string) {
		s += strings.Repeat(" ", 2*words-len(s))
		for i := 0; i < 2*words; i += 2 {
			id[2*word+i], id[2*word+i+1] = s[i+1], s[i]
		}
	}
	text(10, 10, serial)
	text(23, 4, firmware)
	text(27, 20, model)
	for i := range 4 {
		binary.LittleEndian.PutUint16(id[2*(108+i):], uint16(wwn>>(48-16*i)))
	}
	return string(page)
}

func TestWhatSCSIDevicesSay(t *testing.T) {
	const naa, eui = "\x61\x93\x00\x08\x60\x00\x00\x00\x00\x00\x00\x01", "\x01\x02\x00\x08\x00\x25\x38\x55\x00\x00\x00\x01" // of the port; of the unit
	const unit = "\x01\x03\x00\x08\x50\x00\xc5\x00\xaa\xaa\xbb\xbb"
	rows := []struct {
		name  string
		attrs map[string]string
		want  drivebay.Identity
		kind  drivebay.Type
		id    string
	}{
		{"identify data in page 89h",
			map[string]string{"model": "ST18000NM000J-2T", "rev": "SN02", "vpd_pg89": ataPage("ST18000NM000J-2TV103", "ZR5ABCDE", "SN020001", 0x5000c500e1f2a3b4), "vpd_pgb1": "\x00\xb1\x00\x3c\x1c\x20"},
			drivebay.Identity{Model: "ST18000NM000J-2TV103", Serial: "ZR5ABCDE", Firmware: "SN020001", WWN: "naa.5000c500e1f2a3b4", RPM: 7200}, drivebay.TypeHDD, "naa-5000c500e1f2a3b4"},
		{"the kernel's choice before the page", map[string]string{"vpd_pg89": ataPage("M", "S1", "F", 0x5000000000000001), "wwid": "naa.5000c500a1b2c3d4\n"},
			drivebay.Identity{Model: "M", Serial: "S1", Firmware: "F", WWN: "naa.5000c500a1b2c3d4"}, drivebay.TypeHDD, "naa-5000c500a1b2c3d4"},
		{"page 83h, no wwid", map[string]string{"serial": "S1", "vpd_pg83": "\x00\x83\x00\x24" + naa + eui + unit},
			drivebay.Identity{Model: "ST18000NM004J", Serial: "S1", Firmware: "E004", WWN: "naa.5000c500aaaabbbb"}, drivebay.TypeHDD, "naa-5000c500aaaabbbb"},
		{"page 83h with an EUI only", map[string]string{"serial": "S1", "vpd_pg83": "\x00\x83\x00\x0c" + eui},
			drivebay.Identity{Model: "ST18000NM004J", Serial: "S1", Firmware: "E004", WWN: "eui.0025385500000001"}, drivebay.TypeHDD, "eui-0025385500000001"},
		{"page 83h cut off", map[string]string{"serial": "S1", "vpd_pg83": ("\x00\x83\x00\x0c" + unit)[:12]},
			drivebay.Identity{Model: "ST18000NM004J", Serial: "S1", Firmware: "E004"}, drivebay.TypeHDD, "sn-st18000nm004j-s1"},
		{"a serial in a t10 name only", map[string]string{"wwid": "t10.ATA     QEMUATA                                 ATASER1             \n"},
			drivebay.Identity{Model: "ST18000NM004J", Serial: "ATASER1", Firmware: "E004"}, drivebay.TypeHDD, "sn-st18000nm004j-ataser1"},
		{"a page of garbage", map[string]string{"serial": "S1", "vpd_pg89": "\xff\xff", "vpd_pg83": "\xff\xff\xff\xff", "vpd_pgb1": "\xff", "block/queue/rotational": "0"},
			drivebay.Identity{Model: "ST18000NM004J", Serial: "S1", Firmware: "E004"}, drivebay.TypeSSD, "sn-st18000nm004j-s1"},
	}
	for _, r := range rows {
		w := hosttest.Tree{}
		w.SATA(1, "sda", r.attrs)
		_, drives := listTree(t, w, Options{})
		d := drives["sda"]
		r.want.Size = d.Size
		if d.Identity != r.want || d.Type != r.kind || d.ID != r.id {
			t.Errorf("%s: %+v %v %s, want %+v %v %s", r.name, d.Identity, d.Type, d.ID, r.want, r.kind, r.id)
		}
		// With a udev database the drive is the same drive, and keeps its id.
		w["run/udev/data/b8:0"] = "E:ID_MODEL_ENC=" + d.Model + "-WITH-A-LONG-TAIL\nE:ID_REVISION=XX" + d.Firmware + "\nE:ID_SERIAL_SHORT=5000c500aaaabbbb\nE:ID_WWN=0x5000c500aaaabbbb\n"
		if d.WWN == "" { // here udev knows more than sysfs, which is another matter
			w["run/udev/data/b8:0"] = "E:ID_MODEL_ENC=" + d.Model + "\nE:ID_ATA_ROTATION_RATE_RPM=7200\n"
		}
		_, again := listTree(t, w, Options{})
		if e := again["sda"]; e.ID != d.ID || e.Serial != d.Serial {
			t.Errorf("%s, with udev: %s %q, was %s %q", r.name, e.ID, e.Serial, d.ID, d.Serial)
		}
	}
}

// TestUSB reads what is behind a bridge: a serial from the USB device where the
// bridge translates no page, and an ATA drive where it does.
func TestUSB(t *testing.T) {
	const device = "sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1.4"
	const target = device + "/2-1.4:1.0/host6/target6:0:0/"
	w := hosttest.Tree{device + "/serial": "MSFT30NA7QXXXX\n"}
	w.SCSI(target+"6:0:0:0", "sda", map[string]string{"vendor": "Generic ", "model": "MassStorageClass", "block/removable": "1"})
	w.SCSI(target+"6:0:0:1", "sdb", map[string]string{"vendor": "Generic ", "model": "MassStorageClass", "block/removable": "1"})
	w.SCSI(strings.ReplaceAll(target, "2-1.4", "2-2")+"6:0:0:0", "sdc", map[string]string{"vendor": "JMicron ", "serial": "0123456789ABCDEF", "vpd_pg89": ataPage("ST4000LM024-2AN17V", "WCK12345", "0001", 0)})
	_, drives := listTree(t, w, Options{})
	for name, want := range map[string]string{
		"sda": "sn-generic-massstorageclass-msft30na7qxxxx scsi ", "sdb": "sn-generic-massstorageclass-msft30na7qxxxx-lun1 scsi ",
		"sdc": "sn-jmicron-st4000lm024-2an1-wck12345 ata ",
	} {
		d := drives[name]
		if got := d.ID + " " + d.Protocol.String() + " " + d.IdentityIssue; got != want || d.Transport != drivebay.TransportUSB || d.Type != drivebay.TypeUnknown {
			t.Errorf("%s: %q %v %v, want %q", name, got, d.Transport, d.Type, want)
		}
	}
}

func TestNVMeNames(t *testing.T) {
	w := hosttest.Tree{}
	w.NVMe("0000:3b:00.0", 0, map[string]string{"block/wwid": "eui.36413052525001310025384500000001"})
	at := w.NVMe("0000:3c:00.0", 1, nil)
	delete(w, at+"/wwid") // before 4.13
	w[at+"/nguid"], w[at+"/eui"] = "00000000-0000-0000-0000-000000000000\n", "00 25 38 55 00 00 00 01\n"
	third := strings.TrimSuffix(w.NVMe("0000:3d:00.0", 2, map[string]string{"block/wwid": "nvme.144d-5335-00000001"}), "/nvme2n1")
	w[w.Block(third, "nvme2n2", "259:8", map[string]string{"wwid": "nvme.144d-5335-00000002"})+"/device"] = "-> " + third
	_, drives := listTree(t, w, Options{})
	for name, want := range map[string]string{
		"nvme0n1": "nguid-36413052525001310025384500000001", "nvme1n1": "eui-0025385500000001",
		"nvme2n1": "sn-samsung-mzwlr3t8-s5xana0r2", "nvme2n2": "sn-samsung-mzwlr3t8-s5xana0r2-n2",
	} {
		if d := drives[name]; d.ID != want || d.IdentityIssue != "" {
			t.Errorf("%s: %s %q, want %s", name, d.ID, d.IdentityIssue, want)
		}
	}
}
