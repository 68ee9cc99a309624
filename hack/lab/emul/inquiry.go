package emul

// Peripheral device types (SPC-5 table 148).
const (
	typeDisk      = 0x00
	typeEnclosure = 0x0d
)

// padded is text in a field of n bytes, filled up with blanks.
func padded(s string, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = ' '
	}
	copy(b, s)
	return b
}

// standardInquiry is the answer to INQUIRY without EVPD (SPC-5 6.7.2).
func standardInquiry(kind byte, vendor, product, revision string) []byte {
	const spc4, responseFormat, commandQueuing = 0x06, 0x02, 0x02
	b := make([]byte, 8, 96)
	b[0], b[2], b[3], b[7] = kind, spc4, responseFormat, commandQueuing
	b = append(b, padded(vendor, 8)...)
	b = append(b, padded(product, 16)...)
	b = append(b, padded(revision, 4)...)
	b = b[:96]
	b[4] = byte(len(b) - 5)
	return b
}

// vitalPage puts the header before a page of vital product data (SPC-5 7.7).
func vitalPage(kind, page byte, body []byte) []byte {
	b := []byte{kind, page, byte(len(body) >> 8), byte(len(body))}
	return append(b, body...)
}

// designator is an entry of the device identification page (SPC-5 7.7.6).
func designator(codeSet, kind byte, id []byte) []byte {
	return append([]byte{codeSet, kind, 0, byte(len(id))}, id...)
}

// naa is the designator of a world wide name.
func naa(wwn uint64) []byte { return designator(1, 3, be.AppendUint64(nil, wwn)) }

// inquire answers INQUIRY from the standard data and the pages there are.
func inquire(cdb, standard []byte, page func(byte) []byte) (data []byte, ok bool) {
	length := int(be.Uint16(cdb[3:]))
	if cdb[1]&1 == 0 {
		return limited(standard, length), cdb[2] == 0
	}
	b := page(cdb[2])
	return limited(b, length), b != nil
}

// limited cuts an answer to the allocation length (SPC-5 4.2.5.6).
func limited(b []byte, length int) []byte { return b[:min(len(b), length)] }
