package health

import (
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// shownOn holds the pages that a rule judges and without which the drive still counts as read. The
// findings of the other rules are of pages without which it is UNKNOWN (see evidenceMissing).
var shownOn = map[string][]string{
	"OwnVerdict": {"ata-smart-status", "scsi-log-00", "scsi-log-2f"},
	"SelfTest":   {"ata-selftest-log", "ata-ext-selftest-log", "ata-log-directory", "nvme-selftest-log", "nvme-identify-controller", "scsi-log-00", "scsi-log-10"},
	"WearUsed":   {"ata-device-statistics", "ata-log-directory", "scsi-log-00", "scsi-log-11"},

	"ATAPrefailNow":         {"ata-smart-thresholds"},
	"ATAPrefailPast":        {"ata-smart-thresholds"},
	"ATAOldAgeNow":          {"ata-smart-thresholds"},
	"SSDWearAttribute":      {"ata-smart-thresholds"},
	"SSDRetiredBlocks":      {"ata-smart-thresholds"}, // BAD beside ATAPrefailNow
	"SSDUncorrectable":      {"ata-smart-thresholds"},
	"ATAErrorLog":           {"ata-error-log", "ata-ext-error-log", "ata-log-directory"},
	"ATAPendingSectors":     {"ata-error-log", "ata-ext-error-log", "ata-log-directory"},
	"ATAReallocatedSectors": {"ata-device-statistics", "ata-log-directory"},
	"ATAUncorrectable":      {"ata-device-statistics", "ata-log-directory"},

	"SCSIPrediction":     {"scsi-log-00", "scsi-log-2f"},
	"SCSIGrownDefects":   {"scsi-log-00", "scsi-grown-defects"},
	"SCSIUncorrected":    {"scsi-log-00", "scsi-log-02", "scsi-log-03", "scsi-log-05"},
	"SCSIPendingDefects": {"scsi-log-00", "scsi-log-15-01"},
	"SCSIBackgroundScan": {"scsi-log-00", "scsi-log-15"},
}

// Unread adds to the findings of a reading those that stood before it and that it could not look for: one
// of the pages that show them was asked for and not read, or has no room any more for what it showed. What
// has become less meanwhile stands as it was.
func Unread(mem drivebay.Memory, found []drivebay.Finding, ev *drivebay.Evidence) []drivebay.Finding {
	if ev == nil {
		return found
	}
	for _, old := range mem.Findings {
		hidden := slices.ContainsFunc(ev.Problems, func(p drivebay.Problem) bool { return slices.Contains(shownOn[old.Code], p.Page) })
		lost := pushedOut(old, ev)
		if !hidden && !lost && !earlierPushedOut(old, ev) || !old.Gone.IsZero() {
			continue
		}
		i := slices.IndexFunc(found, func(f drivebay.Finding) bool { return f.Code == old.Code })
		switch {
		case i < 0:
			found = append(found, old)
		case found[i].Severity.Rank() < old.Severity.Rank():
			found[i] = old
		case lost && found[i].Severity == drivebay.HealthSuspect && !isFatal(failedTests(ev)[0]): // the test that is in the log is not the first
			found[i].Severity, found[i].Text = drivebay.HealthBad, found[i].Text+earlierFailed
		}
	}
	drivebay.SortFindings(found)
	return found
}

// leastTests is the number of results that the smallest log of self-tests has room for, the sector of ATA log 07h
// that is read. The logs of NVMe and SCSI have 20, ATA log 06h has 21.
const leastTests = 19

// pushedOut reports whether the failed self-test of a finding is no longer in the log because later tests took its
// place. A log that is not full has lost nothing. What has outdated the failure before did so while it was in the
// log: only a long test that passed does now.
func pushedOut(old drivebay.Finding, ev *drivebay.Evidence) bool {
	return old.Code == "SelfTest" && len(ev.SelfTests) >= leastTests && !slices.ContainsFunc(ev.SelfTests, func(t drivebay.SelfTest) bool {
		return hasFailed(t) && t.Hours == old.Level || t.Result == drivebay.SelfTestPassed && t.Kind == "long"
	})
}

// earlierPushedOut reports whether of two failed self-tests the earlier one is no longer in the log because later tests took its place. One
// that is in the log is judged there.
func earlierPushedOut(old drivebay.Finding, ev *drivebay.Evidence) bool {
	if old.Code != "SelfTest" || old.Severity != drivebay.HealthBad || !strings.HasSuffix(old.Text, earlierFailed) || len(ev.SelfTests) < leastTests {
		return false
	}
	i := slices.IndexFunc(ev.SelfTests, hasFailed)
	return i >= 0 && ev.SelfTests[i].Hours == old.Level && !slices.ContainsFunc(ev.SelfTests[i+1:], hasFailed) &&
		!slices.ContainsFunc(ev.SelfTests, func(t drivebay.SelfTest) bool { return t.Result == drivebay.SelfTestPassed && t.Kind == "long" })
}

func hasFailed(t drivebay.SelfTest) bool { return t.Result == drivebay.SelfTestFailed || isFatal(t) }
func isFatal(t drivebay.SelfTest) bool   { return t.Result == drivebay.SelfTestFatal }
