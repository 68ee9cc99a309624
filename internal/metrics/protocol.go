package metrics

import (
	"strconv"

	"github.com/drivebay/drivebay"
)

const (
	dataUnit      = 512_000 // bytes of an NVMe data unit (NVMe base 2.0, figure 207)
	minuteSeconds = 60
)

var attributeLabels = []string{"id", "name"}

// ataMetrics holds the SMART attributes and the device statistics.
var ataMetrics = []metric[*drivebay.Drive]{
	{"smart_attribute_value", "Normalized value of an ATA SMART attribute.", gauge, attributeLabels, attribute(func(a drivebay.Attribute, add emit) { add(float64(a.Value)) })},
	{"smart_attribute_worst", "Worst normalized value so far.", gauge, attributeLabels, attribute(func(a drivebay.Attribute, add emit) { add(float64(a.Worst)) })},
	{"smart_attribute_threshold", "Normalized value at which the attribute fails.", gauge, attributeLabels, attribute(func(a drivebay.Attribute, add emit) {
		if a.Threshold != nil {
			add(float64(*a.Threshold))
		}
	})},
	{"smart_attribute_raw", "Raw value as a number, masked by the vendor's format.", gauge, attributeLabels, attribute(func(a drivebay.Attribute, add emit) { add(float64(a.Count)) })},
	{"ata_statistic", "Entry of the ATA device statistics log.", gauge, []string{"page", "offset", "name"}, ofATA(func(a *drivebay.ATA, add emit) {
		for _, s := range a.Statistics {
			add(float64(s.Value), strconv.Itoa(int(s.Page)), strconv.Itoa(int(s.Offset)), s.Name)
		}
	})},
	{"ata_logged_errors_total", "Errors that the drive logged over its life.", counter, nil, ofATA(func(a *drivebay.ATA, add emit) { number(add, a.ErrorCount) })},
}

// attribute reads all SMART attributes. The label name depends on the vendor; alerts have to use
// id.
func attribute(f func(drivebay.Attribute, emit)) func(*drivebay.Drive, emit) {
	return ofATA(func(ata *drivebay.ATA, add emit) {
		for _, a := range ata.Attributes {
			f(a, func(v float64, _ ...string) { add(v, strconv.Itoa(int(a.ID)), a.Name) })
		}
	})
}

func ofATA(f func(*drivebay.ATA, emit)) func(*drivebay.Drive, emit) {
	return ofEvidence(func(e *drivebay.Evidence, add emit) {
		if e.ATA != nil {
			f(e.ATA, add)
		}
	})
}

func nvme(name, help string, value func(*drivebay.NVMe) float64) metric[*drivebay.Drive] {
	return metric[*drivebay.Drive]{"nvme_" + name, help, gauge, nil, ofEvidence(func(e *drivebay.Evidence, add emit) {
		if e.NVMe != nil {
			add(value(e.NVMe))
		}
	})}
}

func nvmeTotal(name, help string, value func(*drivebay.NVMe) float64) metric[*drivebay.Drive] {
	m := nvme(name+"_total", help, value)
	m.kind = counter
	return m
}

// nvmeMetrics holds the fields of log page 02h.
var nvmeMetrics = []metric[*drivebay.Drive]{
	nvme("critical_warning", "Bits of the critical warning field.", func(n *drivebay.NVMe) float64 { return float64(n.CriticalWarning) }),
	nvme("available_spare_ratio", "Share of the spare blocks that is left.", func(n *drivebay.NVMe) float64 { return float64(n.AvailableSpare) / percent }),
	nvme("available_spare_threshold_ratio", "Share of the spare blocks below which the drive warns.", func(n *drivebay.NVMe) float64 { return float64(n.SpareThreshold) / percent }),
	nvme("used_ratio", "The drive's own estimate of its wear: 1 is the rated endurance.", func(n *drivebay.NVMe) float64 { return float64(n.PercentageUsed) / percent }),
	nvme("temperature_kelvin", "Composite temperature, as in the log.", func(n *drivebay.NVMe) float64 { return float64(n.TemperatureKelvin) }),
	nvme("temperature_warning_celsius", "Temperature at which the drive warns; 0 if the drive reports none.", func(n *drivebay.NVMe) float64 { return float64(n.WarningTemp) }),
	nvme("temperature_critical_celsius", "Temperature at which the drive may stop; 0 if the drive reports none.", func(n *drivebay.NVMe) float64 { return float64(n.CriticalTemp) }),
	nvmeTotal("read_bytes", "Bytes read by the host.", func(n *drivebay.NVMe) float64 { return float64(n.DataUnitsRead) * dataUnit }),
	nvmeTotal("written_bytes", "Bytes written by the host.", func(n *drivebay.NVMe) float64 { return float64(n.DataUnitsWritten) * dataUnit }),
	nvmeTotal("host_reads", "Read commands.", func(n *drivebay.NVMe) float64 { return float64(n.HostReads) }),
	nvmeTotal("host_writes", "Write commands.", func(n *drivebay.NVMe) float64 { return float64(n.HostWrites) }),
	nvmeTotal("busy_seconds", "Time with commands outstanding.", func(n *drivebay.NVMe) float64 { return float64(n.BusyMinutes) * minuteSeconds }),
	nvmeTotal("power_cycles", "Number of power cycles.", func(n *drivebay.NVMe) float64 { return float64(n.PowerCycles) }),
	nvmeTotal("power_on_seconds", "Time that the drive was powered on, in whole hours.", func(n *drivebay.NVMe) float64 { return float64(n.PowerOnHours) * hourSeconds }),
	nvmeTotal("unsafe_shutdowns", "Number of power losses without a shutdown notification.", func(n *drivebay.NVMe) float64 { return float64(n.UnsafeShutdowns) }),
	nvmeTotal("media_errors", "Unrecovered data integrity errors.", func(n *drivebay.NVMe) float64 { return float64(n.MediaErrors) }),
	nvmeTotal("error_log_entries", "Entries of the error log; also high on healthy drives.", func(n *drivebay.NVMe) float64 { return float64(n.ErrorLogEntries) }),
	nvmeTotal("temperature_warning_seconds", "Time above the warning temperature.", func(n *drivebay.NVMe) float64 { return float64(n.WarningTempTime) * minuteSeconds }),
	nvmeTotal("temperature_critical_seconds", "Time above the critical temperature.", func(n *drivebay.NVMe) float64 { return float64(n.CriticalTempTime) * minuteSeconds }),
}

func ofSCSI(f func(*drivebay.SCSI, emit)) func(*drivebay.Drive, emit) {
	return ofEvidence(func(e *drivebay.Evidence, add emit) {
		if e.SCSI != nil {
			f(e.SCSI, add)
		}
	})
}

func errorCounter(value func(drivebay.ErrorCounter) uint64) func(*drivebay.Drive, emit) {
	return ofSCSI(func(s *drivebay.SCSI, add emit) {
		for op, c := range s.ErrorCounters {
			add(float64(value(c)), op)
		}
	})
}

var operation = []string{"operation"}

// scsiMetrics holds the log pages of SAS and other SCSI drives.
var scsiMetrics = []metric[*drivebay.Drive]{
	{"scsi_corrected_errors_total", "Errors that the drive corrected.", counter, operation, errorCounter(func(c drivebay.ErrorCounter) uint64 { return c.Corrected })},
	{"scsi_corrected_fast_errors_total", "Errors corrected without delay.", counter, operation, errorCounter(func(c drivebay.ErrorCounter) uint64 { return c.CorrectedFast })},
	{"scsi_corrected_delayed_errors_total", "Errors corrected with delay.", counter, operation, errorCounter(func(c drivebay.ErrorCounter) uint64 { return c.CorrectedDelayed })},
	{"scsi_retries_total", "Rereads and rewrites.", counter, operation, errorCounter(func(c drivebay.ErrorCounter) uint64 { return c.Rereads })},
	{"scsi_correction_invocations_total", "Runs of the correction algorithm.", counter, operation, errorCounter(func(c drivebay.ErrorCounter) uint64 { return c.Invocations })},
	{"scsi_uncorrected_errors_total", "Errors that the drive could not correct.", counter, operation, errorCounter(func(c drivebay.ErrorCounter) uint64 { return c.Uncorrected })},
	{"scsi_processed_bytes_total", "Bytes processed.", counter, operation, errorCounter(func(c drivebay.ErrorCounter) uint64 { return c.Bytes })},
	{"scsi_non_medium_errors_total", "Errors outside the medium; also high on healthy drives.", counter, nil, ofSCSI(func(s *drivebay.SCSI, add emit) { number(add, s.NonMedium) })},
	{"scsi_start_stops_total", "Times that the spindle was started.", counter, nil, ofSCSI(func(s *drivebay.SCSI, add emit) { number(add, s.StartStops) })},
	{"scsi_grown_defects", "Entries of the grown defect list.", gauge, nil, ofSCSI(func(s *drivebay.SCSI, add emit) { number(add, s.GrownDefects) })},
	{"scsi_pending_defects", "Sectors that wait to be reassigned.", gauge, nil, ofSCSI(func(s *drivebay.SCSI, add emit) { number(add, s.PendingDefects) })},
	{"scsi_trip_temperature_celsius", "Temperature at which the drive warns.", gauge, nil, ofSCSI(func(s *drivebay.SCSI, add emit) { number(add, s.TripTemperature) })},
}

func ofKernel(f func(*drivebay.Kernel, emit)) func(*drivebay.Drive, emit) {
	return func(d *drivebay.Drive, add emit) {
		if d.Kernel != nil {
			f(d.Kernel, add)
		}
	}
}

// kernelMetrics holds the evidence of the kernel, which exists without an answer of the drive.
var kernelMetrics = []metric[*drivebay.Drive]{
	{"kernel_io_errors_total", "Commands that failed; above 0 on healthy drives, so watch the growth.", counter, nil, ofKernel(func(k *drivebay.Kernel, add emit) { number(add, k.IOErrors) })},
	{"kernel_io_timeouts_total", "Commands that timed out; on SATA also commands that failed.", counter, nil, ofKernel(func(k *drivebay.Kernel, add emit) { number(add, k.IOTimeouts) })},
	{"kernel_io_done_total", "Commands that completed.", counter, nil, ofKernel(func(k *drivebay.Kernel, add emit) { number(add, k.IODone) })},
	{"kernel_completed_total", "Reads, writes, discards and flushes that completed.", counter, nil, ofKernel(func(k *drivebay.Kernel, add emit) { add(float64(k.Completed)) })},
	{"kernel_inflight", "Requests under way.", gauge, nil, ofKernel(func(k *drivebay.Kernel, add emit) { add(float64(k.Inflight)) })},
	{"kernel_frozen_seconds", "How long requests have waited while none completed.", gauge, nil, ofKernel(func(k *drivebay.Kernel, add emit) { add(k.Frozen.Seconds()) })},
	{"kernel_question_stuck_seconds", "How long the present request of drivebay to the drive has had no answer.", gauge, nil, ofKernel(func(k *drivebay.Kernel, add emit) { add(k.LaneStuck.Seconds()) })},
	{"kernel_log_media_errors", "Distinct bad sectors in the kernel log of the last 24 hours.", gauge, nil, ofKernel(func(k *drivebay.Kernel, add emit) { add(float64(k.MediaErrors24h)) })},
	{"kernel_log_other_errors", "Other errors in the kernel log of the last 24 hours.", gauge, nil, ofKernel(func(k *drivebay.Kernel, add emit) { add(float64(k.OtherErrors24h)) })},
	{"kernel_log_resets", "Link or device resets in the kernel log of the last hour.", gauge, nil, ofKernel(func(k *drivebay.Kernel, add emit) { add(float64(k.Resets1h)) })},
	{"filesystem_errors_total", "Errors that a filesystem counted on this drive.", counter, []string{"device", "fs"}, ofKernel(func(k *drivebay.Kernel, add emit) {
		for _, f := range k.Filesystems {
			add(float64(f.Errors), f.Device, f.FS)
		}
	})},
}
