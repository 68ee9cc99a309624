package drivemgr

import (
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/drivebay/drivebay"
)

// scsiDisks are the peripheral device types that are drives (SPC-5 table 150):
// direct access, optical memory, simplified direct access, host-managed zoned.
var scsiDisks = map[string]bool{"0": true, "7": true, "14": true, "20": true, "": true}

func readSCSI(s *sysfs, path string, d *drivebay.Drive) bool {
	dev := path + "/device"
	if !scsiDisks[s.text(dev+"/type")] {
		return false
	}
	d.Vendor, d.Model, d.Firmware = s.text(dev+"/vendor"), s.text(dev+"/model"), s.text(dev+"/rev")
	d.Serial = s.serialPage(dev + "/vpd_pg80")
	s.readWWID(dev, d)
	at := &d.Paths[0]
	at.State, at.Address = s.text(dev+"/state"), scsiAddress.FindString(path)
	if at.Address == "" { // a copy that has lost the tree above the device
		at.Address = s.base(dev)
	}
	d.Protocol = drivebay.ProtocolSCSI
	// A translator puts "ATA" in the vendor field (SAT-4 10.3.2). USB bridges put
	// their maker there; VPD page 89h is their word for a drive behind them. On
	// other wires the page proves nothing: scsi_debug has it and knows no ATA.
	if usb := d.Transport == drivebay.TransportUSB; d.Vendor == "ATA" || usb {
		page, ok := s.read(dev + "/vpd_pg89")
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
	case d.Transport == drivebay.TransportSCSI && s.exists(dev+"/sas_address"):
		d.Transport = drivebay.TransportSAS
	}
	if d.Serial == "" && d.Transport == drivebay.TransportUSB {
		d.Serial = s.text(usbDevice.FindString(path) + "serial")
	}
	s.readMedium(path, d)
	return true
}

// scsiAddress is the H:C:T:L among the folders above a disk.
var scsiAddress = regexp.MustCompile(`\b\d+:\d+:\d+:\d+\b`)

// usbDevice is the folder of the USB device above a disk, before its interface.
var usbDevice = regexp.MustCompile(`^.*/usb\d+(?:/\d+-[0-9.]+)+/`)

// readWWID takes the name that the kernel chose of the drive's, else chooses
// among the designators itself, as kernels before 3.15 do not.
func (s *sysfs) readWWID(dev string, d *drivebay.Drive) {
	wwid, ok := s.read(dev + "/wwid")
	text := string(wwid)
	d.WWN = usableWWN(clean(text))
	if !ok {
		page, _ := s.read(dev + "/vpd_pg83")
		d.WWN = usableWWN(designator(page))
	}
	// A name of the form t10.VENDOR MODEL SERIAL is no worldwide name, but may be
	// all there is of a serial.
	if f := strings.Fields(clean(text)); d.Serial == "" && strings.HasPrefix(text, "t10.") && len(f) >= 3 {
		d.Serial = f[len(f)-1]
	}
}

// designator finds the logical unit's NAA or EUI in VPD page 83h (SPC-5 7.7.6).
// The longest NAA wins, as in the kernel.
func designator(page []byte) string {
	if len(page) < 4 || page[1] != 0x83 {
		return ""
	}
	best, kinds := "", map[byte]string{2: "eui.", 3: "naa."}
	for d := page[4:]; len(d) >= 4 && len(d) >= 4+int(d[3]); d = d[4+int(d[3]):] {
		codes, association, kind := d[0]&0x0f, d[1]>>4&3, kinds[d[1]&0x0f]
		if codes != 1 || association != 0 || kind == "" { // binary, of the logical unit
			continue
		}
		id := kind + hex.EncodeToString(d[4:4+int(d[3])])
		if best == "" || (kind == "naa." && (best[:4] != kind || len(id) > len(best))) {
			best = id
		}
	}
	return best
}

// completeATA takes what VPD page 89h has of the drive's own identify data: the
// whole model, where INQUIRY has room for 16 characters, and the rest.
func completeATA(d *drivebay.Drive, page []byte) {
	const identify = 60 // SAT-4 12.4.2: the identify data begin here
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
		return clean(string(b))
	}
	for _, f := range []struct {
		into     *string
		from, to int
	}{{&d.Serial, 10, 19}, {&d.Firmware, 23, 26}, {&d.Model, 27, 46}} {
		if t := text(f.from, f.to); t != "" {
			*f.into = t
		}
	}
	if w := word(108); d.WWN == "" && w>>12 == 5 { // NAA 5h, word 87 bit 8 promises it
		var b []byte
		for n := 108; n <= 111; n++ {
			b = binary.BigEndian.AppendUint16(b, word(n))
		}
		d.WWN = usableWWN("naa." + hex.EncodeToString(b))
	}
}

// readMedium tells a hard disk from a solid-state drive, as the kernel learnt it,
// and how fast it turns. USB bridges say "rotational" of anything.
func (s *sysfs) readMedium(path string, d *drivebay.Drive) {
	if page, _ := s.read(path + "/device/vpd_pgb1"); len(page) >= 6 && page[1] == 0xb1 {
		if rate := int(binary.BigEndian.Uint16(page[4:])); rate >= 0x401 && rate < 0xffff { // SBC-4 table 260
			d.RPM = rate
		}
	}
	switch rotational := s.text(path + "/queue/rotational"); {
	case rotational == "0":
		d.Type = drivebay.TypeSSD
	case d.RPM > 0, rotational == "1" && d.Transport != drivebay.TransportUSB:
		d.Type = drivebay.TypeHDD
	}
}
