package emul

// Logs (ACS-4 clause 9).
const (
	logDirectory    = 0x00
	logSummary      = 0x01
	logExtErrors    = 0x03
	logStatistics   = 0x04
	logSelfTests    = 0x06
	logExtSelfTests = 0x07
	logSelective    = 0x09
)

// The pages that each log has, in the directories of READ LOG EXT and of SMART
// READ LOG.
var (
	generalLogs = map[byte]uint16{logExtErrors: 1, logStatistics: statisticPages, logExtSelfTests: 1}
	smartLogs   = map[byte]uint16{logSummary: 1, logSelfTests: 1, logSelective: 1}
)

// generalLog is a log of READ LOG EXT; nil: there is none.
func (d *SATDisk) generalLog(address byte) []byte {
	switch address {
	case logDirectory:
		return directory(generalLogs)
	case logExtErrors:
		return d.extErrorLog()
	case logStatistics:
		return d.statistics()
	case logExtSelfTests:
		return d.extSelfTestLog()
	}
	return nil
}

// smartLog is a log of SMART READ LOG.
func (d *SATDisk) smartLog(address byte) []byte {
	switch address {
	case logDirectory:
		return directory(smartLogs)
	case logSummary:
		return d.summaryErrorLog()
	case logSelfTests:
		return d.selfTestLog()
	case logSelective:
		return d.selectiveLog()
	}
	return nil
}

// directory says how many pages a log has, in the word of its address.
func directory(logs map[byte]uint16) []byte {
	b := make([]byte, sectorSize)
	b[0] = 1
	for address, n := range logs {
		le.PutUint16(b[2*int(address):], n)
	}
	return b
}

// logError notes an error that has just happened.
func (d *SATDisk) logError(e LoggedError) {
	e.Hours = d.hours()
	d.desc.Errors = append(d.desc.Errors, e)
	d.desc.ErrorCount++
}

// ring puts the last entries of a log into its n places: entry number i, counted
// from 1 over all the drive's life, stands in place (i-1) mod n. It returns the
// index of the newest, counted from 1.
func ring(have, total, n int, put func(place, entry int)) (newest int) {
	if have == 0 {
		return 0
	}
	for k := range min(have, n) {
		put((total-1-k)%n, have-1-k)
	}
	return (total-1)%n + 1
}

// summaryErrorLog is SMART log 01h (ACS-3 A.18): each error behind five commands,
// of which only the one that failed is told.
func (d *SATDisk) summaryErrorLog() []byte {
	const places, base, size, command = 5, 2, 90, 12
	b := make([]byte, sectorSize)
	b[0] = 1
	b[1] = byte(ring(len(d.desc.Errors), d.desc.ErrorCount, places, func(place, entry int) {
		e, at := d.desc.Errors[entry], b[base+place*size:][:size]
		c := at[4*command:]
		c[2], c[3], c[4], c[5], c[7] = byte(e.Count), byte(e.LBA), byte(e.LBA>>8), byte(e.LBA>>16), e.Command
		c[6] = 0xe0 | byte(e.LBA>>24)&0x0f
		r := at[5*command:]
		r[1], r[2], r[3], r[4], r[5], r[6], r[7] = e.Error, byte(e.Count), byte(e.LBA), byte(e.LBA>>8), byte(e.LBA>>16), c[6], e.Status
		r[27] = stateActive
		le.PutUint16(r[28:], e.Hours)
	}))
	le.PutUint16(b[452:], uint16(d.desc.ErrorCount))
	checksum(b)
	return b
}

// stateActive: the error came while a command was carried out.
const stateActive = 0x03

// extErrorLog is log 03h (ACS-4 9.7), one page of it.
func (d *SATDisk) extErrorLog() []byte {
	const places, base, size, command = 4, 4, 124, 18
	b := make([]byte, sectorSize)
	b[0] = 1
	newest := ring(len(d.desc.Errors), d.desc.ErrorCount, places, func(place, entry int) {
		e, at := d.desc.Errors[entry], b[base+place*size:][:size]
		c := at[4*command:]
		le.PutUint16(c[3:], e.Count)
		spread(c[5:], e.LBA)
		c[11], c[12] = 0x40, e.Command
		r := at[5*command:]
		r[1], r[10], r[11], r[31] = e.Error, 0x40, e.Status, stateActive
		le.PutUint16(r[2:], e.Count)
		spread(r[4:], e.LBA)
		le.PutUint16(r[32:], e.Hours)
	})
	le.PutUint16(b[2:], uint16(newest))
	le.PutUint16(b[500:], uint16(d.desc.ErrorCount))
	checksum(b)
	return b
}

// spread writes a 48-bit address as the log keeps it: each of the low three bytes
// before the one 24 bits above it.
func spread(b []byte, lba uint64) {
	for i := range 3 {
		b[2*i], b[2*i+1] = byte(lba>>(8*i)), byte(lba>>(8*i+24))
	}
}

// selfTestLog is SMART log 06h (ACS-3 A.17).
func (d *SATDisk) selfTestLog() []byte {
	const places, base, size = 21, 2, 24
	d.endTest()
	b := make([]byte, sectorSize)
	b[0] = 1
	n := len(d.desc.SelfTests)
	b[508] = byte(ring(n, n, places, func(place, entry int) {
		t, at := d.desc.SelfTests[entry], b[base+place*size:]
		at[0], at[1] = t.Kind, t.Status<<4
		le.PutUint16(at[2:], t.Hours)
		le.PutUint32(at[5:], uint32(t.failedAt()))
	}))
	checksum(b)
	return b
}

// extSelfTestLog is log 07h (ACS-4 9.13), one page of it.
func (d *SATDisk) extSelfTestLog() []byte {
	const places, base, size = 19, 4, 26
	d.endTest()
	b := make([]byte, sectorSize)
	b[0] = 1
	n := len(d.desc.SelfTests)
	le.PutUint16(b[2:], uint16(ring(n, n, places, func(place, entry int) {
		t, at := d.desc.SelfTests[entry], b[base+place*size:]
		at[0], at[1] = t.Kind, t.Status<<4
		le.PutUint16(at[2:], t.Hours)
		le.PutUint32(at[5:], uint32(t.failedAt()))
		le.PutUint16(at[9:], uint16(t.failedAt()>>32))
	})))
	checksum(b)
	return b
}

// failedAt is the address of the failure, all ones if there was none.
func (t SelfTest) failedAt() uint64 {
	if t.Status == testPassed || t.Status == testAborted {
		return 1<<48 - 1
	}
	return t.LBA
}

// statisticPages is what the device statistics log has, empty ones included.
const statisticPages = 8

// statistics is the device statistics log (ACS-4 9.5). Page 0 lists the pages that
// the description has anything for; the others are zeros.
func (d *SATDisk) statistics() []byte {
	const supported, valid, normalized = 1 << 7, 1 << 6, 1 << 5
	b := make([]byte, statisticPages*sectorSize)
	there := [statisticPages]bool{0: true}
	for _, s := range d.desc.Statistics {
		there[s.Page] = true
		at := b[int(s.Page)*sectorSize+int(s.Offset):][:8]
		if s.Value < 0 { // only temperatures are signed, and have one byte
			at[0] = byte(s.Value)
		} else {
			le.PutUint64(at, uint64(s.Value)&(1<<56-1))
		}
		if at[7] = supported | valid; s.Normalized {
			at[7] |= normalized
		}
	}
	for n, has := range there {
		if page := b[n*sectorSize:]; has {
			page[0], page[2] = 1, byte(n)
			b[8]++
			b[8+int(b[8])] = byte(n)
		}
	}
	return b
}
