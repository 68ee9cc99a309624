package compare

import "github.com/drivebay/drivebay"

// health is a row of the SMART / health information log.
func health(key string, ours func(n *drivebay.NVMe) any) row {
	return row{"nvme_smart_health_information_log." + key, ofNVMe(ours)}
}

func ofNVMe(ours func(n *drivebay.NVMe) any) func(*drivebay.Drive, *leaf) any {
	return func(d *drivebay.Drive, _ *leaf) any {
		if d.Evidence.NVMe == nil {
			return nil
		}
		return ours(d.Evidence.NVMe)
	}
}

// warning is a bit of the critical warning, spelled out.
func warning(key string, bit uint8) row {
	return row{"smart_status.nvme." + key, ofNVMe(func(n *drivebay.NVMe) any { return n.CriticalWarning&bit != 0 })}
}

// kelvins is the whole number of kelvins between the scales that smartctl and
// the specification use.
const kelvins = 273

var nvmeRows = []row{
	{"smart_support.available", func(d *drivebay.Drive, _ *leaf) any { return d.Evidence.NVMe != nil }},
	{"smart_support.enabled", func(d *drivebay.Drive, _ *leaf) any { return d.Evidence.NVMe != nil }},
	{"smart_status.nvme.value", ofNVMe(func(n *drivebay.NVMe) any { return n.CriticalWarning })},
	warning("spare_below_threshold", 1<<0),
	warning("temperature_above_or_below_threshold", 1<<1),
	warning("reliability_degraded", 1<<2),
	warning("media_read_only", 1<<3),
	warning("volatile_memory_backup_failed", 1<<4),
	warning("persistent_memory_region_unreliable", 1<<5),
	{"smart_status.nvme.other", ofNVMe(func(n *drivebay.NVMe) any { return n.CriticalWarning &^ 0x3F })},

	health("critical_warning", func(n *drivebay.NVMe) any { return n.CriticalWarning }),
	health("temperature", func(n *drivebay.NVMe) any { return int(n.TemperatureKelvin) - kelvins }),
	health("available_spare", func(n *drivebay.NVMe) any { return n.AvailableSpare }),
	health("available_spare_threshold", func(n *drivebay.NVMe) any { return n.SpareThreshold }),
	health("percentage_used", func(n *drivebay.NVMe) any { return n.PercentageUsed }),
	health("data_units_read", func(n *drivebay.NVMe) any { return n.DataUnitsRead }),
	health("data_units_written", func(n *drivebay.NVMe) any { return n.DataUnitsWritten }),
	health("host_reads", func(n *drivebay.NVMe) any { return n.HostReads }),
	health("host_writes", func(n *drivebay.NVMe) any { return n.HostWrites }),
	health("controller_busy_time", func(n *drivebay.NVMe) any { return n.BusyMinutes }),
	health("power_cycles", func(n *drivebay.NVMe) any { return n.PowerCycles }),
	health("power_on_hours", func(n *drivebay.NVMe) any { return n.PowerOnHours }),
	health("unsafe_shutdowns", func(n *drivebay.NVMe) any { return n.UnsafeShutdowns }),
	health("media_errors", func(n *drivebay.NVMe) any { return n.MediaErrors }),
	health("num_err_log_entries", func(n *drivebay.NVMe) any { return n.ErrorLogEntries }),
	health("warning_temp_time", func(n *drivebay.NVMe) any { return n.WarningTempTime }),
	health("critical_comp_time", func(n *drivebay.NVMe) any { return n.CriticalTempTime }),
	{"nvme_composite_temperature_threshold.warning", ofNVMe(func(n *drivebay.NVMe) any { return filled(n.WarningTemp) })},
	{"nvme_composite_temperature_threshold.critical", ofNVMe(func(n *drivebay.NVMe) any { return filled(n.CriticalTemp) })},

	{"nvme_namespaces[].size.bytes", size},
	{"nvme_namespaces[].size.blocks", blocks},
	{"nvme_namespaces[].formatted_lba_size", func(d *drivebay.Drive, _ *leaf) any { return filled(d.LogicalBlock) }},
	{"nvme_namespaces[].eui64.oui", bits("eui.", 40, 24)},
	{"nvme_namespaces[].eui64.ext_id", bits("eui.", 0, 40)},
}

var nvmeExempts = []exempt{
	{"nvme_pci_vendor", "the dictionary has no field for the maker of the controller's chip", nil},
	{"nvme_ieee_oui_identifier", "the dictionary has no field for the maker of the controller's chip", nil},
	{"nvme_controller_id", "the dictionary has no field for the number of the controller in its subsystem", nil},
	{"nvme_version", "the dictionary has no field for the version of the specification", nil},
	{"nvme_number_of_namespaces", "how many namespaces there may be, not how many there are", nil},
	{"nvme_total_capacity", "of the subsystem; a drive is a namespace", nil},
	{"nvme_unallocated_capacity", "of the subsystem; a drive is a namespace", nil},
	{"nvme_namespaces[].id", "the kernel's name of a namespace counts by itself (nvme(4) instance numbers), the dictionary has no other", nil},
	{"nvme_namespaces[].capacity", "how much may be allocated of a thin namespace; the size is compared", nil},
	{"nvme_namespaces[].utilization", "how much is allocated of a thin namespace; the size is compared", nil},
	{"nvme_smart_health_information_log.temperature_sensors", "the dictionary has the composite temperature, which is compared", nil},
}
