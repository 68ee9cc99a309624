package health

import "fmt"

// Additional sense codes (SPC-5, annex "Additional sense codes").
const (
	ascWarning    = 0x0B // warnings: ASCQ 01h is temperature, the rest degradation
	ascPrediction = 0x5D // failure prediction threshold exceeded
	ascqTest      = 0xFF // 5D/FF: the host requested the prediction as a test
	ascqHeat      = 0x01
)

const scsiSpec = "SPC-5 and SBC-4 log pages"

// scsiRules ignore non-medium errors: a cable, a reset or a busy expander causes millions of them
// on sound drives.
var scsiRules = []Rule{
	{
		Code: "SCSIPrediction", Protocols: onSCSI,
		Suspect: "informational exceptions report a warning (sense 0Bh), including one about the temperature",
		Bad:     "informational exceptions report a failure prediction (sense 5Dh)",
		Advice:  "The drive warns of its condition or predicts its failure. For sense 0B/01 check fans, filters and the airflow of the bay. Otherwise replace it: `drivebay replace DRIVE` moves its volumes to other drives first.",
		Source:  "SPC-5 informational exceptions log page (2Fh); the test code 5D/FF does not count",
		covers:  sameFault,
		check: func(l *look) *hit {
			s := l.ev.SCSI
			if s == nil {
				return nil
			}
			switch {
			case s.ASC == ascPrediction && s.ASCQ != ascqTest:
				return bad(0, "the drive predicts its failure (sense %02X/%02X)", s.ASC, s.ASCQ)
			case s.ASC == ascWarning && s.ASCQ == ascqHeat:
				return suspect(ascqHeat, "the drive warns of its temperature (sense 0B/01)")
			case s.ASC == ascWarning:
				return suspect(uint64(s.ASCQ), "the drive warns (sense %02X/%02X)", s.ASC, s.ASCQ)
			}
			return nil
		},
	},
	{
		Code: "SCSIGrownDefects", Protocols: onSCSI,
		Suspect: "grown defects >= {scsiGrownSuspect}",
		Bad:     ">= {scsiGrownBad}, or +{scsiGrownGrowth} in 7 days",
		Advice:  watch, Source: "SBC-4 READ DEFECT DATA; " + failureRate,
		check: func(l *look) *hit {
			n := l.counters[keyGrown]
			p := l.since(keyGrown, week)
			if p.grown >= l.th.SCSIGrownGrowth {
				return bad(n, "grown defects %d%s", n, plus(p, week))
			}
			if severity, ok := grade(n, l.th.SCSIGrownSuspect, l.th.SCSIGrownBad); ok {
				return &hit{severity, n, fmt.Sprintf("grown defects %d%s", n, plus(p, week))}
			}
			return nil
		},
	},
	{
		Code: "SCSIUncorrected", Protocols: onSCSI,
		Suspect: "uncorrected reads, writes and verifies >= {scsiUncorrectedSuspect}",
		Bad:     ">= {scsiUncorrectedBad}, or growth within 7 days from a value that was not 0",
		Advice:  watch, Source: scsiSpec + " 02h, 03h, 05h",
		check: func(l *look) *hit {
			n := l.counters[keyUncorrected]
			p := l.since(keyUncorrected, week)
			if n >= l.th.SCSIUncorrectedSuspect && p.base > 0 && p.grown > 0 {
				return bad(n, "uncorrected errors %d%s", n, plus(p, week))
			}
			if severity, ok := grade(n, l.th.SCSIUncorrectedSuspect, l.th.SCSIUncorrectedBad); ok {
				return &hit{severity, n, fmt.Sprintf("uncorrected errors %d%s", n, plus(p, week))}
			}
			return nil
		},
	},
	{
		Code: "SCSIPendingDefects", Protocols: onSCSI,
		Suspect: "pending defects >= {scsiPendingSuspect}",
		Bad:     ">= {scsiPendingBad}",
		Advice:  watch, Source: scsiSpec + " 15h, subpage 01h",
		Passing: true,
		check: func(l *look) *hit {
			n := l.counters[keyDefects]
			if severity, ok := grade(n, l.th.SCSIPendingSuspect, l.th.SCSIPendingBad); ok {
				return &hit{severity, n, fmt.Sprintf("pending defects %d", n)}
			}
			return nil
		},
	},
	{
		Code: "SCSIBackgroundScan", Protocols: onSCSI,
		Bad:    "a fatal error or a pattern of errors has stopped the background scan (status 3, 4)",
		Advice: replaceSoon, Source: "SBC-4 background scan results log page (15h)",
		check: func(l *look) *hit {
			if s := l.ev.SCSI; s != nil && s.BackgroundScan != nil && (*s.BackgroundScan == 3 || *s.BackgroundScan == 4) {
				return bad(0, "errors have stopped the background scan (status %d)", *s.BackgroundScan)
			}
			return nil
		},
	},
	{
		Code: "SCSIHeat", Protocols: onSCSI,
		Suspect: "the temperature has reached the drive's trip temperature",
		Advice:  "The drive may slow down or stop. Check fans, filters and the airflow of the bay.", Source: scsiSpec + " 0Dh",
		Quick: true, Wavers: true,
		check: func(l *look) *hit {
			s, t := l.ev.SCSI, l.ev.Temperature
			if s != nil && t != nil && s.TripTemperature != nil && *s.TripTemperature > 0 && *t >= *s.TripTemperature {
				return suspect(uint64(*t), "temperature %d °C, the drive's trip temperature is %d °C", *t, *s.TripTemperature)
			}
			return nil
		},
	},
}
