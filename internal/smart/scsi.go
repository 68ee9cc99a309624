package smart

import (
	"fmt"
	"math"

	"github.com/drivebay/drivebay"
)

const (
	pageInquiry      = "scsi-inquiry"
	pageVPDSerial    = "scsi-vpd-80"
	pageVPDDeviceID  = "scsi-vpd-83"
	pageVPDBlockChar = "scsi-vpd-b1"
	pageCapacity     = "scsi-read-capacity-16"
	pageDefects      = "scsi-grown-defects"
)

// scsi returns the SCSI part of the evidence and creates it if needed.
func scsi(ev *drivebay.Evidence) *drivebay.SCSI {
	if ev.SCSI == nil {
		ev.SCSI = &drivebay.SCSI{}
	}
	return ev.SCSI
}

// SCSIInquiry decodes standard INQUIRY data (SPC-5, 6.7.2).
func SCSIInquiry(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageInquiry, b, 36); err != nil {
		return err
	}
	if qualifier := b[0] >> 5; qualifier != 0 { // 1 and 3: there is no logical unit with this number
		return ignored(pageInquiry, "peripheral qualifier %d: no drive at this address", qualifier)
	}
	vendor, product := text(b[8:16]), text(b[16:32])
	if vendor == "" && product == "" {
		return ignored(pageInquiry, "vendor and product name are empty")
	}
	take(&ev.Identity.Vendor, vendor)
	take(&ev.Identity.Model, product)
	take(&ev.Identity.Firmware, text(b[32:36]))
	return nil
}

// vpd returns the payload of a vital product data page, up to the end of the buffer.
func vpd(page string, code byte, b []byte) ([]byte, error) {
	if err := atLeast(page, b, 4); err != nil {
		return nil, err
	}
	if b[1] != code {
		return nil, ignored(page, "the page has the number %02Xh", b[1])
	}
	return b[4:min(4+int(be.Uint16(b[2:])), len(b))], nil
}

// SCSIVPDSerial decodes the unit serial number (VPD 80h).
func SCSIVPDSerial(ev *drivebay.Evidence, b []byte) error {
	data, err := vpd(pageVPDSerial, 0x80, b)
	if err != nil {
		return err
	}
	serial := text(data)
	if serial == "" {
		return ignored(pageVPDSerial, "the serial number is empty")
	}
	ev.Identity.Serial = serial
	return nil
}

// SCSIVPDDeviceID decodes device identification (VPD 83h; SPC-5, 7.7.6) and selects the same name
// as the kernel: the longest kind that names the logical unit, because shorter ones are less
// unique.
func SCSIVPDDeviceID(ev *drivebay.Evidence, b []byte) error {
	data, err := vpd(pageVPDDeviceID, 0x83, b)
	if err != nil {
		return err
	}
	best, rank := "", 0
	for len(data) >= 4 && len(data) >= 4+int(data[3]) {
		d := data[:4+int(data[3])]
		if r := rankOf(d); r > 0 && r >= rank { // of equal ranks the kernel uses the last
			if name := designator(d); name != "" {
				best, rank = name, r
			}
		}
		data = data[len(d):]
	}
	if best == "" && len(data) > 0 {
		return ignored(pageVPDDeviceID, "no complete designator of the logical unit")
	}
	take(&ev.Identity.WWN, best) // a USB stick may have no name
	return nil
}

// rankOf returns the rank of a designator in the kernel (drivers/scsi/scsi_lib.c,
// scsi_vpd_lun_id): SCSI name string, NAA 6, EUI-128, EUI-96, NAA 5, NAA 2 (and the obsolete 4),
// EUI-64, then NAA 3 and T10 vendor.
func rankOf(d []byte) int {
	if d[1]&0x30 != 0 || d[3] == 0 { // of a port or a target, not of the unit; or empty
		return 0
	}
	switch size := int(d[3]); d[1] & 0xF {
	case 8:
		return 9
	case 3:
		return map[byte]int{6: 8, 5: 5, 4: 4, 2: 4, 3: 1}[d[4]>>4]
	case 2:
		return map[int]int{16: 7, 12: 6, 8: 3}[size]
	case 1:
		return 1
	}
	return 0
}

// designator formats a designator as the kernel's wwid does.
func designator(d []byte) string {
	value := d[4:]
	switch d[1] & 0xF {
	case 8:
		return text(value)
	case 3:
		if want := map[byte]int{6: 16}[value[0]>>4]; len(value) < max(want, 8) {
			return ""
		}
		return fmt.Sprintf("naa.%x", value)
	case 2:
		return fmt.Sprintf("eui.%x", value)
	}
	if name := text(value); name != "" {
		return "t10." + name
	}
	return ""
}

// SCSIVPDBlockChar decodes the rotation rate of block device characteristics
// (VPD B1h; SBC-4, 6.6.2): 0001h does not rotate.
func SCSIVPDBlockChar(ev *drivebay.Evidence, b []byte) error {
	data, err := vpd(pageVPDBlockChar, 0xB1, b)
	if err != nil {
		return err
	}
	if len(data) < 2 {
		return ignored(pageVPDBlockChar, "the page ends before the rotation rate")
	}
	switch rate := be.Uint16(data); {
	case rate == 1:
		ev.Type, ev.Identity.RPM = drivebay.TypeSSD, 0
	case rate >= 0x0401 && rate <= 0xFFFE:
		ev.Type, ev.Identity.RPM = drivebay.TypeHDD, int(rate)
	}
	return nil
}

// SCSICapacity decodes READ CAPACITY (16) (SBC-4, 5.20): the last address and the length of a
// block.
func SCSICapacity(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageCapacity, b, 12); err != nil {
		return err
	}
	last, block := be.Uint64(b), uint64(be.Uint32(b[8:]))
	if last == math.MaxUint64 || block == 0 {
		return ignored(pageCapacity, "invalid capacity: last block %d, block size %d bytes", last, block)
	}
	ev.Identity.Size = times(last+1, block)
	return nil
}

// defectSizes holds the length of a defect descriptor by its format (SBC-4, 6.2.1): short block,
// extended bytes, extended sector, long block, bytes from index, physical sector. 6 is vendor
// specific.
var defectSizes = map[byte]uint32{0: 4, 1: 8, 2: 8, 3: 8, 4: 8, 5: 8}

// SCSIGrownDefects decodes the header of READ DEFECT DATA (12): the length of the grown list,
// which has one descriptor for each defect.
func SCSIGrownDefects(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageDefects, b, 8); err != nil {
		return err
	}
	format, length := b[1]&7, be.Uint32(b[4:])
	size, known := defectSizes[format]
	switch {
	case b[1]&0x08 == 0: // GLISTV
		return ignored(pageDefects, "the list is not the grown defect list")
	case b[1]&0x10 != 0: // PLISTV
		return ignored(pageDefects, "the count includes the primary defect list")
	case !known:
		return ignored(pageDefects, "the descriptor format %d is unknown", format)
	case length%size != 0:
		return ignored(pageDefects, "%d bytes are not a multiple of the descriptor size of %d bytes", length, size)
	}
	n := uint64(length / size)
	scsi(ev).GrownDefects = &n
	return nil
}
