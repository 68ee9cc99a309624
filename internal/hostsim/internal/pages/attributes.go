package pages

// attribute is one SMART attribute that a kind of drive reports.
type attribute struct {
	id        byte
	threshold byte
	flags     uint16 // bit 0: prefail
	value     func(*State) (raw uint64, normalized byte)
}

const (
	prefail = 0x0033
	oldAge  = 0x0032
)

// left returns a normalized value: 100, less as more of the budget is used, at least 1.
func left(n, budget uint64) byte {
	if n >= budget {
		return 1
	}
	return byte(100 - 99*n/budget)
}

func counter(of func(*State) uint64, budget uint64) func(*State) (uint64, byte) {
	return func(d *State) (uint64, byte) { return of(d), left(of(d), budget) }
}

func always(raw uint64, norm byte) func(*State) (uint64, byte) {
	return func(*State) (uint64, byte) { return raw, norm }
}

func hoursOf(d *State) uint64       { return d.Hours() }
func cyclesOf(d *State) uint64      { return d.Age.PowerCycles }
func reallocatedOf(d *State) uint64 { return d.Age.Reallocated }
func pendingOf(d *State) uint64     { return d.Age.Pending }
func uncorrectOf(d *State) uint64   { return d.Age.Uncorrectable }
func crcOf(d *State) uint64         { return d.Age.CRCErrors }
func writtenOf(d *State) uint64     { return d.Age.Written / 512 }

func heatOf(d *State) (uint64, byte) {
	return uint64(d.Age.Temperature), byte(100 - d.Age.Temperature)
}

func wearOf(d *State) (uint64, byte) {
	return uint64(d.Age.PercentageUsed) * 10, byte(max(1, 100-d.Age.PercentageUsed))
}

// hddAttributes and ssdAttributes hold what the two kinds of SATA drives report, with the usual ids,
// kinds and thresholds.
var (
	hddAttributes = []attribute{
		{1, 44, 0x000F, always(0, 100)},
		{3, 0, 0x0003, always(0, 98)},
		{4, 20, oldAge, counter(cyclesOf, 20000)},
		{5, 10, prefail, counter(reallocatedOf, 4000)},
		{7, 45, 0x000F, always(0, 90)},
		{9, 0, oldAge, counter(hoursOf, 100000)},
		{10, 97, 0x0013, always(0, 100)},
		{12, 20, oldAge, counter(cyclesOf, 20000)},
		{187, 0, oldAge, counter(uncorrectOf, 100)},
		{188, 0, oldAge, always(0, 100)},
		{190, 40, 0x0022, heatOf},
		{193, 0, oldAge, always(1200, 99)},
		{194, 0, 0x0022, func(d *State) (uint64, byte) { return uint64(d.Age.Temperature), byte(d.Age.Temperature) }},
		{197, 0, 0x0012, counter(pendingOf, 4000)},
		{198, 0, 0x0010, counter(pendingOf, 4000)},
		{199, 0, 0x003E, counter(crcOf, 10000)},
		{241, 0, 0, counter(writtenOf, 1<<62)},
	}
	ssdAttributes = []attribute{
		{5, 10, prefail, counter(reallocatedOf, 1000)},
		{9, 0, oldAge, counter(hoursOf, 100000)},
		{12, 0, oldAge, counter(cyclesOf, 20000)},
		{177, 5, 0x0013, wearOf},
		{179, 10, 0x0013, counter(reallocatedOf, 1000)},
		{184, 97, prefail, always(0, 100)},
		{187, 0, oldAge, counter(uncorrectOf, 100)},
		{190, 0, oldAge, heatOf},
		{194, 0, 0x0022, heatOf},
		{197, 0, oldAge, counter(pendingOf, 1000)},
		{199, 0, 0x003E, counter(crcOf, 10000)},
		{235, 0, 0x0012, always(11, 99)},
		{241, 0, oldAge, counter(writtenOf, 1<<62)},
	}
)

func (d ata) attributes() []attribute {
	if d.Kind.RPM > 0 {
		return hddAttributes
	}
	return ssdAttributes
}
