package inventory

import (
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/sysfs"
)

// scsiDisks holds the peripheral device types that are drives (SPC-5 table 150):
// direct access, optical memory, simplified direct access, host-managed zoned.
var scsiDisks = map[string]bool{"0": true, "7": true, "14": true, "20": true, "": true}

func readSCSI(s *sysfs.Reader, path string, d *drivebay.Drive) bool {
	dev := path + "/device"
	if !scsiDisks[s.Text(dev+"/type")] {
		return false
	}
	d.Vendor, d.Model, d.Firmware = s.Text(dev+"/vendor"), s.Text(dev+"/model"), s.Text(dev+"/rev")
	d.Serial = s.SerialPage(dev + "/vpd_pg80")
	readWWID(s, dev, d)
	at := &d.Paths[0]
	at.State, at.Address = s.Text(dev+"/state"), scsiAddress.FindString(path)
	if at.Address == "" { // a recording without the tree above the device
		at.Address = s.Base(dev)
	}
	d.Protocol = drivebay.ProtocolSCSI
	// A translator puts "ATA" in the vendor field (SAT-4 10.3.2). USB bridges put their
	// maker there; VPD page 89h shows the ATA drive behind a bridge. On other transports
	// the page proves nothing: scsi_debug has it and knows no ATA.
	if usb := d.Transport == drivebay.TransportUSB; d.Vendor == "ATA" || usb {
		page, ok := s.Read(dev + "/vpd_pg89")
		if ok || !usb {
			d.Protocol = drivebay.ProtocolATA
			completeATA(d, page)
		}
	}
	if d.Vendor == "ATA" {
		d.Vendor = ""
	}
	switch {
	case d.Protocol == drivebay.ProtocolATA && d.Transport == drivebay.TransportSAS:
		d.Transport = drivebay.TransportSATA
	case d.Transport == drivebay.TransportSCSI && s.Exists(dev+"/sas_address"):
		d.Transport = drivebay.TransportSAS
	}
	if d.Serial == "" && d.Transport == drivebay.TransportUSB {
		d.Serial = s.Text(usbDevice.FindString(path) + "serial")
	}
	s.ReadMedium(path, d)
	return true
}

// scsiAddress matches the H:C:T:L among the folders above a disk.
var scsiAddress = regexp.MustCompile(`\b\d+:\d+:\d+:\d+\b`)

// usbDevice matches the folder of the USB device above a disk, before its interface.
var usbDevice = regexp.MustCompile(`^.*/usb\d+(?:/\d+-[0-9.]+)+/`)

// readWWID reads the worldwide name that the kernel chose; without one, as on kernels
// before 3.15, it chooses among the designators itself.
func readWWID(s *sysfs.Reader, dev string, d *drivebay.Drive) {
	wwid, ok := s.Read(dev + "/wwid")
	text := string(wwid)
	d.WWN = sysfs.UsableWWN(sysfs.Clean(text))
	if !ok {
		page, _ := s.Read(dev + "/vpd_pg83")
		d.WWN = sysfs.UsableWWN(designator(page))
	}
	// A name of the form t10.VENDOR MODEL SERIAL is no worldwide name, but may hold the
	// only serial.
	if f := strings.Fields(sysfs.Clean(text)); d.Serial == "" && strings.HasPrefix(text, "t10.") && len(f) >= 3 {
		d.Serial = f[len(f)-1]
	}
}

// designator returns the logical unit's NAA or EUI in VPD page 83h (SPC-5 7.7.6).
// The longest NAA wins, as in the kernel.
func designator(page []byte) string {
	if len(page) < 4 || page[1] != 0x83 {
		return ""
	}
	best, kinds := "", map[byte]string{2: "eui.", 3: "naa."}
	for d := page[4:]; len(d) >= 4 && len(d) >= 4+int(d[3]); d = d[4+int(d[3]):] {
		codes, association, kind := d[0]&0x0f, d[1]>>4&3, kinds[d[1]&0x0f]
		if codes != 1 || association != 0 || kind == "" { // want binary, of the logical unit
			continue
		}
		id := kind + hex.EncodeToString(d[4:4+int(d[3])])
		if best == "" || (kind == "naa." && (best[:4] != kind || len(id) > len(best))) {
			best = id
		}
	}
	return best
}

// completeATA reads the drive's own identify data from VPD page 89h: the whole model,
// where INQUIRY has room for 16 characters, serial, firmware and worldwide name.
func completeATA(d *drivebay.Drive, page []byte) {
	const identify = 60 // SAT-4 12.4.2: offset of the identify data
	if len(page) < identify+512 || page[1] != 0x89 {
		return
	}
	id := page[identify:]
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(id[2*n:]) }
	text := func(from, to int) string { // the two characters of a word are swapped, ACS-4 3.3.10
		var b []byte
		for n := from; n <= to; n++ {
			b = append(b, id[2*n+1], id[2*n])
		}
		return sysfs.Clean(string(b))
	}
	for _, f := range []struct {
		into     *string
		from, to int
	}{{&d.Serial, 10, 19}, {&d.Firmware, 23, 26}, {&d.Model, 27, 46}} {
		if t := text(f.from, f.to); t != "" {
			*f.into = t
		}
	}
	if w := word(108); d.WWN == "" && w>>12 == 5 { // NAA 5h; word 87 bit 8 announces it
		var b []byte
		for n := 108; n <= 111; n++ {
			b = binary.BigEndian.AppendUint16(b, word(n))
		}
		d.WWN = sysfs.UsableWWN("naa." + hex.EncodeToString(b))
	}
}
