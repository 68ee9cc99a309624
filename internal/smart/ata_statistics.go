package smart

import "github.com/drivebay/drivebay"

const pageStatistics = "ata-device-statistics"

// Flags of a statistic, the upper byte of its eight (ACS-4, 9.5.2).
const (
	statSupported  = 0x80
	statValid      = 0x40
	statNormalized = 0x20
)

// statistic is one entry of the log: its position, the length of the number in bytes, and whether
// it is signed.
type statistic struct {
	page   uint8
	offset uint16
	bytes  uint8
	signed bool
	name   string
}

// statistics holds the entries of ACS-4, 9.5.4 to 9.5.11.
var statistics = []statistic{
	{1, 0x08, 4, false, "Lifetime Power-On Resets"},
	{1, 0x10, 4, false, "Power-on Hours"},
	{1, 0x18, 6, false, "Logical Sectors Written"},
	{1, 0x20, 6, false, "Number of Write Commands"},
	{1, 0x28, 6, false, "Logical Sectors Read"},
	{1, 0x30, 6, false, "Number of Read Commands"},
	{1, 0x38, 6, false, "Date and Time TimeStamp"},
	{1, 0x40, 4, false, "Pending Error Count"},
	{1, 0x48, 2, false, "Workload Utilization"},
	{1, 0x50, 6, false, "Utilization Usage Rate"},
	{2, 0x08, 4, false, "Number of Free-Fall Events Detected"},
	{2, 0x10, 4, false, "Overlimit Shock Events"},
	{3, 0x08, 4, false, "Spindle Motor Power-on Hours"},
	{3, 0x10, 4, false, "Head Flying Hours"},
	{3, 0x18, 4, false, "Head Load Events"},
	{3, 0x20, 4, false, "Number of Reallocated Logical Sectors"},
	{3, 0x28, 4, false, "Read Recovery Attempts"},
	{3, 0x30, 4, false, "Number of Mechanical Start Failures"},
	{3, 0x38, 4, false, "Number of Realloc. Candidate Logical Sectors"},
	{3, 0x40, 4, false, "Number of High Priority Unload Events"},
	{4, 0x08, 4, false, "Number of Reported Uncorrectable Errors"},
	{4, 0x10, 4, false, "Resets Between Cmd Acceptance and Completion"},
	{4, 0x18, 4, false, "Physical Element Status Changed"},
	{5, 0x08, 1, true, "Current Temperature"},
	{5, 0x10, 1, true, "Average Short Term Temperature"},
	{5, 0x18, 1, true, "Average Long Term Temperature"},
	{5, 0x20, 1, true, "Highest Temperature"},
	{5, 0x28, 1, true, "Lowest Temperature"},
	{5, 0x30, 1, true, "Highest Average Short Term Temperature"},
	{5, 0x38, 1, true, "Lowest Average Short Term Temperature"},
	{5, 0x40, 1, true, "Highest Average Long Term Temperature"},
	{5, 0x48, 1, true, "Lowest Average Long Term Temperature"},
	{5, 0x50, 4, false, "Time in Over-Temperature"},
	{5, 0x58, 1, true, "Specified Maximum Operating Temperature"},
	{5, 0x60, 4, false, "Time in Under-Temperature"},
	{5, 0x68, 1, true, "Specified Minimum Operating Temperature"},
	{6, 0x08, 4, false, "Number of Hardware Resets"},
	{6, 0x10, 4, false, "Number of ASR Events"},
	{6, 0x18, 4, false, "Number of Interface CRC Errors"},
	{7, 0x08, 1, false, "Percentage Used Endurance Indicator"},
}

// ATADevStats decodes the pages of the device statistics log (log 04h), one sector each from page
// 0. A page of zeros is one that the drive does not support.
func ATADevStats(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageStatistics, b, sector); err != nil {
		return err
	}
	pages := map[uint8][]byte{}
	var wrong []int
	for n := 0; n < 8 && (n+1)*sector <= len(b); n++ {
		p := b[n*sector:][:sector]
		switch {
		case uniform(p, 0):
		case le.Uint16(p) == 0 || p[2] != byte(n): // revision, then the page's own number
			wrong = append(wrong, n)
		default:
			pages[uint8(n)] = p
		}
	}
	if len(pages) == 0 {
		return ignored(pageStatistics, "no page of the log contains its own number")
	}
	for _, n := range wrong {
		damaged(ev, pageStatistics, "page %d does not contain its own number: page ignored", n)
	}
	a := ata(ev)
	a.Statistics = nil
	for _, s := range statistics {
		if p, there := pages[s.page]; there {
			if v, ok := s.read(p[s.offset:][:8]); ok {
				a.Statistics = append(a.Statistics, v)
			}
		}
	}
	counted(ev)
	return nil
}

// read decodes a statistic that the drive supports and marks as valid.
func (s statistic) read(b []byte) (drivebay.Statistic, bool) {
	flags := b[7]
	if flags&statSupported == 0 || flags&statValid == 0 {
		return drivebay.Statistic{}, false
	}
	v := int64(le.Uint64(b) & (1<<(8*s.bytes) - 1))
	if s.signed {
		v = int64(int8(v))
	}
	return drivebay.Statistic{Page: s.page, Offset: s.offset, Name: s.name, Value: v, Normalized: flags&statNormalized != 0}, true
}

// counted fills the common fields. The log is standardized (ACS-4, 9.5), the attributes are vendor
// specific: where both have a value, the log wins, as in smartctl.
func counted(ev *drivebay.Evidence) {
	for _, s := range ev.ATA.Statistics {
		n, small := uint64(max(s.Value, 0)), int(s.Value)
		switch [2]uint16{uint16(s.Page), s.Offset} {
		case [2]uint16{1, 0x08}:
			ev.PowerCycles = &n
		case [2]uint16{1, 0x10}:
			ev.PowerOnHours = &n
		case [2]uint16{1, 0x18}:
			n = times(n, sectorOf(ev.ATA))
			ev.BytesWritten = &n
		case [2]uint16{1, 0x28}:
			n = times(n, sectorOf(ev.ATA))
			ev.BytesRead = &n
		case [2]uint16{5, 0x08}:
			ev.Temperature = &small
		case [2]uint16{7, 0x08}:
			ev.PercentUsed = &small
		}
	}
}
