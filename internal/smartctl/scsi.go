package smartctl

import (
	"fmt"
	"math"
	"strings"

	"github.com/drivebay/drivebay"
)

func scsi(ev *drivebay.Evidence, root node) {
	s := &drivebay.SCSI{}
	status := root.at("smart_status")
	asc, okASC := status.at("scsi", "asc").within(255)
	ascq, _ := status.at("scsi", "ascq").within(255)
	s.ASC, s.ASCQ = uint8(asc), uint8(ascq)
	_, told := status.at("passed").bool()
	s.HasIE = okASC || told
	s.ErrorCounters = errorCounters(root.at("scsi_error_counter_log"))
	s.GrownDefects = ptr(root.at("scsi_grown_defect_list").uint())
	s.PendingDefects = ptr(root.at("scsi_pending_defects", "count").uint())
	if v, ok := root.at("scsi_background_scan", "status", "value").within(255); ok {
		code := uint8(v)
		s.BackgroundScan = &code
	}
	s.TripTemperature = ptr(root.at("temperature", "drive_trip").int())
	s.StartStops = ptr(root.at("scsi_start_stop_cycle_counter", "accumulated_start_stop_cycles").uint())
	ev.SCSI = s
	if !s.HasIE && s.ErrorCounters == nil && s.GrownDefects == nil && len(ev.Problems) == 0 {
		root.t.problem("scsi-log-2f", "the document does not contain the health of the drive")
	}
	// This is the name of endurance_used before 7.4.
	if used, ok := root.at("scsi_percentage_used_endurance_indicator").within(255); ok && ev.PercentUsed == nil {
		percent := int(used)
		ev.PercentUsed = &percent
	}
	scsiSelfTests(ev, root)
	if c, ok := s.ErrorCounters["write"]; ok {
		ev.BytesWritten = &c.Bytes
	}
	if c, ok := s.ErrorCounters["read"]; ok {
		ev.BytesRead = &c.Bytes
	}
}

// errorCounters decodes log pages 02h, 03h and 05h (SPC-5, "Error counter log pages").
func errorCounters(log node) map[string]drivebay.ErrorCounter {
	out := map[string]drivebay.ErrorCounter{}
	for _, what := range []string{"read", "write", "verify"} {
		row := log.at(what)
		if !row.there() {
			continue
		}
		c := drivebay.ErrorCounter{Bytes: gigabytes(row.at("gigabytes_processed"))}
		for _, f := range []struct {
			key  string
			into *uint64
		}{
			{"errors_corrected_by_eccfast", &c.CorrectedFast},
			{"errors_corrected_by_eccdelayed", &c.CorrectedDelayed},
			{"errors_corrected_by_rereads_rewrites", &c.Rereads},
			{"total_errors_corrected", &c.Corrected},
			{"correction_algorithm_invocations", &c.Invocations},
			{"total_uncorrected_errors", &c.Uncorrected},
		} {
			*f.into, _ = row.wide(f.key)
		}
		out[what] = c
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// gigabytes converts "64396.534", in units of 10^9 bytes, to bytes; the value is a string in every
// version so far.
func gigabytes(n node) uint64 {
	s, ok := n.number()
	if !ok {
		return 0
	}
	f, ok := parseBig(s)
	if !ok || f.Sign() < 0 {
		n.wrong("a number of gigabytes")
		return 0
	}
	v, _ := f.Float64()
	if v >= math.MaxUint64/1e9 {
		return math.MaxUint64
	}
	return uint64(math.Round(v * 1e9))
}

var scsiKinds = map[uint64]string{1: "short", 2: "long", 5: "short", 6: "long"}

// scsiResults decodes the self-test results field of log page 10h (SPC-5).
var scsiResults = [16]drivebay.SelfTestResult{
	0x0: drivebay.SelfTestPassed,
	0x1: drivebay.SelfTestAborted, // by SEND DIAGNOSTIC
	0x2: drivebay.SelfTestAborted, // by another method
	0x3: drivebay.SelfTestFatal,
	0x4: drivebay.SelfTestFailed, // an unknown segment
	0x5: drivebay.SelfTestFailed, // the first segment
	0x6: drivebay.SelfTestFailed, // the second segment
	0x7: drivebay.SelfTestFailed, // another segment
	0xF: drivebay.SelfTestRunning,
}

// scsiSelfTestEntries is the number of parameters of log page 10h.
const scsiSelfTestEntries = 20

func scsiSelfTests(ev *drivebay.Evidence, root node) {
	if done, ok := root.at("scsi_self_test_status", "completion_percent").within(100); ok {
		left := 100 - int(done)
		ev.SelfTestProgress = &left
	}
	for i := range scsiSelfTestEntries {
		row := root.at(fmt.Sprintf("scsi_self_test_%d", i))
		result, ok := row.at("result", "value").within(15)
		if !ok {
			continue
		}
		kind, _ := row.at("code", "value").within(15)
		t := drivebay.SelfTest{Kind: selfTestKind(scsiKinds, kind), Result: scsiResults[result],
			Text: strings.TrimSpace(row.at("result", "string").text()), LBA: ptr(row.at("lba_first_failure").wide("value"))}
		t.Hours, _ = row.at("power_on_time", "hours").uint()
		ev.SelfTests = append(ev.SelfTests, t)
	}
}
