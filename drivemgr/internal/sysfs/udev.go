package sysfs

import (
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// udevEntry holds what udev's rules found out about a device, from its database
// (run/udev/data/bMAJOR:MINOR). In a container without the database it is empty.
type udevEntry map[string]string

// Udev returns what udev recorded about a device.
func (s *Reader) Udev(devnum string) udevEntry {
	if devnum == "" {
		return nil
	}
	if e, known := s.entries[devnum]; known {
		return e
	}
	e := s.readUdev(devnum)
	if s.entries == nil {
		s.entries = map[string]udevEntry{}
	}
	s.entries[devnum] = e
	return e
}

func (s *Reader) readUdev(devnum string) udevEntry {
	b, ok := s.Read("run/udev/data/b" + devnum)
	if !ok {
		return nil
	}
	e := udevEntry{}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(strings.TrimPrefix(line, "E:"), "="); ok && strings.HasPrefix(line, "E:") {
			e[k] = Clean(v)
		}
	}
	return e
}

// Complete fills in what sysfs lacks, and the part of an ATA model that sysfs cuts off
// after 16 characters.
func (e udevEntry) Complete(d *drivebay.Drive) {
	if e == nil {
		return
	}
	model := Clean(unescapeUdev(e["ID_MODEL_ENC"]))
	if model == "" {
		model = strings.ReplaceAll(e["ID_MODEL"], "_", " ")
	}
	if d.Model == "" || (len(model) > len(d.Model) && strings.HasPrefix(model, d.Model)) {
		d.Model = model
	}
	set := func(field *string, keys ...string) {
		for _, k := range keys {
			if v := e[k]; *field == "" && (v == "" || v != strings.TrimPrefix(e["ID_WWN"], "0x")) { // scsi_id reports the worldwide name as a serial
				*field = v
			}
		}
	}
	set(&d.Serial, "ID_SCSI_SERIAL", "ID_SERIAL_SHORT")
	if d.Transport == drivebay.TransportVirtio || d.Transport == drivebay.TransportMMC { // for others it includes vendor and model
		set(&d.Serial, "ID_SERIAL")
	}
	if rev := e["ID_REVISION"]; d.Protocol == drivebay.ProtocolATA && d.Firmware != "" && len(rev) > len(d.Firmware) && strings.Contains(rev, d.Firmware) {
		d.Firmware = rev // INQUIRY has room for four of eight characters
	}
	set(&d.Firmware, "ID_REVISION")
	if d.Protocol != drivebay.ProtocolATA {
		set(&d.Vendor, "ID_VENDOR")
	}
	if d.WWN == "" && d.Protocol != drivebay.ProtocolNVMe {
		wwn := e["ID_WWN_WITH_EXTENSION"]
		if wwn == "" {
			wwn = e["ID_WWN"]
		}
		if hex, ok := strings.CutPrefix(wwn, "0x"); ok {
			d.WWN = UsableWWN("naa." + hex)
		}
	}
	if rpm, err := strconv.Atoi(e["ID_ATA_ROTATION_RATE_RPM"]); err == nil && rpm > 0 && d.RPM == 0 {
		d.RPM = rpm
	}
}

// Content records what udev found written on the device. A missing finding proves
// nothing: a failed read looks the same.
func (e udevEntry) Content(d *drivebay.Drive) {
	add := func(format, label, uuid string) {
		if format == "" {
			return
		}
		d.Content.Kind, d.Content.Reason = drivebay.ContentForeign, ""
		d.Content.Signatures = append(d.Content.Signatures, drivebay.Signature{Format: format, Label: label, UUID: uuid})
	}
	add(e["ID_PART_TABLE_TYPE"], "", e["ID_PART_TABLE_UUID"])
	add(e["ID_FS_TYPE"], e["ID_FS_LABEL"], e["ID_FS_UUID"])
}

// unescapeUdev decodes the \xNN of udev's *_ENC values.
func unescapeUdev(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.HasPrefix(s[i:], `\x`) && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
