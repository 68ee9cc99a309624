package compare

import (
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

// commonRows are the leaves that every kind of drive may have.
var commonRows = []row{
	{"device.protocol", func(d *drivebay.Drive, _ *leaf) any {
		words := map[drivebay.Protocol]any{drivebay.ProtocolATA: "ATA", drivebay.ProtocolNVMe: "NVMe", drivebay.ProtocolSCSI: "SCSI"}
		return agreed(words[d.Protocol], words[d.Evidence.Protocol])
	}},
	{"model_name", func(d *drivebay.Drive, _ *leaf) any {
		return agreed(filled(d.Model), filled(d.Evidence.Identity.Model))
	}},
	{"serial_number", func(d *drivebay.Drive, _ *leaf) any {
		return agreed(filled(d.Serial), filled(d.Evidence.Identity.Serial))
	}},
	{"firmware_version", firmware},
	{"user_capacity.bytes", size},
	{"user_capacity.blocks", blocks},
	{"logical_block_size", func(d *drivebay.Drive, _ *leaf) any { return filled(d.LogicalBlock) }},
	{"physical_block_size", func(d *drivebay.Drive, _ *leaf) any { return filled(d.PhysBlock) }},
	{"rotation_rate", rotation},
	{"smart_status.passed", func(d *drivebay.Drive, _ *leaf) any {
		return map[drivebay.Verdict]any{drivebay.VerdictPassed: true, drivebay.VerdictFailed: false}[d.Evidence.Verdict]
	}},
	{"temperature.current", func(d *drivebay.Drive, _ *leaf) any {
		return agreed(told(d.Temperature), told(d.Evidence.Temperature))
	}},
	{"power_on_time.hours", func(d *drivebay.Drive, _ *leaf) any {
		return agreed(told(d.PowerOnHours), told(d.Evidence.PowerOnHours))
	}},
	{"power_cycle_count", func(d *drivebay.Drive, _ *leaf) any { return told(d.Evidence.PowerCycles) }},
}

func firmware(d *drivebay.Drive, _ *leaf) any {
	return agreed(filled(d.Firmware), filled(d.Evidence.Identity.Firmware))
}

func size(d *drivebay.Drive, _ *leaf) any {
	return agreed(filled(d.Size), filled(d.Evidence.Identity.Size))
}

func blocks(d *drivebay.Drive, _ *leaf) any {
	if d.LogicalBlock == 0 {
		return nil
	}
	return filled(d.Size / uint64(d.LogicalBlock))
}

// rotation is 0 for solid state: smartctl writes 0 where the drive says 1.
func rotation(d *drivebay.Drive, _ *leaf) any {
	turns := func(t drivebay.Type, rpm int) any {
		switch t {
		case drivebay.TypeSSD:
			return rpm
		case drivebay.TypeHDD:
			return filled(rpm)
		}
		return nil
	}
	return agreed(turns(d.Type, d.RPM), turns(d.Evidence.Type, d.Evidence.Identity.RPM))
}

// named is the number in a drive's name of a form: "naa." or "eui.", of 16 digits.
func named(d *drivebay.Drive, form string) (n uint64, ok bool) {
	for _, wwn := range []string{d.WWN, d.Evidence.Identity.WWN} {
		digits, is := strings.CutPrefix(wwn, form)
		if !is || len(digits) != 16 {
			continue
		}
		if n, err := strconv.ParseUint(digits, 16, 64); err == nil {
			return n, true
		}
	}
	return 0, false
}

// bits takes width bits of such a number, from the bit first on.
func bits(form string, first, width int) func(*drivebay.Drive, *leaf) any {
	return func(d *drivebay.Drive, _ *leaf) any {
		n, ok := named(d, form)
		if !ok {
			return nil
		}
		return n >> first & (1<<width - 1)
	}
}

// commonExempts are parts of every document that say nothing of the drive, or
// what the dictionary has no word for.
var commonExempts = []exempt{
	{"json_format_version", "of the tool, not of the drive", nil},
	{"smartctl", "of the tool: its version, arguments, complaints; the exit status sums up what is compared leaf by leaf", nil},
	{"local_time", "of the clock", nil},
	{"device.name", "the name that smartctl was asked by; drives are told apart by serial and WWN", nil},
	{"device.info_name", "the same name with a word on the way there", nil},
	{"device.type", "the way that smartctl took to the drive", nil},
	{"model_family", "of smartctl's database", nil},
	{"in_smartctl_database", "of smartctl's database", nil},
	{"form_factor", "the dictionary has no field for the size of the case", nil},
	{"power_on_time.minutes", "whole hours are kept", nil},
	{"temperature.power_cycle_min", "extremes are kept where they are device statistics", nil},
	{"temperature.power_cycle_max", "extremes are kept where they are device statistics", nil},
	{"temperature.lifetime_min", "extremes are kept where they are device statistics", nil},
	{"temperature.lifetime_max", "extremes are kept where they are device statistics", nil},
	{"temperature.lifetime_over_limit_minutes", "a device statistic, compared there", nil},
	{"temperature.lifetime_under_limit_minutes", "a device statistic, compared there", nil},
	{"temperature.op_limit_min", "a device statistic, compared there, or of SCT status, which is not read", nil},
	{"temperature.op_limit_max", "a device statistic, compared there, or of SCT status, which is not read", nil},
	{"temperature.limit_min", "of SCT status, which is not read", nil},
	{"temperature.limit_max", "of SCT status, which is not read", nil},
}
