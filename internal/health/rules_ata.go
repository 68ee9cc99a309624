package health

import (
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
)

const (
	replaceSoon = "The drive may fail at any time. Replace it: `drivebay replace DRIVE` moves its volumes to other drives first."
	watch       = "Make sure that the data has a copy, and run `drivebay selftest DRIVE long`. If the number grows, replace the drive: `drivebay replace DRIVE`."
	checkLink   = "The drive is probably sound; the fault is in its connection. Reseat the drive, and check cable, backplane and controller."
	failureRate = "Backblaze drive statistics: failure rate by raw value; Pinheiro et al., Failure Trends in a Large Disk Drive Population, FAST 2007"
)

// ataRules judge the SMART attributes by the drive's own thresholds.
var ataRules = []Rule{
	{
		Code: "ATAPrefailNow", Protocols: onATA,
		Bad:    "a prefail attribute is at or below its threshold (threshold > 0)",
		Advice: replaceSoon,
		Source: "ATA8-ACS SMART: a prefail attribute at or below its threshold predicts a failure within 24 h of operation",
		check: func(l *look) *hit {
			if s, _ := l.rows(func(a *drivebay.Attribute) bool { return a.Prefail && a.FailedNow && !usage[a.ID] }); len(s) > 0 {
				return bad(uint64(len(s)), "at or below the drive's own failure threshold: %s", list(s))
			}
			return nil
		},
	},
	{
		Code: "ATAPrefailPast", Protocols: onATA,
		Suspect: "a prefail attribute was at or below its threshold in the past, except attributes that count corrected errors",
		Advice:  watch,
		Source:  "ATA8-ACS SMART: the drive never resets the worst value",
		covers:  sameIDs,
		check: func(l *look) *hit {
			if s, ids := l.rows(func(a *drivebay.Attribute) bool {
				return a.Prefail && a.FailedPast && !a.FailedNow && !usage[a.ID] && !corrected(a.Name)
			}); len(s) > 0 {
				return suspect(levelOf(ids), "at or below the drive's own failure threshold in the past: %s", list(s))
			}
			return nil
		},
	},
	{
		Code: "ATAOldAgeNow", Protocols: onATA,
		Suspect: "an old-age attribute is at or below its threshold, except attributes of use and temperature (4, 9, 12, 190, 192, 193, 194, 225) and attributes that are at their threshold on a new drive",
		Advice:  "The drive has reached the end of its design life in this respect. Plan its replacement.",
		Source:  "ATA8-ACS SMART: an advisory attribute at or below its threshold means that the design life is exceeded",
		covers:  sameIDs,
		check: func(l *look) *hit {
			worn := l.wearAttributes() // see SSDWearAttribute
			if s, ids := l.rows(func(a *drivebay.Attribute) bool {
				return !a.Prefail && a.FailedNow && !usage[a.ID] && !atStart(a) && !slices.Contains(worn, a)
			}); len(s) > 0 {
				return suspect(levelOf(ids), "at the end of the design life: %s", list(s))
			}
			return nil
		},
	},
	{
		Code: "ATAErrorLog", Protocols: onATA,
		Suspect: "the drive's own error log has an uncorrectable read (UNC) of the last 168 power-on hours; errors of the link alone (ICRC) do not count",
		Advice:  watch,
		Source:  "ACS-4, extended comprehensive SMART error log; the same event as attribute 187, with its time",
		Passing: true,
		check:   errorLog,
	},
	{
		Code: "ATAHeat", Protocols: onATA,
		Suspect: "the temperature is above the maximum that the drive itself specifies",
		Advice:  "The drive may slow down or stop. Check fans, filters and the airflow of the bay.",
		Source:  "ACS-4, device statistics page 5: Specified Maximum Operating Temperature. Firmware of Toshiba says 40 °C there, which is the limit of no drive: what lies below 50 °C is not believed",
		Quick:   true, Wavers: true,
		check: func(l *look) *hit {
			limit, ok := l.statistic(5, 0x58)
			if t := l.ev.Temperature; ok && limit >= 50 && t != nil && int64(*t) > limit {
				return suspect(uint64(*t), "%d °C, and the drive is specified for %d °C at most", *t, limit)
			}
			return nil
		},
	},
	{
		Code: "ATALinkErrors", Protocols: onATA,
		Suspect: "transmission errors (attribute 199) or command timeouts (the lowest 16 bits of attribute 188) increased by {linkErrorsGrowth} within 24 h",
		Advice:  checkLink,
		Source:  "ATA: the CRC protects the transmission, not the medium. The counters cover the life of the drive, so only their growth is evidence",
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

// errorLog judges the reads that the drive's own error log has as uncorrectable, if they are recent. An
// error of the link alone says nothing of the medium.
func errorLog(l *look) *hit {
	var recent []drivebay.DriveLog
	for _, e := range l.logged(drivebay.LogUncorrectable) {
		if age, known := l.hoursSince(e); known && age <= recentHours {
			recent = append(recent, e)
		}
	}
	if len(recent) == 0 {
		return nil
	}
	age, _ := l.hoursSince(recent[0])
	return suspect(uint64(len(recent)), "%d of the newest entries of the error log are uncorrectable reads of the last %d power-on hours, the newest %d h ago: %s",
		len(recent), recentHours, age, recent[0].Text)
}

// recentHours is the age, in power-on hours, up to which an entry of the error log says something of
// today: a week of use.
const recentHours = 168

// statistic returns a value of the device statistics log.
func (l *look) statistic(page uint8, offset uint16) (int64, bool) {
	if l.ev.ATA == nil {
		return 0, false
	}
	for _, s := range l.ev.ATA.Statistics {
		if s.Page == page && s.Offset == offset && !s.Normalized {
			return s.Value, true
		}
	}
	return 0, false
}

// trusted returns a count of the device statistics log. Firmware of HP and Western Digital has normalized
// values there without marking them as such: 100 and 200 on drives without a single error.
func (l *look) trusted(page uint8, offset uint16) (uint64, bool) {
	v, ok := l.statistic(page, offset)
	return uint64(max(v, 0)), ok && v != 100 && v != 200
}

// reportedErrors judges the uncorrectable errors that the device statistics count. A few over the whole
// life say little: the log also counts what a later attempt could read.
func (l *look) reportedErrors() *hit {
	n, ok := l.trusted(4, 0x08)
	p := l.since(keyReported, day)
	switch {
	case !ok || n == 0:
		return nil
	case p.grown > 0 && l.kernelErrors():
		return bad(n, "reported uncorrectable errors %d%s, and the kernel meets errors too", n, plus(p, day))
	case p.grown > 0 || n >= manyReported:
		return suspect(n, "reported uncorrectable errors %d%s", n, plus(p, day))
	}
	return nil
}

// manyReported is a number of reported errors that no disk reaches whose errors a retry can read.
const manyReported = 1000

// logged returns the entries of a kind in the drive's error log, newest first.
func (l *look) logged(kind string) (out []drivebay.DriveLog) {
	if l.ev.ATA == nil {
		return nil
	}
	for _, e := range l.ev.ATA.Errors {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// hoursSince returns the power-on hours since an entry of the error log. The log has 16 bits for them
// (ACS-3, A.18): they start again after 65,535 hours. An entry some hours ahead of the drive's own count
// is of now, because the two are rounded apart.
func (l *look) hoursSince(e drivebay.DriveLog) (uint64, bool) {
	if l.ev.PowerOnHours == nil {
		return 0, false
	}
	const wrap, ahead = 1 << 16, 24
	age := (*l.ev.PowerOnHours - e.Hours) % wrap
	if age > wrap-ahead {
		age = 0
	}
	return age, true
}

// rows returns a text for each attribute that the function selects, and the ids.
func (l *look) rows(is func(*drivebay.Attribute) bool) (out []string, ids []uint8) {
	if l.ev.ATA == nil {
		return nil, nil
	}
	for i := range l.ev.ATA.Attributes {
		a := &l.ev.ATA.Attributes[i]
		if !is(a) {
			continue
		}
		s := fmt.Sprintf("%s (%d)", a.Name, a.ID)
		if a.Value > 0 || a.FailedNow {
			s += fmt.Sprintf(" at %d", a.Value)
		}
		if a.FailedPast && a.Worst > 0 {
			s += fmt.Sprintf(", worst %d", a.Worst)
		}
		if a.Threshold != nil {
			s += fmt.Sprintf(", threshold %d", *a.Threshold)
		}
		out, ids = append(out, s+fmt.Sprintf(", raw %s", rawText(a))), append(ids, a.ID)
	}
	return out, ids
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
		Suspect: "attribute 5, or the reallocated sectors of the device statistics, > {hddReallocatedSuspect}",
		Bad:     "the same > {hddReallocatedBad}, or attribute 5 +{hddReallocatedGrowth} in 7 days",
		Advice:  watch, Source: failureRate,
		check: func(l *look) *hit {
			n, name := l.count(reallocated)
			// The log counts logical sectors, eight to a physical one on most disks since 2011.
			if moved, ok := l.trusted(3, 0x20); ok && moved/8 > n {
				n, name = moved/8, "reallocated sectors by the device statistics"
			}
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
		Suspect: "attribute 187, its lowest 16 bits, >= {hddUncorrectSuspect}; on a drive without it, reported uncorrectable errors of the device statistics >= 1000, or growing within 24 h",
		Bad:     ">= {hddUncorrectBad}, or growth within 24 h while the kernel also reports I/O errors",
		Advice:  watch, Source: failureRate,
		check: func(l *look) *hit {
			n, name := l.count(uncorrect)
			if name == "" {
				return l.reportedErrors()
			}
			p := l.since("ata.187", day)
			if p.grown > 0 && l.kernelErrors() && n >= l.th.HDDUncorrectSuspect {
				return bad(n, "%s %d%s, and the kernel reports I/O errors as well", name, n, plus(p, day))
			}
			if severity, ok := grade(n, l.th.HDDUncorrectSuspect, l.th.HDDUncorrectBad); ok {
				return &hit{severity, n, fmt.Sprintf("%s %d%s", name, n, plus(p, day))}
			}
			return nil
		},
	},
	{
		Code: "ATAPendingSectors", Protocols: onATA, Types: onHDD,
		Suspect: "attribute 197 or 198 >= {hddPendingSure}; or >= 1 in two looks in a row, or beside reallocated sectors, uncorrectable errors that are reported or in the error log, or each other",
		Bad:     ">= {hddPendingBad}, or growth within 24 h from a value that was not 0",
		Advice:  watch,
		Source:  failureRate + ". One physical sector is 8 logical sectors. A power loss during a write leaves a pending sector on a sound disk until the sector is written again",
		Passing: true,
		check:   pendingSectors,
	},
	{
		Code: "ATASpinRetries", Protocols: onATA, Types: onHDD,
		Suspect: "attribute 10 >= {hddSpinRetry}",
		Advice:  "The disk may not start after the next power cycle. Check the power supply of the bay. If the number grows, replace the disk: `drivebay replace DRIVE`.",
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
		Advice:  "Data may have changed inside the drive without an error. Compare it with a copy, and replace the drive: `drivebay replace DRIVE`.",
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
	if listed := l.counters[keyATADefects]; listed > n {
		n = listed
		parts = append(parts, fmt.Sprintf("pending defects log %d", n))
	}
	if n == 0 {
		return nil
	}
	if n >= l.th.HDDPendingBad || growing {
		return bad(n, "%s", list(parts))
	}
	moved, _ := l.count(reallocated)
	reported, _ := l.count(uncorrect)
	reported += uint64(len(l.logged(drivebay.LogUncorrectable)))
	if n >= l.th.HDDPendingSure || moved > 0 || reported > 0 || len(parts) > 1 || again {
		return suspect(n, "%s", list(parts))
	}
	return nil
}
