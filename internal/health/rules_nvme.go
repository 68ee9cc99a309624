package health

import "github.com/drivebay/drivebay"

// Bits of the critical warning (NVM Express base specification 2.0, figure 207).
const (
	warnSpare = 1 << iota
	warnHeat
	warnReliability
	warnReadOnly
	warnBackup
	warnMemoryRegion
	warnReserved = 0xC0
)

const nvmeSpec = "NVM Express base specification 2.0, SMART / health information log (02h)"

// nvmeRules ignore the number of error log entries: it counts every command that the host should
// not have sent, millions on sound drives.
var nvmeRules = []Rule{
	{
		Code: "NVMeSpare", Protocols: onNVMe,
		Suspect: "the available spare is less than {nvmeSpareMargin} percentage points above the drive's threshold",
		Bad:     "critical warning bit 0 is set, or the available spare is below the drive's threshold",
		Advice:  replaceSoon, Source: nvmeSpec,
		check: nvmeSpare,
	},
	{
		Code: "NVMeHeat", Protocols: onNVMe,
		Suspect: "critical warning bit 1 is set, or the temperature has reached the drive's critical limit",
		Advice:  "The drive may slow down or stop. Check fans, filters and the airflow of the bay.", Source: nvmeSpec,
		Quick: true, Wavers: true,
		check: nvmeHeat,
	},
	{
		Code: "NVMeReliability", Protocols: onNVMe,
		Suspect: "critical warning bit 2 is set, and the drive has used 100 % of its endurance",
		Bad:     "critical warning bit 2 is set on any other drive",
		Advice:  replaceSoon, Source: nvmeSpec + ". On a worn drive the bit adds nothing to the percentage used",
		check: func(l *look) *hit {
			if l.warning()&warnReliability == 0 {
				return nil
			}
			used := l.ev.NVMe.PercentageUsed
			if used >= 100 {
				return suspect(uint64(used), "reliability degraded (critical warning bit 2), %d %% used", used)
			}
			return bad(uint64(used), "reliability degraded (critical warning bit 2) at %d %% used", used)
		},
	},
	{
		Code: "NVMeReadOnly", Protocols: onNVMe,
		Bad:    "critical warning bit 3 is set",
		Advice: "The drive accepts no more writes. Replace it: `drivebay replace DRIVE` copies its volumes to other drives first.", Source: nvmeSpec,
		check: func(l *look) *hit {
			if l.warning()&warnReadOnly != 0 {
				return bad(0, "the medium has turned read-only (critical warning bit 3)")
			}
			return nil
		},
	},
	{
		Code: "NVMeBackup", Protocols: onNVMe,
		Suspect: "critical warning bit 4 or 5 is set, or an undefined bit",
		Advice:  "The drive's protection against power loss has failed: a power loss can lose writes that were not flushed. Replace the drive: `drivebay replace DRIVE`.", Source: nvmeSpec,
		covers: sameBits,
		check: func(l *look) *hit {
			if w := l.warning(); w&(warnBackup|warnMemoryRegion|warnReserved) != 0 {
				return suspect(uint64(w&(warnBackup|warnMemoryRegion|warnReserved)), "volatile memory backup or persistent memory failed (critical warning 0x%02x)", w)
			}
			return nil
		},
	},
	{
		Code: "NVMeMediaErrors", Protocols: onNVMe,
		Suspect: "media and data integrity errors >= {nvmeMediaSuspect}",
		Bad:     ">= {nvmeMediaBad}, or growth within 7 days from a value that was not 0",
		Advice:  watch, Source: nvmeSpec,
		check: func(l *look) *hit {
			if l.ev.NVMe == nil {
				return nil
			}
			n := l.ev.NVMe.MediaErrors
			p := l.since(keyNVMeMedia, week)
			if n >= l.th.NVMeMediaBad || (n >= l.th.NVMeMediaSuspect && p.base > 0 && p.grown > 0) {
				return bad(n, "media and data integrity errors %d%s", n, plus(p, week))
			}
			if n >= l.th.NVMeMediaSuspect {
				return suspect(n, "media and data integrity errors %d%s", n, plus(p, week))
			}
			return nil
		},
	},
}

func (l *look) warning() uint8 {
	if l.ev.NVMe == nil {
		return 0
	}
	return l.ev.NVMe.CriticalWarning
}

func nvmeSpare(l *look) *hit {
	n := l.ev.NVMe
	if n == nil {
		return nil
	}
	spare, limit := uint64(n.AvailableSpare), uint64(n.SpareThreshold)
	switch {
	case n.CriticalWarning&warnSpare != 0:
		return bad(100-min(spare, 100), "the drive reports a low spare (critical warning bit 0): %d %%, its threshold is %d %%", spare, limit)
	case spare == 0 && limit == 0: // the drive does not report its spare
		return nil
	case spare < limit:
		return bad(100-min(spare, 100), "available spare %d %% below the drive's threshold of %d %%", spare, limit)
	case spare < min(limit+l.th.NVMeSpareMargin, 100):
		return suspect(100-spare, "available spare %d %%, the drive's threshold is %d %%", spare, limit)
	}
	return nil
}

func nvmeHeat(l *look) *hit {
	n := l.ev.NVMe
	if n == nil {
		return nil
	}
	celsius := int(n.TemperatureKelvin) - 273
	if n.CriticalWarning&warnHeat != 0 {
		return suspect(uint64(max(celsius, 0)), "temperature outside the drive's limits (critical warning bit 1), %d °C", celsius)
	}
	if n.CriticalTemp > 0 && celsius >= n.CriticalTemp {
		return suspect(uint64(max(celsius, 0)), "temperature %d °C, the drive's critical limit is %d °C", celsius, n.CriticalTemp)
	}
	return nil
}

// heatOnly reports whether an NVMe drive warns of its temperature alone.
func heatOnly(n *drivebay.NVMe) bool { return n != nil && n.CriticalWarning == warnHeat }
