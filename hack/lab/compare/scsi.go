package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

func ofSCSI(ours func(s *drivebay.SCSI) any) func(*drivebay.Drive, *leaf) any {
	return func(d *drivebay.Drive, _ *leaf) any {
		if d.Evidence.SCSI == nil {
			return nil
		}
		return ours(d.Evidence.SCSI)
	}
}

// errorCounters are the rows of one error counter page.
func errorCounters(page string) []row {
	var rows []row
	for key, ours := range map[string]func(drivebay.ErrorCounter) any{
		"errors_corrected_by_eccfast":          func(c drivebay.ErrorCounter) any { return c.CorrectedFast },
		"errors_corrected_by_eccdelayed":       func(c drivebay.ErrorCounter) any { return c.CorrectedDelayed },
		"errors_corrected_by_rereads_rewrites": func(c drivebay.ErrorCounter) any { return c.Rereads },
		"total_errors_corrected":               func(c drivebay.ErrorCounter) any { return c.Corrected },
		"correction_algorithm_invocations":     func(c drivebay.ErrorCounter) any { return c.Invocations },
		"gigabytes_processed":                  func(c drivebay.ErrorCounter) any { return fmt.Sprintf("%.3f", float64(c.Bytes)/1e9) },
		"total_uncorrected_errors":             func(c drivebay.ErrorCounter) any { return c.Uncorrected },
	} {
		rows = append(rows, row{"scsi_error_counter_log." + page + "." + key, ofSCSI(func(s *drivebay.SCSI) any {
			c, there := s.ErrorCounters[page]
			if !there {
				return nil
			}
			return ours(c)
		})})
	}
	return rows
}

func vendor(d *drivebay.Drive) any {
	return agreed(filled(d.Vendor), filled(d.Evidence.Identity.Vendor))
}

func product(d *drivebay.Drive) any {
	return agreed(filled(d.Model), filled(d.Evidence.Identity.Model))
}

var scsiRows = slices.Concat([]row{
	{"scsi_vendor", func(d *drivebay.Drive, _ *leaf) any { return vendor(d) }},
	{"scsi_product", func(d *drivebay.Drive, _ *leaf) any { return product(d) }},
	{"scsi_model_name", func(d *drivebay.Drive, _ *leaf) any { return written(vendor(d)) + " " + written(product(d)) }},
	{"scsi_revision", firmware},
	{"logical_unit_id", logicalUnit},
	{"scsi_transport_protocol.value", wire},
	{"smart_support.available", func(d *drivebay.Drive, _ *leaf) any { return d.Evidence.SCSI != nil && d.Evidence.SCSI.HasIE }},
	{"smart_status.scsi.asc", ofSCSI(func(s *drivebay.SCSI) any { return s.ASC })},
	{"smart_status.scsi.ascq", ofSCSI(func(s *drivebay.SCSI) any { return s.ASCQ })},
	{"temperature.drive_trip", ofSCSI(func(s *drivebay.SCSI) any { return told(s.TripTemperature) })},
	{"scsi_temperature.drive_trip", ofSCSI(func(s *drivebay.SCSI) any { return told(s.TripTemperature) })},
	{"scsi_grown_defect_list", ofSCSI(func(s *drivebay.SCSI) any { return told(s.GrownDefects) })},
	{"scsi_pending_defects.count", ofSCSI(func(s *drivebay.SCSI) any { return told(s.PendingDefects) })},
	{"scsi_background_scan.status.value", ofSCSI(func(s *drivebay.SCSI) any { return told(s.BackgroundScan) })},
	{"scsi_start_stop_cycle_counter.accumulated_start_stop_cycles", ofSCSI(func(s *drivebay.SCSI) any { return told(s.StartStops) })},
	{"scsi_percentage_used_endurance_indicator", func(d *drivebay.Drive, _ *leaf) any { return told(d.Evidence.PercentUsed) }},
	{"scsi_self_test_[].code.value", scsiCode},
	{"scsi_self_test_[].result.value", scsiResult},
	{"scsi_self_test_[].power_on_time.hours", func(d *drivebay.Drive, l *leaf) any { return testHours(d, l.index(0)) }},
	{"scsi_self_test_[].lba_first_failure.value", func(d *drivebay.Drive, l *leaf) any { return testLBA(d, l.index(0)) }},
}, errorCounters("read"), errorCounters("write"), errorCounters("verify"))

// logicalUnit is the name of the unit in digits, as smartctl writes NAA and EUI alike.
func logicalUnit(d *drivebay.Drive, _ *leaf) any {
	digits := func(wwn string) any {
		form, digits, ok := strings.Cut(strings.ToLower(wwn), ".")
		if !ok || form != "naa" && form != "eui" {
			return nil
		}
		return "0x" + digits
	}
	return agreed(digits(d.WWN), digits(d.Evidence.Identity.WWN))
}

// wire is the protocol identifier (SPC-5, table "PROTOCOL IDENTIFIER") of the
// wire that the kernel sees.
func wire(d *drivebay.Drive, _ *leaf) any {
	return map[drivebay.Transport]any{drivebay.TransportFC: 0, drivebay.TransportSAS: 6, drivebay.TransportSATA: 8, drivebay.TransportUSB: 9}[d.Transport]
}

// scsiCode is the self-test code (SPC-5, 7.3.18). Whether a test ran in the
// foreground, bit 2 of it, is not kept.
func scsiCode(d *drivebay.Drive, l *leaf) any {
	n, _ := l.number()
	return testKind(d, l.index(0), n, map[uint64]string{1: "short", 2: "long", 5: "short", 6: "long"})
}

// scsiResult is the self-test result (SPC-5, 7.3.18).
func scsiResult(d *drivebay.Drive, l *leaf) any {
	n, _ := l.number()
	return testResult(d, l.index(0), n, map[uint64]drivebay.SelfTestResult{0: drivebay.SelfTestPassed, 1: drivebay.SelfTestAborted, 2: drivebay.SelfTestAborted,
		3: drivebay.SelfTestFatal, 4: drivebay.SelfTestFailed, 5: drivebay.SelfTestFailed, 6: drivebay.SelfTestFailed, 7: drivebay.SelfTestFailed, 15: drivebay.SelfTestRunning})
}

var scsiExempts = []exempt{
	{"scsi_version", "the dictionary has no field for the version of the specification", nil},
	{"scsi_lb_provisioning", "the dictionary has no field for thin provisioning", nil},
	{"scsi_protection_type", "the dictionary has no field for protection information", nil},
	{"scsi_protection_interval_bytes_per_lb", "the dictionary has no field for protection information", nil},
	{"scsi_protection_intervals_per_lb", "the dictionary has no field for protection information", nil},
	{"device_type", "only disks are drives here", nil},
	{"scsi_transport_protocol.name", "the value in words", nil},
	{"scsi_transport_protocol.value", "the kernel names no wire: scsi_debug says of itself that it is a SAS drive, and sits on none",
		func(d *drivebay.Drive, _ *leaf) bool { return d.Transport == drivebay.TransportSCSI }},
	{"rotation_rate", "smartctl 7.3 writes 0 for solid state and for a SCSI drive that does not say",
		func(d *drivebay.Drive, l *leaf) bool { return l.text == "0" && d.Type == drivebay.TypeUnknown }},
	{"smart_support.enabled", "of mode page 1Ch, a setting that is not read; what the drive reports is compared", nil},
	{"temperature_warning", "of mode page 1Ch, a setting that is not read", nil},
	{"smart_status.scsi.ie_string", "the two codes in words", nil},
	{"temperature.current", "smartctl prints 0 for a SCSI drive that has no page with a temperature",
		func(d *drivebay.Drive, l *leaf) bool {
			return l.text == "0" && d.Temperature == nil && d.Evidence.Temperature == nil
		}},
	{"scsi_temperature.drive_trip", "smartctl prints 0 for a SCSI drive that has no page with a temperature",
		func(d *drivebay.Drive, l *leaf) bool {
			return l.text == "0" && (d.Evidence.SCSI == nil || d.Evidence.SCSI.TripTemperature == nil)
		}},
	{"scsi_environmental_reports", "of log page 0Dh subpage 01h, which is not read; the temperature of page 0Dh itself, which smartctl then leaves out, need not be the same", nil},
	{"scsi_background_scan.status.string", "the value in words", nil},
	{"scsi_background_scan.status.number_scans_performed", "the dictionary has no field for how often the background scan ran", nil},
	{"scsi_background_scan.status.number_medium_scans_performed", "the dictionary has no field for how often the background scan ran", nil},
	{"scsi_background_scan.status.scan_progress", "the dictionary has no field for how far the background scan is", nil},
	{"scsi_start_stop_cycle_counter.year_of_manufacture", "the dictionary has no field for the date of manufacture", nil},
	{"scsi_start_stop_cycle_counter.week_of_manufacture", "the dictionary has no field for the date of manufacture", nil},
	{"scsi_start_stop_cycle_counter.specified_cycle_count_over_device_lifetime", "what the maker allows, not what was counted", nil},
	{"scsi_start_stop_cycle_counter.specified_load_unload_count_over_device_lifetime", "what the maker allows, not what was counted", nil},
	{"scsi_start_stop_cycle_counter.accumulated_load_unload_cycles", "the dictionary has no field for load cycles", nil},
	{"scsi_self_test_[].code.string", "the value in words", nil},
	{"scsi_self_test_[].result.string", "the value in words", nil},
	{"scsi_self_test_[].power_on_time.aka", "another name of the key", nil},
	{"scsi_self_test_[].lba_first_failure.aka", "another name of the key", nil},
	{"scsi_self_test_[].failed_segment", "the dictionary has no field for the part of a test that failed", nil},
	{"scsi_self_test_[].sense_key", "the dictionary has no field for the sense of a failed test", nil},
	{"scsi_self_test_[].asc", "the dictionary has no field for the sense of a failed test", nil},
	{"scsi_self_test_[].ascq", "the dictionary has no field for the sense of a failed test", nil},
	{"scsi_self_test_[].vendor_specific", "the dictionary has no field for the sense of a failed test", nil},
	{"scsi_self_test_[].self_test_in_progress", "the result of an entry, which is compared, in a word", nil},
	{"scsi_extended_self_test_seconds", "how long a test takes, not what it found", nil},
}
