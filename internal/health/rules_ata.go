package health

import (
	"fmt"

	"github.com/drivebay/drivebay"
)

const (
	replaceSoon = "Move the data away and replace the drive."
	watch       = "Make sure that copies exist; run a long self-test; replace the drive when the number grows."
	checkLink   = "Reseat the drive and check cable, backplane and controller; the drive itself is probably sound."
	failureRate = "Backblaze drive statistics: failure rate by raw value; Pinheiro et al., Failure Trends in a Large Disk Drive Population, FAST 2007"
)

// ataRules judge the SMART attributes by the drive's own thresholds.
var ataRules = []Rule{
	{
		Code: "ATAPrefailNow", Protocols: onATA,
		Bad:    "a prefail attribute stands at or under its threshold (threshold > 0)",
		Advice: replaceSoon,
		Source: "ATA8-ACS SMART: a prefail attribute under its threshold predicts failure within 24 hours of use",
		check: func(l *look) *hit {
			if s := l.rows(func(a *drivebay.Attribute) bool { return a.Prefail && a.FailedNow && !usage[a.ID] }); len(s) > 0 {
				return bad(uint64(len(s)), "under the drive's own failure threshold: %s", list(s))
			}
			return nil
		},
	},
	{
		Code: "ATAPrefailPast", Protocols: onATA,
		Suspect: "a prefail attribute once stood at or under its threshold, unless it counts what was corrected",
		Advice:  watch,
		Source:  "ATA8-ACS SMART: the worst value is kept for life",
		check: func(l *look) *hit {
			if s := l.rows(func(a *drivebay.Attribute) bool {
				return a.Prefail && a.FailedPast && !a.FailedNow && !usage[a.ID] && !corrected(a.Name)
			}); len(s) > 0 {
				return suspect(uint64(len(s)), "once under the drive's own failure threshold: %s", list(s))
			}
			return nil
		},
	},
	{
		Code: "ATAOldAgeNow", Protocols: onATA,
		Suspect: "an old-age attribute stands at or under its threshold, except those of use and heat (4, 9, 12, 190, 192, 193, 194, 225) and those that stand there from the factory on",
		Advice:  "The drive has outlived what it was designed for in this respect: plan its replacement.",
		Source:  "ATA8-ACS SMART: an advisory attribute under its threshold says that the design life is exceeded",
		check: func(l *look) *hit {
			if s := l.rows(func(a *drivebay.Attribute) bool {
				return !a.Prefail && a.FailedNow && !usage[a.ID] && !atStart(a)
			}); len(s) > 0 {
				return suspect(uint64(len(s)), "at the end of the design life: %s", list(s))
			}
			return nil
		},
	},
	{
		Code: "ATALinkErrors", Protocols: onATA,
		Suspect: "transmission errors (199) or command timeouts (188, its lowest 16 bits) grew by {linkErrorsGrowth} within 24 h",
		Advice:  checkLink,
		Source:  "ATA: the CRC protects the cable, not the medium; the level is for life and says nothing of today",
		Quick:   true,
		check: func(l *look) *hit {
			crc, timeout := l.since("ata.199", day), l.since("ata.188", day)
			if worst := max(crc.grown, timeout.grown); worst >= l.th.LinkErrorsGrowth {
				return suspect(l.counters["ata.199"]+l.counters["ata.188"], "transmission errors %d%s, command timeouts %d%s", l.counters["ata.199"], plus(crc, day), l.counters["ata.188"], plus(timeout, day))
			}
			return nil
		},
	},
}

// rows returns a text for each attribute that the function selects.
func (l *look) rows(is func(*drivebay.Attribute) bool) []string {
	if l.ev.ATA == nil {
		return nil
	}
	var out []string
	for i := range l.ev.ATA.Attributes {
		a := &l.ev.ATA.Attributes[i]
		if !is(a) {
			continue
		}
		s := fmt.Sprintf("%s (%d)", a.Name, a.ID)
		if a.Value > 0 {
			s += fmt.Sprintf(" at %d", a.Value)
		}
		if a.FailedPast && a.Worst > 0 {
			s += fmt.Sprintf(", worst %d", a.Worst)
		}
		if a.Threshold != nil {
			s += fmt.Sprintf(", threshold %d", *a.Threshold)
		}
		out = append(out, s+fmt.Sprintf(", raw %s", rawText(a)))
	}
	return out
}

func rawText(a *drivebay.Attribute) string {
	if a.Text != "" {
		return a.Text
	}
	return fmt.Sprint(a.Count)
}

// hddRules judge the counters of a hard disk.
var hddRules = []Rule{
	{
		Code: "ATAReallocatedSectors", Protocols: onATA, Types: onHDD,
		Suspect: "attribute 5 > {hddReallocatedSuspect}",
		Bad:     "attribute 5 > {hddReallocatedBad}, or +{hddReallocatedGrowth} in 7 days",
		Advice:  watch, Source: failureRate,
		check: func(l *look) *hit {
			n, name := l.count(reallocated)
			p := l.since("ata.5", week)
			switch {
			case n > l.th.HDDReallocatedBad || p.grown >= l.th.HDDReallocatedGrowth:
				return bad(n, "%s %d%s", name, n, plus(p, week))
			case n > l.th.HDDReallocatedSuspect:
				return suspect(n, "%s %d%s", name, n, plus(p, week))
			}
			return nil
		},
	},
	{
		Code: "ATAUncorrectable", Protocols: onATA, Types: onHDD,
		Suspect: "attribute 187, its lowest 16 bits, >= {hddUncorrectSuspect}",
		Bad:     ">= {hddUncorrectBad}, or growing within 24 h together with the kernel's I/O errors",
		Advice:  watch, Source: failureRate,
		check: func(l *look) *hit {
			n, name := l.count(uncorrect)
			p := l.since("ata.187", day)
			if p.grown > 0 && l.kernelErrors() && n >= l.th.HDDUncorrectSuspect {
				return bad(n, "%s %d%s, and the kernel meets errors too", name, n, plus(p, day))
			}
			if severity, ok := grade(n, l.th.HDDUncorrectSuspect, l.th.HDDUncorrectBad); ok {
				return &hit{severity, n, fmt.Sprintf("%s %d%s", name, n, plus(p, day))}
			}
			return nil
		},
	},
	{
		Code: "ATAPendingSectors", Protocols: onATA, Types: onHDD,
		Suspect: "attribute 197 or 198 >= {hddPendingSure}; or >= 1 in two looks in a row, or beside reallocated sectors, reported uncorrectable errors or each other",
		Bad:     ">= {hddPendingBad}, or more than 24 h ago when there were some already",
		Advice:  watch,
		Source:  failureRate + ". One physical sector is 8 logical ones; a write that lost its power leaves a pending sector on a sound disk until it is written again",
		check:   pendingSectors,
	},
	{
		Code: "ATASpinRetries", Protocols: onATA, Types: onHDD,
		Suspect: "attribute 10 >= {hddSpinRetry}",
		Advice:  "Check the power supply of the bay; else expect that the disk does not start after the next power cycle.",
		Source:  failureRate,
		check: func(l *look) *hit {
			if n, name := l.count(spinRetries); n >= l.th.HDDSpinRetry {
				return suspect(n, "%s %d", name, n)
			}
			return nil
		},
	},
	{
		Code: "ATAEndToEnd", Protocols: onATA, Types: onHDD,
		Suspect: "attribute 184 >= {hddEndToEnd}",
		Advice:  "Data may have changed inside the drive: verify it against a copy and replace the drive.",
		Source:  failureRate,
		check: func(l *look) *hit {
			if n, name := l.count(endToEnd); n >= l.th.HDDEndToEnd {
				return suspect(n, "%s %d", name, n)
			}
			return nil
		},
	},
}

func pendingSectors(l *look) *hit {
	var n uint64
	var parts []string
	var growing, again bool
	for _, m := range []struct {
		meaning
		key string
	}{{pending, "ata.197"}, {offline, "ata.198"}} {
		v, name := l.count(m.meaning)
		if v == 0 {
			continue
		}
		p := l.since(m.key, day)
		n = max(n, v)
		parts = append(parts, fmt.Sprintf("%s %d%s", name, v, plus(p, day)))
		growing = growing || (p.covered && p.base > 0 && v > p.base)
		again = again || l.before(m.key) > 0
	}
	if n == 0 {
		return nil
	}
	if n >= l.th.HDDPendingBad || growing {
		return bad(n, "%s", list(parts))
	}
	moved, _ := l.count(reallocated)
	reported, _ := l.count(uncorrect)
	if n >= l.th.HDDPendingSure || moved > 0 || reported > 0 || len(parts) > 1 || again {
		return suspect(n, "%s", list(parts))
	}
	return nil
}
