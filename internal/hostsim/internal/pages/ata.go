package pages

import (
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// ata encodes the pages of a SATA drive.
type ata struct{ *State }

var ataPages = map[host.Page]func(ata) []byte{
	host.ATAPowerMode:       ata.powerMode,
	host.ATAIdentify:        ata.identify,
	host.ATASmartData:       ata.smartData,
	host.ATASmartThresholds: ata.thresholds,
	host.ATASmartStatus:     ata.status,
	host.ATALogDirectory:    ata.directory,
	host.ATASummaryErrorLog: ata.errorLog,
	host.ATAExtErrorLog:     ata.extErrorLog,
	host.ATASelfTestLog:     ata.selfTestLog,
	host.ATAExtSelfTestLog:  ata.extSelfTestLog,
	host.ATASelectiveLog:    ata.selectiveLog,
	host.ATADevStats:        ata.statistics,
}

const sector = 512

// seal writes the checksum, which makes the sum of all bytes of the sector 0.
func seal(b []byte) []byte {
	var sum byte
	b[sector-1] = 0
	for _, x := range b[:sector] {
		sum += x
	}
	b[sector-1] = -sum
	return b
}

// ataText writes a string in ATA form: padded with blanks, the two characters of each word swapped
// (ACS-4, 3.4.10).
func ataText(b []byte, s string) {
	for i := range b {
		b[i^1] = ' '
		if i < len(s) {
			b[i^1] = s[i]
		}
	}
}

// powerMode returns FFh for active or idle, 00h for standby (ACS-4, 7.3).
func (d ata) powerMode() []byte {
	if d.Asleep {
		return []byte{0x00}
	}
	return []byte{0xFF}
}

// identify returns IDENTIFY DEVICE (ACS-4, 7.13).
func (d ata) identify() []byte {
	b := make([]byte, sector)
	word := func(n int, v uint64) { le.PutUint16(b[2*n:], uint16(v)) }
	word(0, 0x0040)
	ataText(b[20:40], d.Serial)
	ataText(b[46:54], d.Firmware)
	ataText(b[54:94], d.Model)
	sectors := d.Size / d.Block
	word(49, 0x2F00) // LBA, DMA, standby timer
	word(53, 0x0006) // words 64..70 and 88 are valid
	le.PutUint32(b[120:], uint32(min(sectors, 0x0FFFFFFF)))
	word(75, 31)     // queue depth 32
	word(76, 0x850E) // SATA 1, 2, 3 and NCQ
	word(80, 0x0FF0) // ATA/ATAPI-4 to ACS-4
	word(82, 0x346B) // SMART, power management, write cache
	word(83, 0x7D61) // 48-bit addresses, flush
	word(84, 0x4163) // general logs, self-test, error log, world wide name
	word(85, 0x3469)
	word(86, 0xBC41)
	word(87, 0x4163)
	le.PutUint64(b[200:], sectors)
	if d.Block == 4096 {
		word(106, 0x5000) // a logical sector is longer than 256 words
		le.PutUint32(b[234:], uint32(d.Block/2))
	} else if d.Kind.Rotational {
		word(106, 0x6003) // eight logical sectors per physical sector
	}
	for i := range 4 {
		word(108+i, d.WWN>>(48-16*i))
	}
	rate := uint64(d.Kind.RPM)
	if rate == 0 {
		rate = 1
		word(169, 1) // TRIM
	}
	word(217, rate)
	word(222, 0x10FF) // serial transport
	b[510] = 0xA5
	return seal(b)
}

// status returns the address fields after SMART RETURN STATUS: the signature of the command, or
// another one when a threshold is exceeded (ACS-3, 7.48.8).
func (d ata) status() []byte {
	if d.Age.Failed {
		return []byte{0xF4, 0x2C}
	}
	return []byte{0x4F, 0xC2}
}

// directory returns READ LOG EXT 00h: one word per log, its length in sectors.
func (d ata) directory() []byte {
	b := make([]byte, sector)
	for log, n := range map[int]uint16{0: 1, 1: 1, 3: 1, 4: 8, 6: 1, 7: 1} {
		le.PutUint16(b[2*log:], n)
	}
	return b
}

// smartData returns SMART READ DATA (ACS-3, 7.48.6; attributes as in SFF-8035i).
func (d ata) smartData() []byte {
	b := make([]byte, sector)
	le.PutUint16(b, 0x0010)
	for i, a := range d.attributes() {
		e := b[2+12*i:]
		raw, norm := a.value(d.State)
		if d.Spoilt.CountersMax {
			raw = 1<<48 - 1
		}
		e[0] = a.id
		le.PutUint16(e[1:], a.flags)
		e[3], e[4] = norm, norm
		le.PutUint32(e[5:], uint32(raw))
		le.PutUint16(e[9:], uint16(raw>>32))
	}
	b[362] = 0x82 // the last off-line collection was completed
	b[363] = d.testStatus()
	le.PutUint16(b[364:], 567)
	b[367] = 0x7B
	le.PutUint16(b[368:], 3)
	b[370] = 1
	b[372] = byte(shortTest / time.Minute)
	minutes := uint16(min(d.LongTest/time.Minute, 0xFFFE))
	if b[373] = byte(minutes); minutes > 254 {
		b[373] = 0xFF
		le.PutUint16(b[375:], minutes)
	}
	return seal(b)
}

// testStatus returns the result of the last self-test, or Fh and the tenths that remain.
func (d ata) testStatus() byte {
	switch {
	case d.Running != nil:
		return testRunning<<4 | byte((109-d.Running.progress(d.Clock.Now()))/10)
	case len(d.Tests) > 0:
		return d.Tests[0].Result << 4
	}
	return 0
}

// thresholds returns SMART READ THRESHOLDS.
func (d ata) thresholds() []byte {
	b := make([]byte, sector)
	le.PutUint16(b, 0x0010)
	for i, a := range d.attributes() {
		b[2+12*i], b[3+12*i] = a.id, a.threshold
	}
	return seal(b)
}

// errors returns the number of errors in the drive's log.
func (d ata) errors() uint64 {
	if d.Spoilt.CountersMax {
		return 0xFFFF
	}
	return min(d.Age.Uncorrectable, 0xFFFF)
}

// errorLog returns SMART log 01h: five errors of 90 bytes (ACS-3, A.18).
func (d ata) errorLog() []byte {
	b := make([]byte, sector)
	b[0] = 1
	total := d.errors()
	for i := range min(total, 5) {
		e := b[2+90*i:][60:90]
		e[1], e[7] = 0x40, 0x51 // uncorrectable data; ready, seek complete, error
		le.PutUint32(e[3:], uint32(FailingLBA+i))
		e[6] = 0xE0
		le.PutUint16(e[28:], uint16(d.Hours()))
	}
	if total > 0 {
		b[1] = byte((total-1)%5) + 1
	}
	le.PutUint16(b[452:], uint16(total))
	return seal(b)
}

// extErrorLog returns log 03h: four errors of 124 bytes per sector (ACS-4, 9.7). The log is one
// sector long here.
func (d ata) extErrorLog() []byte {
	b := make([]byte, sector)
	b[0] = 1
	total := d.errors()
	for i := range min(total, 4) {
		e := b[4+124*i:][90:124]
		e[1], e[11] = 0x40, 0x51
		lba := uint64(FailingLBA + i)
		e[4], e[6], e[8] = byte(lba), byte(lba>>8), byte(lba>>16)
		le.PutUint16(e[32:], uint16(d.Hours()))
	}
	if total > 0 {
		le.PutUint16(b[2:], uint16((total-1)%4)+1)
	}
	le.PutUint16(b[500:], uint16(total))
	return seal(b)
}

// ringOf places the results in a ring; the newest is in the last slot.
func (d ata) ringOf(put func(slot int, t TestResult)) (newest int) {
	n := len(d.Tests)
	for i, t := range d.Tests {
		put(n-1-i, t)
	}
	return n
}

// selfTestLog returns SMART log 06h: 21 results of 24 bytes (ACS-3, A.17).
func (d ata) selfTestLog() []byte {
	b := make([]byte, sector)
	le.PutUint16(b, 1)
	b[508] = byte(d.ringOf(func(slot int, t TestResult) {
		e := b[2+24*slot:]
		t.ataHead(e)
		le.PutUint32(e[5:], 0xFFFFFFFF)
		if t.Result == TestFailed {
			le.PutUint32(e[5:], uint32(t.Lba))
		}
	}))
	return seal(b)
}

func (t TestResult) ataHead(e []byte) {
	e[0], e[1] = t.Kind, t.Result<<4
	le.PutUint16(e[2:], uint16(t.Hours))
}

// extSelfTestLog returns log 07h: 19 results of 26 bytes per sector (ACS-4, 9.13).
func (d ata) extSelfTestLog() []byte {
	b := make([]byte, sector)
	b[0] = 1
	le.PutUint16(b[2:], uint16(d.ringOf(func(slot int, t TestResult) {
		e := b[4+26*slot:]
		t.ataHead(e)
		lba := uint64(1<<48 - 1)
		if t.Result == TestFailed {
			lba = t.Lba
		}
		le.PutUint32(e[5:], uint32(lba))
		le.PutUint16(e[9:], uint16(lba>>32))
	})))
	return seal(b)
}

// selectiveLog returns SMART log 09h: up to five spans, and the one under test (ACS-3, A.16).
func (d ata) selectiveLog() []byte {
	b := make([]byte, sector)
	le.PutUint16(b, 1)
	for i, s := range d.Spans {
		le.PutUint64(b[2+16*i:], s.First)
		le.PutUint64(b[10+16*i:], s.Last)
	}
	le.PutUint16(b[500:], d.span)
	return seal(b)
}

// statistics returns log 04h, pages 0 to 7 (ACS-4, 9.5). The upper byte of an entry marks it as
// supported and valid.
func (d ata) statistics() []byte {
	b := make([]byte, 8*sector)
	page := func(n int, values map[int]uint64) {
		p := b[n*sector:]
		le.PutUint16(p, 1)
		p[2] = byte(n)
		for at, v := range values {
			if d.Spoilt.CountersMax {
				v = 1<<48 - 1
			}
			le.PutUint64(p[at:], 0xC0<<56|v&(1<<56-1))
		}
	}
	hours := d.Hours()
	le.PutUint16(b, 1)
	copy(b[8:], []byte{5, 1, 3, 4, 5, 6}) // the list of supported pages
	page(1, map[int]uint64{0x08: d.Age.PowerCycles, 0x10: hours, 0x18: d.Age.Written / d.Block, 0x28: d.Age.Written / d.Block / 2})
	page(4, map[int]uint64{0x08: d.Age.Uncorrectable, 0x10: 0})
	page(5, map[int]uint64{0x08: uint64(d.Age.Temperature), 0x20: uint64(d.Age.Temperature + 9), 0x28: 19, 0x58: 60, 0x68: 5})
	page(6, map[int]uint64{0x08: 12, 0x18: d.Age.CRCErrors})
	if d.Kind.RPM > 0 {
		page(3, map[int]uint64{0x08: hours, 0x20: d.Age.Reallocated, 0x38: d.Age.Pending})
		return b
	}
	copy(b[8:], []byte{5, 1, 4, 5, 6, 7})
	page(7, nil)
	le.PutUint64(b[7*sector+8:], 0xE0<<56|uint64(d.Age.PercentageUsed)) // normalized: percent
	return b
}
