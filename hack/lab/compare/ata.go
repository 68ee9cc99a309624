package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

func ofATA(ours func(a *drivebay.ATA, l *leaf) any) func(*drivebay.Drive, *leaf) any {
	return func(d *drivebay.Drive, l *leaf) any {
		if d.Evidence.ATA == nil {
			return nil
		}
		return ours(d.Evidence.ATA, l)
	}
}

// attribute is a row of the SMART table; the row is known by its place, so that
// a wrong id is seen as one.
func attribute(key string, ours func(a drivebay.Attribute, l *leaf) any) row {
	return row{"ata_smart_attributes.table[]." + key, ofATA(func(a *drivebay.ATA, l *leaf) any {
		if i := l.index(0); i >= 0 && i < len(a.Attributes) {
			return ours(a.Attributes[i], l)
		}
		return nil
	})}
}

// failed is smartctl's word for an attribute beyond its threshold.
func failed(a drivebay.Attribute, _ *leaf) any {
	switch {
	case a.FailedNow:
		return "now"
	case a.FailedPast:
		return "past"
	}
	return ""
}

// rawText is our wording of the raw bits; the number that counts must be one of
// those that smartctl prints.
func rawText(a drivebay.Attribute, l *leaf) any {
	numbers := strings.FieldsFunc(l.text, func(r rune) bool { return r < '0' || r > '9' })
	if !slices.Contains(numbers, fmt.Sprint(a.Count)) {
		return fmt.Sprintf("%s, counted as %d", a.Text, a.Count)
	}
	return a.Text
}

var ataRows = slices.Concat([]row{
	{"wwn.naa", bits("naa.", 60, 4)},
	{"wwn.oui", bits("naa.", 36, 24)},
	{"wwn.id", bits("naa.", 0, 36)},
	{"smart_support.available", ofATA(func(a *drivebay.ATA, _ *leaf) any { return a.SMARTSupported })},
	{"smart_support.enabled", ofATA(func(a *drivebay.ATA, _ *leaf) any { return a.SMARTEnabled })},
	{"ata_smart_data.self_test.status.value", underWay},
	{"ata_smart_data.self_test.status.remaining_percent", remaining},
	attribute("id", func(a drivebay.Attribute, _ *leaf) any { return a.ID }),
	attribute("name", func(a drivebay.Attribute, _ *leaf) any { return a.Name }),
	attribute("value", func(a drivebay.Attribute, _ *leaf) any { return a.Value }),
	attribute("worst", func(a drivebay.Attribute, _ *leaf) any { return a.Worst }),
	attribute("thresh", func(a drivebay.Attribute, _ *leaf) any { return told(a.Threshold) }),
	attribute("when_failed", failed),
	attribute("flags.prefailure", func(a drivebay.Attribute, _ *leaf) any { return a.Prefail }),
	attribute("raw.value", func(a drivebay.Attribute, _ *leaf) any { return a.Raw }),
	attribute("raw.string", rawText),
	{"ata_smart_error_log.summary.count", ofATA(func(a *drivebay.ATA, _ *leaf) any { return told(a.ErrorCount) })},
	{"ata_smart_error_log.extended.count", ofATA(func(a *drivebay.ATA, _ *leaf) any { return told(a.ErrorCount) })},
}, logRows("summary", "standard"), logRows("extended", "extended"), statisticRows)

var ataExempts = slices.Concat([]exempt{
	{"ata_additional_product_id", "the dictionary has no field for a second product id", nil},
	{"ata_version", "the dictionary has no field for the version of the specification", nil},
	{"sata_version", "the dictionary has no field for the version of the specification", nil},
	{"interface_speed", "the dictionary has no field for the speed of the wire", nil},
	{"trim", "the dictionary has no field for TRIM", nil},
	{"zoned_device", "the dictionary has no field for zones", nil},
	{"write_cache", "a setting that is not read", nil},
	{"read_lookahead", "a setting that is not read", nil},
	{"ata_aam", "a setting that is not read", nil},
	{"ata_apm", "a setting that is not read", nil},
	{"ata_dsn", "a setting that is not read", nil},
	{"ata_security", "a setting that is not read", nil},
	{"ata_smart_data.capabilities", "what may be asked of the drive; what it answers is compared", nil},
	{"ata_smart_data.offline_data_collection", "when the drive last collected attributes; the attributes are compared", nil},
	{"ata_smart_data.self_test.polling_minutes", "how long a test takes, not what it found", nil},
	{"ata_smart_data.self_test.status.string", "the value in words", nil},
	{"ata_smart_data.self_test.status.passed", "the value in a word", nil},
	{"ata_smart_data.self_test.status.value", "how the last self-test ended, which the log of them says too", idle},
	{"ata_smart_attributes.revision", "of the table, not of the drive", nil},
	{"ata_smart_attributes.table[].name", "of smartctl's database of models: ours is another one",
		func(_ *drivebay.Drive, l *leaf) bool { return l.doc.text("in_smartctl_database") == "true" }},
	{"ata_smart_attributes.table[].flags.value", "all flags at once; the one that is kept is compared", nil},
	{"ata_smart_attributes.table[].flags.string", "all flags at once; the one that is kept is compared", nil},
	{"ata_smart_attributes.table[].flags.updated_online", "of the flags, the dictionary has prefailure only", nil},
	{"ata_smart_attributes.table[].flags.performance", "of the flags, the dictionary has prefailure only", nil},
	{"ata_smart_attributes.table[].flags.error_rate", "of the flags, the dictionary has prefailure only", nil},
	{"ata_smart_attributes.table[].flags.event_count", "of the flags, the dictionary has prefailure only", nil},
	{"ata_smart_attributes.table[].flags.auto_keep", "of the flags, the dictionary has prefailure only", nil},
	{"ata_smart_attributes.table[].flags.other", "of the flags, the dictionary has prefailure only", nil},
	{"ata_smart_error_log.summary.count", "the other log counts more errors, and is kept", otherLog("ata_smart_error_log.extended.count")},
	{"ata_smart_error_log.extended.count", "the other log counts more errors, and is kept", otherLog("ata_smart_error_log.summary.count")},
	{"ata_device_statistics.supported_pages", "what may be asked of the drive; what it answers is compared", nil},
	{"ata_device_statistics.pages[].name", "the number in words", nil},
	{"ata_device_statistics.pages[].revision", "of the page, not of the drive", nil},
	{"ata_device_statistics.pages[].table[].offset", unvouched, invalid},
	{"ata_device_statistics.pages[].table[].name", unvouched, invalid},
	{"ata_device_statistics.pages[].table[].flags.normalized", unvouched, invalid},
	{"ata_device_statistics.pages[].table[].size", "of the specification, not of the drive", nil},
	{"ata_device_statistics.pages[].table[].flags.value", "all flags at once; those that are kept are compared", nil},
	{"ata_device_statistics.pages[].table[].flags.string", "all flags at once; those that are kept are compared", nil},
	{"ata_device_statistics.pages[].table[].flags.supports_dsn", "the dictionary has no field for notifications", nil},
	{"ata_device_statistics.pages[].table[].flags.monitored_condition_met", "the dictionary has no field for notifications", nil},
	{"ata_device_statistics.pages[].table[].flags.other", "the dictionary has no field for reserved bits", nil},
	{"ata_log_directory", "what may be asked of the drive; what it answers is compared", nil},
	{"ata_smart_selective_self_test_log", "a log that is read only where its spans can end a finding", nil},
	{"ata_sct_capabilities", "SCT is not read", nil},
	{"ata_sct_status", "SCT is not read", nil},
	{"ata_sct_temperature_history", "SCT is not read", nil},
	{"ata_sct_erc", "SCT is not read", nil},
	{"ata_pending_defects_log", "a log that is not read; pending sectors are known by their attribute", nil},
	{"sata_phy_event_counters", "a log that is not read; errors of the wire are known by their attribute and device statistic", nil},
}, logExempts("summary", "standard"), logExempts("extended", "extended"))
