package health

import (
	"strings"

	"github.com/drivebay/drivebay"
)

// meaning holds an attribute id and the parts of names under which the id is believed to count
// what it usually counts. No standard defines the ids: 198 is Offline_Uncorrectable on a disk and
// Read_Sectors_Tot_Ct on an Indilinx SSD.
type meaning struct {
	id    uint8
	names []string // parts of the name, letters and digits only
}

var (
	reallocated = meaning{5, []string{"reallocat", "retired", "laterbad", "newbad", "runtimebad", "grown"}}
	spinRetries = meaning{10, []string{"spinretry"}}
	endToEnd    = meaning{184, []string{"endtoend"}}
	uncorrect   = meaning{187, []string{"uncorrect"}}
	timeouts    = meaning{188, []string{"commandtimeout"}}
	pending     = meaning{197, []string{"pending"}}
	offline     = meaning{198, []string{"uncorrect"}}
	events      = meaning{196, []string{"reallocat"}}
	crcErrors   = meaning{199, []string{"crc"}}
)

// counted holds the attributes whose counts the history keeps.
var counted = map[string]meaning{
	"ata.5": reallocated, "ata.10": spinRetries, "ata.184": endToEnd, "ata.187": uncorrect, "ata.188": timeouts,
	"ata.196": events, "ata.197": pending, "ata.198": offline, "ata.199": crcErrors,
}

// plain returns the lowercase letters and digits of a name, so that "Reallocated_Sector_Ct" and
// "reallocated-sector-ct" are equal.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
}

// of returns the attribute of the drive, or nil. Hard disks have used the ids alike for twenty
// years, so an attribute without a name is believed on a hard disk. It is not believed on a
// solid-state drive.
func (m meaning) of(ev *drivebay.Evidence, kind drivebay.Type) *drivebay.Attribute {
	if ev.ATA == nil {
		return nil
	}
	for i := range ev.ATA.Attributes {
		a := &ev.ATA.Attributes[i]
		if a.ID != m.id {
			continue
		}
		name := plain(a.Name)
		if kind == drivebay.TypeHDD && (name == "" || strings.HasPrefix(name, "unknown")) {
			return a
		}
		for _, part := range m.names {
			if strings.Contains(name, part) {
				return a
			}
		}
	}
	return nil
}

// count returns the count and the name of an attribute, or 0 and "" without one.
func (l *look) count(m meaning) (n uint64, name string) {
	a := m.of(l.ev, l.kind)
	if a == nil {
		return 0, ""
	}
	return number(a, l.kind), a.Name
}

// number returns the count of an attribute whose raw value packs more than one number.
//
// Hard disks keep 187, 188, 10 and 184 in 16-bit words of which the lowest counts.
// Hitachi, Fujitsu and Samsung fill the upper ones with other events. On drives that also
// keep an error log, the length of the log is the low word (0x0A680038005D beside 93
// errors). Solid-state drives use the whole value.
func number(a *drivebay.Attribute, kind drivebay.Type) uint64 {
	n := a.Count
	switch {
	case kind == drivebay.TypeHDD && (a.ID == uncorrect.id || a.ID == spinRetries.id || a.ID == endToEnd.id), a.ID == timeouts.id:
		return n & 0xFFFF
	case n > 0xFFFFFFFF: // no drive reaches such a count: the value holds words
		return n & 0xFFFF
	case n >= 0xFFFFFF00: // a 32-bit counter that was decremented below zero
		return 0
	case kind == drivebay.TypeSSD && n > 0xFFFFFF && n == (n&0xFF)*0x01010101: // percentages of four chips
		return 0
	case kind == drivebay.TypeSSD && a.ID == reallocated.id:
		return blocks(n, a)
	}
	return n
}

// sectorsPerBlock is the size of the smallest erase block that firmware is known to count in
// sectors: 512 KiB.
const sectorsPerBlock = 1024

// blocks returns the count of attribute 5 of a solid-state drive in erase blocks. Some firmware
// counts the sectors of whole blocks (Micron C400, M500, Samsung PM810: 8 blocks are 16384). Some
// repeats the normalized value, a percentage, as the raw value (Toshiba THNSNK: 100 of 100).
func blocks(n uint64, a *drivebay.Attribute) uint64 {
	switch {
	case n == uint64(a.Value) && n == 100:
		return 0
	case n >= sectorsPerBlock && n%sectorsPerBlock == 0:
		return n / sectorsPerBlock
	}
	return n
}

// usage holds the attributes of use and temperature. Their values do not show that a drive is
// failing.
var usage = map[uint8]bool{4: true, 9: true, 12: true, 190: true, 192: true, 193: true, 194: true, 225: true}

// corrected reports whether the name is that of a count of corrected errors.
func corrected(name string) bool {
	n := plain(name)
	return strings.Contains(n, "eccrecovered") || (strings.Contains(n, "corrected") && !strings.Contains(n, "uncorrected"))
}

// atStart reports whether the attribute has met its threshold since the factory: it has never left
// its best value, and the threshold is that value.
func atStart(a *drivebay.Attribute) bool {
	return a.Threshold != nil && a.Value >= 100 && a.Value == a.Worst && a.Value == *a.Threshold
}
