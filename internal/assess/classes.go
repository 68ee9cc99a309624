package assess

import (
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

// A class is a kind of evidence by which the table counts verdicts. It reads the evidence itself, not
// the findings: so the table shows what the rules miss.
type class struct {
	name string
	has  func(health.Input) bool
}

// nothingCritical is the class of the drives that no verdict may flag.
const nothingCritical = "nothing critical"

var classes = []class{
	{"uncorrectable read in the last 168 h", func(in health.Input) bool { return slices.ContainsFunc(unreadLog(in), recent(in)) }},
	{"newest extended self-test failed", func(in health.Input) bool { return extendedFailed(in.Evidence.SelfTests) }},
	{"pending sectors, and an uncorrectable read logged", func(in health.Input) bool {
		return rawOf(in.Evidence, 197) > 0 && in.Type == drivebay.TypeHDD && len(unreadLog(in)) > 0
	}},
	{"90 % of the endurance used, or more", func(in health.Input) bool {
		return in.Evidence.PercentUsed != nil && *in.Evidence.PercentUsed >= 90
	}},
	{nothingCritical, func(in health.Input) bool { return !critical(in) }},
}

// classesOf returns the classes of an input.
func classesOf(in health.Input) (names []string) {
	if in.Evidence == nil {
		return nil
	}
	for _, c := range classes {
		if c.has(in) {
			names = append(names, c.name)
		}
	}
	return names
}

// unreadLog returns the uncorrectable reads in the error log.
func unreadLog(in health.Input) (out []drivebay.DriveLog) {
	if in.Evidence.ATA == nil {
		return nil
	}
	for _, e := range in.Evidence.ATA.Errors {
		if e.Kind == drivebay.LogUncorrectable {
			out = append(out, e)
		}
	}
	return out
}

// recent reports whether an entry is from the last 168 power-on hours. An entry that is ahead of the
// drive's own count by more than a day is of an unknown time.
func recent(in health.Input) func(drivebay.DriveLog) bool {
	return func(e drivebay.DriveLog) bool {
		hours := in.Evidence.PowerOnHours
		return hours != nil && *hours+24 >= e.Hours && *hours <= e.Hours+168
	}
}

// extendedFailed reports whether the newest extended self-test that came to an end has failed.
func extendedFailed(newestFirst []drivebay.SelfTest) bool {
	for _, t := range newestFirst {
		if t.Kind != "long" {
			continue
		}
		switch t.Result {
		case drivebay.SelfTestPassed:
			return false
		case drivebay.SelfTestFailed, drivebay.SelfTestFatal:
			return true
		}
	}
	return false
}

// rawOf returns the count of an attribute, 0 without it.
func rawOf(ev *drivebay.Evidence, id uint8) uint64 {
	if ev.ATA == nil {
		return 0
	}
	for _, a := range ev.ATA.Attributes {
		if a.ID == id {
			return a.Count
		}
	}
	return 0
}

// critical reports whether a drive has any evidence that could count against it, however little.
func critical(in health.Input) bool {
	ev := in.Evidence
	if ev.Verdict == drivebay.VerdictFailed || len(unreadLog(in)) > 0 {
		return true
	}
	if used, ok := health.Used(in); ok && used >= 90 {
		return true
	}
	if slices.ContainsFunc(ev.SelfTests, func(t drivebay.SelfTest) bool {
		return t.Result == drivebay.SelfTestFailed || t.Result == drivebay.SelfTestFatal
	}) {
		return true
	}
	return criticalATA(ev) || criticalNVMe(ev.NVMe) || criticalSCSI(ev.SCSI)
}

func criticalATA(ev *drivebay.Evidence) bool {
	a := ev.ATA
	if a == nil {
		return false
	}
	for _, attr := range a.Attributes {
		if attr.FailedNow || attr.FailedPast || attr.Raw > 0 && slices.Contains([]uint8{5, 10, 184, 187, 188, 196, 197, 198}, attr.ID) {
			return true
		}
	}
	for _, s := range a.Statistics {
		counts := s.Page == 3 && (s.Offset == 0x20 || s.Offset == 0x38) || s.Page == 4 && s.Offset == 0x08
		hot := s.Page == 5 && s.Offset == 0x58 && ev.Temperature != nil && int64(*ev.Temperature) > s.Value
		if counts && s.Value > 0 || hot {
			return true
		}
	}
	return a.PendingDefects != nil && *a.PendingDefects > 0
}

func criticalNVMe(n *drivebay.NVMe) bool {
	return n != nil && (n.CriticalWarning != 0 || n.MediaErrors > 0 || n.AvailableSpare < n.SpareThreshold+10 || n.PercentageUsed >= 90)
}

func criticalSCSI(s *drivebay.SCSI) bool {
	if s == nil {
		return false
	}
	for _, c := range s.ErrorCounters {
		if c.Uncorrected > 0 {
			return true
		}
	}
	return s.ASC != 0 || s.GrownDefects != nil && *s.GrownDefects > 0 || s.PendingDefects != nil && *s.PendingDefects > 0
}
