package emul

// inquiry is INQUIRY of a translated drive (SAT-4 8.1).
func (d *SATDisk) inquiry(cdb, _ []byte) Reply {
	standard := standardInquiry(typeDisk, "ATA", d.desc.Model, d.revision())
	b, ok := inquire(cdb, standard, d.vitalPage)
	if !ok {
		return d.refuse(badField)
	}
	return good(b)
}

// revision is the second half of the firmware revision, or the first if that is
// all there is (SAT-4 table 17).
func (d *SATDisk) revision() string {
	if len(d.desc.Firmware) > 4 {
		return d.desc.Firmware[4:]
	}
	return d.desc.Firmware
}

func (d *SATDisk) vitalPage(page byte) []byte {
	body := []byte(nil)
	switch page {
	case 0x00:
		body = []byte{0x00, 0x80, 0x83, 0x89, 0xb0, 0xb1}
		if d.desc.solid() {
			body = append(body, 0xb2)
		}
	case 0x80:
		body = padded(d.desc.Serial, 20)
	case 0x83:
		body = d.identification()
	case 0x89:
		body = d.ataInformation()
	case 0xb0:
		body = d.blockLimits()
	case 0xb1:
		body = make([]byte, 60)
		be.PutUint16(body, d.rotation())
		body[3] = d.formFactor()
	case 0xb2:
		if !d.desc.solid() {
			return nil
		}
		const unmapSupported, thin = 1 << 7, 2
		body = []byte{0, unmapSupported, thin, 0}
	default:
		return nil
	}
	return vitalPage(typeDisk, page, body)
}

// identification is the page that names the drive (SAT-4 10.3.4).
func (d *SATDisk) identification() []byte {
	const ascii, vendorSpecific, t10 = 2, 0, 1
	serial := padded(d.desc.Serial, 20)
	t10Name := append(padded("ATA", 8), append(padded(d.desc.Model, 40), serial...)...)
	b := designator(ascii, vendorSpecific, serial)
	b = append(b, designator(ascii, t10, t10Name)...)
	return append(b, naa(d.desc.WWN)...)
}

// ataInformation is the page with identify data in it (SAT-4 10.3.5).
func (d *SATDisk) ataInformation() []byte {
	b := make([]byte, 4, 568)
	b = append(b, padded("DRIVEBAY", 8)...)
	b = append(b, padded("EMULATED SAT", 16)...)
	b = append(b, padded("1", 4)...)
	signature := make([]byte, 20)
	signature[0], signature[2], signature[3], signature[4] = 0x34, 0x50, 0x01, 0x01 // of an ATA device, in a register FIS
	b = append(b, signature...)
	b = append(b, ataIdentify, 0, 0, 0)
	return append(b, d.identify()...)
}

// MaxTransfer is the most that one command moves, in bytes.
const MaxTransfer = 512 << 10

// blockLimits is the page with the limits of transfers (SBC-4 6.6.4).
func (d *SATDisk) blockLimits() []byte {
	b := make([]byte, 60)
	most := uint32(MaxTransfer / d.desc.block())
	be.PutUint32(b[4:], most)
	be.PutUint32(b[8:], most)
	if d.desc.solid() {
		be.PutUint32(b[16:], 0xffffffff) // blocks that one UNMAP takes
		be.PutUint32(b[20:], unmapRanges)
		be.PutUint32(b[24:], uint32(d.desc.physical()/d.desc.block()))
	}
	return b
}

// rotation is the code of the medium, the same in page B1h and in word 217.
func (d *SATDisk) rotation() uint16 {
	if d.desc.solid() {
		return 1
	}
	return uint16(d.desc.RPM)
}

// formFactor is 3.5 inches of platters or 2.5 inches of chips (SBC-4 6.6.2).
func (d *SATDisk) formFactor() byte {
	if d.desc.solid() {
		return 3
	}
	return 2
}
