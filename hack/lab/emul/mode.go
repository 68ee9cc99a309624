package emul

// Mode pages of a translated drive (SAT-4 10.1).
const (
	pageCaching = 0x08
	pageControl = 0x0a
	allPages    = 0x3f
)

// modePages are the pages as they are now, or as which of their bits may change.
func (d *SATDisk) modePages(wanted byte, changeable bool) []byte {
	caching, control := make([]byte, 20), make([]byte, 12)
	caching[0], caching[1] = pageCaching, 18
	control[0], control[1] = pageControl, 10
	if d.writeCache || changeable {
		caching[2] = 1 << 2 // WCE
	}
	if d.descriptors || changeable {
		control[2] = 1 << 2 // D_SENSE
	}
	switch wanted {
	case pageCaching:
		return caching
	case pageControl:
		return control
	case allPages:
		return append(caching, control...)
	}
	return nil
}

// modeSense is MODE SENSE of 6 and of 10 bytes (SPC-5 6.14, 6.15), without block
// descriptors.
func (d *SATDisk) modeSense(cdb, _ []byte) Reply {
	const changeableValues = 1
	pages := d.modePages(cdb[2]&0x3f, cdb[2]>>6 == changeableValues)
	if pages == nil || (cdb[3] != 0 && cdb[3] != 0xff) {
		return d.refuse(badField)
	}
	if cdb[0] == 0x1a {
		b := append([]byte{byte(3 + len(pages)), 0, 0, 0}, pages...)
		return good(limited(b, int(cdb[4])))
	}
	b := append([]byte{0, byte(6 + len(pages)), 0, 0, 0, 0, 0, 0}, pages...)
	return good(limited(b, int(be.Uint16(cdb[7:]))))
}

// modeSelect takes WCE and D_SENSE.
func (d *SATDisk) modeSelect(cdb, out []byte) Reply {
	header, skip := 4, 0
	if cdb[0] == 0x55 {
		header = 8
	}
	if len(out) < header {
		return good(nil) // an empty list changes nothing
	}
	if skip = int(out[3]); header == 8 {
		skip = int(be.Uint16(out[6:]))
	}
	for b := out[min(header+skip, len(out)):]; len(b) >= 3; {
		end := 2 + int(b[1])
		if end > len(b) {
			return d.refuse(badParameter)
		}
		switch on := b[2]&(1<<2) != 0; b[0] & 0x3f {
		case pageCaching:
			d.writeCache = on
		case pageControl:
			d.descriptors = on
		default:
			return d.refuse(badParameter)
		}
		b = b[end:]
	}
	return good(nil)
}
