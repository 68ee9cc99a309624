package smartctl

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
)

func ata(ev *drivebay.Evidence, root node) {
	a := &drivebay.ATA{SMARTSupported: true, SMARTEnabled: true}
	if available, ok := root.at("smart_support", "available").bool(); ok {
		a.SMARTSupported = available
	}
	if enabled, ok := root.at("smart_support", "enabled").bool(); ok {
		a.SMARTEnabled = enabled && a.SMARTSupported
		if a.SMARTSupported && !enabled {
			ev.Problems = append(ev.Problems, drivebay.Problem{Page: "smart", Text: "SMART is switched off in the drive"})
		}
	}
	for _, row := range root.at("ata_smart_attributes", "table").list() {
		if attr, ok := attribute(row); ok {
			a.Attributes = append(a.Attributes, attr)
		} else {
			row.wrong("an attribute with an id")
		}
	}
	for _, page := range root.at("ata_device_statistics", "pages").list() {
		a.Statistics = append(a.Statistics, statistics(page)...)
	}
	ataErrors(a, root.at("ata_smart_error_log"))
	a.PendingDefects = ptr(root.at("ata_pending_defects_log", "count").uint())
	ev.ATA = a
	if ev.Verdict == drivebay.VerdictUnknown && len(a.Attributes) == 0 && a.SMARTEnabled {
		root.t.problem("ata-smart-data", "the document does not contain the health of the drive")
	}
	ev.SelfTests = ataSelfTests(root.at("ata_smart_self_test_log"))
	a.SelectiveSpans = selectiveSpans(root.at("ata_smart_selective_self_test_log"))
	status := root.at("ata_smart_data", "self_test", "status")
	if v, ok := status.at("value").within(0xFF); ok && ataResults[v>>4] == drivebay.SelfTestRunning {
		left := min(int(v&0xF)*10, 100)
		if n, ok := status.at("remaining_percent").within(100); ok {
			left = int(n)
		}
		ev.SelfTestProgress = &left
	}
	block, ok := root.at("logical_block_size").within(1 << 20)
	if !ok {
		block = 512
	}
	ataTotals(ev, block)
	ataCounted(ev, block)
}

// attribute decodes a row of the SMART table. It rejects a row without a numeric id. A missing
// normalized value stays 0, which is not a legal one (ATA/ATAPI-5 to ATA8-ACS: 01h..FDh); then
// smartctl's comparison with the threshold applies.
func attribute(row node) (drivebay.Attribute, bool) {
	id, ok := row.at("id").within(255)
	if !ok || id == 0 {
		return drivebay.Attribute{}, false
	}
	a := drivebay.Attribute{ID: uint8(id), Name: row.at("name").text()}
	value, okValue := row.at("value").within(255)
	worst, _ := row.at("worst").within(255)
	a.Value, a.Worst, a.NoValue = uint8(value), uint8(worst), !okValue
	if t, ok := row.at("thresh").within(255); ok {
		thresh := uint8(t)
		a.Threshold = &thresh
	}
	a.Prefail = row.at("flags", "prefailure").isTrue()
	when := strings.ToLower(row.at("when_failed").text())
	a.FailedNow = when == "now" || when == "failing_now"
	a.FailedPast = when == "past" || when == "in_the_past"
	// A tool that processed the document may have dropped the comparison and kept the values.
	if !row.at("when_failed").there() && okValue && a.Threshold != nil && *a.Threshold > 0 {
		a.FailedNow = a.Value > 0 && a.Value <= *a.Threshold
		a.FailedPast = !a.FailedNow && a.Worst > 0 && a.Worst <= *a.Threshold
	}
	raw, okRaw := row.at("raw").wide("value")
	a.Raw = raw
	a.Text = row.at("raw", "string").text()
	if n, ok := leading(a.Text); ok {
		a.Count = n
	} else if okRaw {
		a.Count = mask(a.ID, raw)
	}
	return a, true
}

// leading returns the number at the start of a raw string. smartctl's drive database knows the
// vendor's format; the text after the number is additional: "35 (Min/Max 20/50)", "12345h+32m", "0
// (2000 0)", "0/23899760".
func leading(s string) (uint64, bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	if end == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:end], 10, 64)
	if err != nil {
		return math.MaxUint64, true
	}
	return n, true
}

// masks holds the bits of the count where the document has no formatted raw value. 5 and 196 are
// 16-bit words in smartctl's own default format (raw16(raw16)): the upper ones hold the spare pool
// of a Fujitsu or the retry history of a Hitachi. Hours are 24 bits, with minutes and flags above
// them (raw24(raw8)); a temperature is the low byte, with its extremes above it (tempminmax).
var masks = map[uint8]uint64{5: 0xFFFF, 196: 0xFFFF, 3: 0xFFFF, 9: 0xFFFFFF, 240: 0xFFFFFF, 190: 0xFF, 194: 0xFF}

func mask(id uint8, raw uint64) uint64 {
	if m, ok := masks[id]; ok {
		return raw & m
	}
	return raw
}

// statistics decodes a page of the device statistics log. It skips entries that are not valid or
// were never initialized (ACS-4, 9.5).
func statistics(page node) []drivebay.Statistic {
	number, ok := page.at("number").within(255)
	if !ok {
		return nil
	}
	var out []drivebay.Statistic
	for _, row := range page.at("table").list() {
		offset, okOffset := row.at("offset").within(0xFFFF)
		value, okValue := row.at("value").int64()
		if valid, told := row.at("flags", "valid").bool(); !okOffset || !okValue || (told && !valid) {
			continue
		}
		out = append(out, drivebay.Statistic{Page: uint8(number), Offset: uint16(offset), Name: row.at("name").text(),
			Value: value, Normalized: row.at("flags", "normalized").isTrue()})
	}
	return out
}

// ataErrors prefers the extended log: the summary log holds five errors only.
func ataErrors(a *drivebay.ATA, log node) {
	for _, name := range []string{"extended", "summary"} {
		if n, ok := log.at(name, "count").uint(); ok && a.ErrorCount == nil {
			a.ErrorCount = &n
		}
		if len(a.Errors) > 0 {
			continue
		}
		for _, row := range log.at(name, "table").list() {
			e := drivebay.DriveLog{Text: row.at("error_description").text()}
			e.Kind = errorKind(e.Text, row.at("completion_registers", "error"))
			e.Number, _ = row.at("error_number").uint()
			e.Hours, _ = row.at("lifetime_hours").uint()
			e.LBA, _ = row.at("completion_registers", "lba").uint()
			a.Errors = append(a.Errors, e)
		}
	}
}

// errorKind returns the kind of an error by smartctl's description, which begins with the names of
// the bits ("Error: ICRC, ABRT at LBA = ..."; ataprint.cpp, format_st_er_desc), or by the ERROR field
// where there is no description.
func errorKind(description string, register node) string {
	bits, _ := register.within(0xFF)
	has := func(name string, bit uint64) bool {
		if description == "" {
			return bits&bit != 0
		}
		return slices.Contains(strings.FieldsFunc(description, func(r rune) bool { return r == ' ' || r == ',' }), name)
	}
	switch {
	case has("UNC", 0x40):
		return drivebay.LogUncorrectable
	case has("ICRC", 0x80):
		return drivebay.LogLink
	}
	return ""
}

// ataSelfTests decodes the self-test log, which smartctl writes newest first.
func ataSelfTests(log node) []drivebay.SelfTest {
	rows := log.at("extended", "table").list()
	short := len(rows) == 0
	if short {
		rows = log.at("standard", "table").list()
	}
	var out []drivebay.SelfTest
	for _, row := range rows {
		status, ok := row.at("status", "value").within(255)
		if !ok {
			continue
		}
		kind, _ := row.at("type", "value").within(255)
		t := drivebay.SelfTest{Kind: selfTestKind(ataKinds, kind&0x7F), Result: ataResults[status>>4],
			Text: row.at("status", "string").text(), LBA: ptr(row.at("lba").uint())}
		t.Hours, _ = row.at("lifetime_hours").uint()
		t.ShortLBA = short && t.LBA != nil
		out = append(out, t)
	}
	return out
}

// selectiveSpans returns the spans of the selective self-test log. It returns none of them if one is
// under test or was left unfinished: smartctl names the state of the span that the drive names as the
// current one, and "Not_testing" for all others (ataprint.cpp). The state "Completed" is that of a
// test that ended in this span. Beside the state is the self-test execution status: if the last test did not
// complete without error, the spans may be those of a test that is in no log. A span of 0 to 0 is not in use
// (ACS-3, A.16).
func selectiveSpans(log node) []drivebay.Span {
	var spans []drivebay.Span
	for _, row := range log.at("table").list() {
		if v, ok := row.at("status", "value").within(0xFF); ok && ataResults[v>>4] != drivebay.SelfTestPassed && ataResults[v>>4] != drivebay.SelfTestRunning {
			return nil
		}
		if state := row.at("status", "string").text(); state != "Not_testing" && state != "Completed" && !strings.HasPrefix(state, "Completed [00% left]") {
			return nil
		}
		first, okFirst := row.at("lba_min").uint()
		last, okLast := row.at("lba_max").uint()
		if okFirst && okLast && last > 0 && first <= last {
			spans = append(spans, drivebay.Span{First: first, Last: last})
		}
	}
	return spans
}

// ataKinds holds the subcommands of SMART EXECUTE OFF-LINE IMMEDIATE (ACS-4), without the captive
// bit.
var ataKinds = map[uint64]string{1: "short", 2: "long", 3: "conveyance", 4: "selective"}

func selfTestKind(kinds map[uint64]string, n uint64) string {
	if k, ok := kinds[n]; ok {
		return k
	}
	return "other"
}

// ataResults decodes the high nibble of the self-test execution status (ACS-4, table "Self-test
// execution status values").
var ataResults = [16]drivebay.SelfTestResult{
	0x0: drivebay.SelfTestPassed,
	0x1: drivebay.SelfTestAborted,
	0x2: drivebay.SelfTestAborted,
	0x3: drivebay.SelfTestFatal,
	0x4: drivebay.SelfTestFailed,
	0x5: drivebay.SelfTestFailed,
	0x6: drivebay.SelfTestFailed,
	0x7: drivebay.SelfTestFailed,
	0x8: drivebay.SelfTestFailed,
	0xF: drivebay.SelfTestRunning,
}

// written holds the names of smartctl's drive database for the data that the host has written,
// with their units.
var written = map[string]uint64{
	"Total_LBAs_Written": sectors, "Host_Writes_32MiB": 32 << 20, "Host_Writes_MiB": 1 << 20, "Host_Writes_GiB": 1 << 30,
	"Lifetime_Writes_GiB": 1 << 30, "Total_Writes_GiB": 1 << 30, "Total_Writes_GB": 1e9,
}

const sectors = 0 // the unit is the logical block

// ataTotals fills the common fields from the attributes where the document has no fields of its
// own for them (documents without -x).
func ataTotals(ev *drivebay.Evidence, block uint64) {
	for _, a := range ev.ATA.Attributes {
		n := a.Count
		switch {
		case a.ID == 9 && ev.PowerOnHours == nil && (a.Name == "Power_On_Hours" || a.Name == "Power_On_Hours_and_Msec"):
			ev.PowerOnHours = &n
		case a.ID == 12 && ev.PowerCycles == nil && a.Name == "Power_Cycle_Count":
			ev.PowerCycles = &n
		case a.ID == 194 && ev.Temperature == nil && strings.HasPrefix(a.Name, "Temperature") && n > 0 && n < 200:
			t := int(n)
			ev.Temperature = &t
		}
		if unit, ok := written[a.Name]; ok && ev.BytesWritten == nil {
			if unit == sectors {
				unit = block
			}
			ev.BytesWritten = ptr(times(n, unit), true)
		}
		if a.ID == 242 && ev.BytesRead == nil && a.Name == "Total_LBAs_Read" {
			ev.BytesRead = ptr(times(n, block), true)
		}
	}
}

// ataCounted fills the common fields from the device statistics. These are standardized and
// override the attributes, as in smartctl 7.3. It skips implausible values.
func ataCounted(ev *drivebay.Evidence, block uint64) {
	for _, s := range ev.ATA.Statistics {
		is := func(page uint8, offset uint16) bool { return s.Page == page && s.Offset == offset }
		n, small := uint64(max(s.Value, 0)), int(s.Value)
		switch {
		case is(5, 0x08) && -128 <= s.Value && s.Value <= 127: // current temperature
			ev.Temperature = &small
		case s.Value < 0:
		case is(1, 0x08): // lifetime power-on resets
			ev.PowerCycles = &n
		case is(1, 0x10): // power-on hours
			ev.PowerOnHours = &n
		case is(1, 0x18): // logical sectors written
			ev.BytesWritten = ptr(times(n, block), true)
		case is(1, 0x28): // logical sectors read
			ev.BytesRead = ptr(times(n, block), true)
		case is(7, 0x08) && s.Value <= 255: // percentage used endurance indicator
			ev.PercentUsed = &small
		}
	}
}

// times returns the product, or the largest number on overflow.
func times(n, by uint64) uint64 {
	if by != 0 && n > math.MaxUint64/by {
		return math.MaxUint64
	}
	return n * by
}
