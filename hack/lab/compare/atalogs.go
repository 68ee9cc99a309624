package compare

import (
	"github.com/drivebay/drivebay"
)

// logRows are the rows of one form of the two logs that ATA drives keep in two
// forms each, of which we keep the longer story.
func logRows(errors, tests string) []row {
	errors, tests = "ata_smart_error_log."+errors+".table[].", "ata_smart_self_test_log."+tests+".table[]."
	return []row{
		{errors + "error_number", entry(func(e drivebay.DriveLog) any { return e.Number })},
		{errors + "lifetime_hours", entry(func(e drivebay.DriveLog) any { return e.Hours })},
		{errors + "completion_registers.lba", entry(func(e drivebay.DriveLog) any { return e.LBA })},
		{tests + "type.value", ataKind},
		{tests + "status.value", ataResult},
		{tests + "status.remaining_percent", remaining},
		{tests + "lifetime_hours", func(d *drivebay.Drive, l *leaf) any { return testHours(d, l.index(0)) }},
		{tests + "lba", func(d *drivebay.Drive, l *leaf) any { return testLBA(d, l.index(0)) }},
	}
}

// entry is the error at the same place of the log, newest first.
func entry(ours func(e drivebay.DriveLog) any) func(*drivebay.Drive, *leaf) any {
	return ofATA(func(a *drivebay.ATA, l *leaf) any {
		if i := l.index(0); i >= 0 && i < len(a.Errors) {
			return ours(a.Errors[i])
		}
		return nil
	})
}

// captive is the bit of a subcommand that has the drive answer nothing else
// meanwhile (ACS-3, 7.48.5); it is not kept.
const captive = 0x80

func ataKind(d *drivebay.Drive, l *leaf) any {
	n, _ := l.number()
	ours := testKind(d, l.index(0), n&^captive, map[uint64]string{1: "short", 2: "long", 3: "conveyance", 4: "selective"})
	if code, same := ours.(uint64); same {
		return code | n&captive
	}
	return ours
}

// executing is the self-test execution status of a test under way (ACS-3, table
// "Self-test execution status values": the upper half).
const executing = 0xF

var ataVerdicts = map[uint64]drivebay.SelfTestResult{0: drivebay.SelfTestPassed, 1: drivebay.SelfTestAborted, 2: drivebay.SelfTestAborted, 3: drivebay.SelfTestFatal,
	4: drivebay.SelfTestFailed, 5: drivebay.SelfTestFailed, 6: drivebay.SelfTestFailed, 7: drivebay.SelfTestFailed, 8: drivebay.SelfTestFailed, executing: drivebay.SelfTestRunning}

// ataResult is the status byte of an entry: the result, and below it the tenths
// that were left to do, which smartctl spells out beside it.
func ataResult(d *drivebay.Drive, l *leaf) any {
	n, _ := l.number()
	ours := testResult(d, l.index(0), n>>4, ataVerdicts)
	if code, same := ours.(uint64); same {
		return code<<4 | tenths(l.beside("status.remaining_percent"))
	}
	return ours
}

func tenths(percent string) uint64 {
	n, _ := (&leaf{text: percent}).number()
	return n / 10
}

// underWay is the status byte of SMART data while a self-test runs.
func underWay(d *drivebay.Drive, _ *leaf) any {
	if left := d.Evidence.SelfTestProgress; left != nil {
		return executing<<4 | *left/10
	}
	return nil
}

func remaining(d *drivebay.Drive, _ *leaf) any { return told(d.Evidence.SelfTestProgress) }

// ended reports whether the entry of a leaf is that of a test that is over.
func ended(_ *drivebay.Drive, l *leaf) bool { return over(l.beside("status.value")) }

// idle reports whether both sides know of no self-test under way.
func idle(d *drivebay.Drive, l *leaf) bool { return over(l.text) && d.Evidence.SelfTestProgress == nil }

func over(status string) bool {
	n, ok := (&leaf{text: status}).number()
	return ok && n>>4 != executing
}

// otherLog reports whether the other form of a log counts more: that one is kept.
func otherLog(other string) func(*drivebay.Drive, *leaf) bool {
	return func(_ *drivebay.Drive, l *leaf) bool {
		theirs, there := (&leaf{text: l.doc.text(other)}).number()
		own, _ := l.number()
		return there && theirs > own
	}
}

// logExempts are the parts of those two logs that are not compared.
func logExempts(errors, tests string) []exempt {
	errors, tests = "ata_smart_error_log."+errors, "ata_smart_self_test_log."+tests
	const many = "how the log is laid out; its entries are compared"
	return []exempt{
		{errors + ".revision", many, nil},
		{errors + ".sectors", many, nil},
		{errors + ".logged_count", many, nil},
		{errors + ".table[].log_index", many, nil},
		{errors + ".table[].device_state", "the dictionary has no field for what the drive was doing", nil},
		{errors + ".table[].completion_registers.error", "in our text of the entry only", nil},
		{errors + ".table[].completion_registers.status", "in our text of the entry only", nil},
		{errors + ".table[].completion_registers.count", "the dictionary has no field for the length of a command", nil},
		{errors + ".table[].completion_registers.device", "a register that names no fact of the error", nil},
		{errors + ".table[].completion_registers.device_control", "a register that names no fact of the error", nil},
		{errors + ".table[].error_description", "the registers in smartctl's words", nil},
		{errors + ".table[].previous_commands", "the dictionary has no field for the commands before an error", nil},
		{tests + ".revision", many, nil},
		{tests + ".sectors", many, nil},
		{tests + ".count", many, nil},
		{tests + ".error_count_total", "a sum over the entries, which are compared", nil},
		{tests + ".error_count_outdated", "a sum over the entries, which are compared", nil},
		{tests + ".table[].type.string", "the value in words", nil},
		{tests + ".table[].status.string", "the value in words", nil},
		{tests + ".table[].status.passed", "the value in a word", nil},
		{tests + ".table[].status.remaining_percent", "what an ended test left undone is not kept", ended},
	}
}
