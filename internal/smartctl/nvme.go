package smartctl

import (
	"fmt"

	"github.com/drivebay/drivebay"
)

// nvmeSmartPage is the page of the health log, with the name that package smart uses.
const nvmeSmartPage = "nvme-smart-log"

func nvme(ev *drivebay.Evidence, root node) {
	log := root.at("nvme_smart_health_information_log")
	nvmeSelfTests(ev, root.at("nvme_self_test_log"))
	warning, warned := root.at("smart_status", "nvme", "value").within(255)
	if obj, ok := log.v.(map[string]any); !ok || len(obj) == 0 {
		// The status is a byte of the log: where it is present, the log was read and only not
		// printed (smartctl -H).
		switch {
		case warned && warning != 0:
			ev.NVMe = &drivebay.NVMe{CriticalWarning: uint8(warning)}
		case !warned || log.there():
			root.t.problem(nvmeSmartPage, "the document has no SMART / health information log")
		}
		return
	}
	n := nvmeLog(log)
	limits := root.at("nvme_composite_temperature_threshold")
	n.WarningTemp, _ = limits.at("warning").int()
	n.CriticalTemp, _ = limits.at("critical").int()
	n.CriticalWarning |= uint8(warning)
	n.Errors = nvmeErrors(root.at("nvme_error_information_log"))
	if blank(n) {
		root.t.problem(nvmeSmartPage, "every field of the SMART / health information log is zero: the command failed")
		return
	}
	ev.NVMe = n
	used := int(n.PercentageUsed)
	ev.PercentUsed = &used
	ev.PowerOnHours, ev.PowerCycles = &n.PowerOnHours, ptr(log.wide("power_cycles"))
	if _, ok := log.wide("data_units_written"); ok {
		ev.BytesWritten = ptr(times(n.DataUnitsWritten, 512_000), true)
	}
	if _, ok := log.wide("data_units_read"); ok {
		ev.BytesRead = ptr(times(n.DataUnitsRead, 512_000), true)
	}
	if t, ok := log.at("temperature").int(); ok && ev.Temperature == nil && n.TemperatureKelvin > 0 {
		ev.Temperature = &t
	}
}

// nvmeLog decodes log page 02h (NVM Express base specification 2.0, figure 207).
func nvmeLog(log node) *drivebay.NVMe {
	n := &drivebay.NVMe{}
	for _, f := range []struct {
		key  string
		into *uint8
	}{
		{"critical_warning", &n.CriticalWarning},
		{"available_spare_threshold", &n.SpareThreshold},
		{"percentage_used", &n.PercentageUsed},
	} {
		if v, ok := log.at(f.key).uint(); ok {
			*f.into = uint8(min(v, 255)) // the drive itself limits this to 255 (above 254 %)
		}
	}
	// A spare of 0 with a threshold would mean a failing drive: without the spare, the threshold
	// is dropped.
	if spare, ok := log.at("available_spare").within(255); ok {
		n.AvailableSpare = uint8(spare)
	} else {
		n.SpareThreshold = 0
	}
	for _, f := range []struct {
		key  string
		into *uint64
	}{
		{"data_units_read", &n.DataUnitsRead},
		{"data_units_written", &n.DataUnitsWritten},
		{"host_reads", &n.HostReads},
		{"host_writes", &n.HostWrites},
		{"controller_busy_time", &n.BusyMinutes},
		{"power_cycles", &n.PowerCycles},
		{"power_on_hours", &n.PowerOnHours},
		{"unsafe_shutdowns", &n.UnsafeShutdowns},
		{"media_errors", &n.MediaErrors},
		{"num_err_log_entries", &n.ErrorLogEntries},
	} {
		*f.into, _ = log.wide(f.key)
	}
	warning, _ := log.at("warning_temp_time").within(1<<32 - 1)
	critical, _ := log.at("critical_comp_time").within(1<<32 - 1)
	n.WarningTempTime, n.CriticalTempTime = uint32(warning), uint32(critical)
	if c, ok := log.at("temperature").int(); ok && c > -273 && c < 1000 {
		n.TemperatureKelvin = uint16(c + 273)
	}
	return n
}

// blank reports whether no drive can have written the log: all counters are 0 and there is no
// spare.
func blank(n *drivebay.NVMe) bool {
	counters := n.DataUnitsRead | n.DataUnitsWritten | n.HostReads | n.HostWrites | n.PowerCycles | n.PowerOnHours | n.MediaErrors | n.ErrorLogEntries
	return counters == 0 && n.CriticalWarning|n.AvailableSpare|n.SpareThreshold|n.PercentageUsed == 0
}

func nvmeErrors(log node) []drivebay.DriveLog {
	var out []drivebay.DriveLog
	for _, row := range log.at("table").list() {
		e := drivebay.DriveLog{Text: row.at("status_field", "string").text()}
		e.Number, _ = row.at("error_count").uint()
		e.LBA, _ = row.at("lba").wide("value")
		if v, ok := row.at("status_field", "value").uint(); ok && e.Text == "" {
			e.Text = fmt.Sprintf("status 0x%04x", v)
		}
		out = append(out, e)
	}
	return out
}

var nvmeKinds = map[uint64]string{1: "short", 2: "long"}

// nvmeResults decodes the low nibble of the device self-test status (NVM Express base
// specification 2.0, figure 213).
var nvmeResults = [16]drivebay.SelfTestResult{
	0x0: drivebay.SelfTestPassed,
	0x1: drivebay.SelfTestAborted, // by a command
	0x2: drivebay.SelfTestAborted, // by a controller reset
	0x3: drivebay.SelfTestAborted, // by a namespace that went away
	0x4: drivebay.SelfTestAborted, // by a format
	0x5: drivebay.SelfTestFatal,   // could not complete
	0x6: drivebay.SelfTestFailed,  // an unknown segment failed
	0x7: drivebay.SelfTestFailed,  // a segment failed
	0x8: drivebay.SelfTestAborted, // for an unknown reason
	0x9: drivebay.SelfTestAborted, // by a sanitize
}

func nvmeSelfTests(ev *drivebay.Evidence, log node) {
	if op, ok := log.at("current_self_test_operation", "value").within(15); ok && op != 0 {
		if done, ok := log.at("current_self_test_completion_percent").within(100); ok {
			left := 100 - int(done)
			ev.SelfTestProgress = &left
		}
	}
	for _, row := range log.at("table").list() {
		result, ok := row.at("self_test_result", "value").within(15)
		if !ok || result == 0xF { // an unused entry
			continue
		}
		kind, _ := row.at("self_test_code", "value").within(15)
		t := drivebay.SelfTest{Kind: selfTestKind(nvmeKinds, kind), Result: nvmeResults[result], Text: row.at("self_test_result", "string").text()}
		t.Hours, _ = row.at("power_on_hours").uint()
		if lba := row.at("lba"); lba.there() {
			if _, nested := lba.v.(map[string]any); nested {
				lba = lba.at("value")
			}
			t.LBA = ptr(lba.uint())
		}
		ev.SelfTests = append(ev.SelfTests, t)
	}
}
