package smart

import (
	"fmt"
	"math"
	"strings"

	"github.com/drivebay/drivebay"
)

const (
	pageErrorLog       = "ata-error-log"
	pageExtErrorLog    = "ata-ext-error-log"
	pageSelfTestLog    = "ata-selftest-log"
	pageExtSelfTestLog = "ata-ext-selftest-log"
	pageSelectiveLog   = "ata-selective-log"
)

// ATASummaryErrorLog decodes SMART log 01h: a ring of the last five errors of 90 bytes each; byte
// 1 is the number of the newest (ACS-3, A.18).
func ATASummaryErrorLog(ev *drivebay.Evidence, b []byte) error {
	const entries, size, base, count = 5, 90, 2, 452
	if err := summed(pageErrorLog, b); err != nil {
		return err
	}
	newest, total := int(b[1]), uint64(le.Uint16(b[count:]))
	if newest > entries {
		return ignored(pageErrorLog, "the log has %d entries, and names entry %d as the newest", entries, newest)
	}
	var found []drivebay.DriveLog
	for i := range ring(newest, entries) {
		e := b[base+i*size:][60:size] // five commands of 12 bytes come before the error
		lba := uint64(e[6]&0xF)<<24 | uint64(e[5])<<16 | uint64(e[4])<<8 | uint64(e[3])
		found = addError(found, total, e[1], e[7], lba, le.Uint16(e[28:]))
	}
	logged(ev, total, found)
	return nil
}

// ATAExtErrorLog decodes the first sector of log 03h: four errors of 124 bytes and the index of
// the newest in the whole log (ACS-4, 9.7). Where the newest is in a sector that was not read,
// only the number of errors is used.
func ATAExtErrorLog(ev *drivebay.Evidence, b []byte) error {
	const entries, size, base, count = 4, 124, 4, 500
	if err := summed(pageExtErrorLog, b); err != nil {
		return err
	}
	newest, total := int(le.Uint16(b[2:])), uint64(le.Uint16(b[count:]))
	var found []drivebay.DriveLog
	for i := range ring(newest, entries) {
		e := b[base+i*size:][90:size] // five commands of 18 bytes come before the error
		lba := uint64(e[9])<<40 | uint64(e[7])<<32 | uint64(e[5])<<24 | uint64(e[8])<<16 | uint64(e[6])<<8 | uint64(e[4])
		found = addError(found, total, e[1], e[11], lba, le.Uint16(e[32:]))
	}
	logged(ev, total, found)
	return nil
}

// ring iterates over a ring of n entries backwards from the newest, which is counted from 1. It
// yields nothing if the log is empty or its newest entry is in another sector.
func ring(newest, n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if newest < 1 || newest > n {
			return
		}
		for k := range n {
			if !yield((newest - 1 - k + n) % n) {
				return
			}
		}
	}
}

// errorBits holds the names of the bits of the ERROR field (ACS-3, 6.2; ATA/ATAPI-5 for AMNF).
var errorBits = []struct {
	bit  byte
	name string
}{{0x80, "interface CRC error"}, {0x40, "uncorrectable data"}, {0x10, "sector not found"}, {0x04, "command aborted"}, {0x01, "address mark not found"}}

// errorKind returns the kind of an error by its ERROR field.
func errorKind(reg byte) string {
	switch {
	case reg&0x40 != 0:
		return drivebay.LogUncorrectable
	case reg&0x80 != 0:
		return drivebay.LogLink
	}
	return ""
}

// addError appends an entry, unless it was never used.
func addError(found []drivebay.DriveLog, total uint64, reg, status byte, lba uint64, hours uint16) []drivebay.DriveLog {
	if reg == 0 && status == 0 && lba == 0 && hours == 0 {
		return found
	}
	var why []string
	for _, e := range errorBits {
		if reg&e.bit != 0 {
			why = append(why, e.name)
		}
	}
	if why == nil {
		why = []string{"error"}
	}
	e := drivebay.DriveLog{Kind: errorKind(reg), Hours: uint64(hours), LBA: lba,
		Text: fmt.Sprintf("%s (error %02Xh, status %02Xh) at LBA %d", strings.Join(why, ", "), reg, status, lba)}
	if k := uint64(len(found)); total > k {
		e.Number = total - k
	}
	return append(found, e)
}

// logged keeps the error log with more entries of the two: a drive may fill either one only.
func logged(ev *drivebay.Evidence, total uint64, found []drivebay.DriveLog) {
	a := ata(ev)
	if a.ErrorCount == nil || total > *a.ErrorCount {
		a.ErrorCount = &total
	}
	if len(found) >= len(a.Errors) && len(found) > 0 {
		a.Errors = found
	}
}

// ataKinds holds the subcommands of SMART EXECUTE OFF-LINE IMMEDIATE (ACS-3, 7.48.5), without the
// captive bit.
var ataKinds = map[byte]string{1: "short", 2: "long", 3: "conveyance", 4: "selective"}

// kind returns the name of a kind of self-test.
func kind(kinds map[byte]string, n byte) string {
	if k, ok := kinds[n]; ok {
		return k
	}
	return "other"
}

// ataResults and ataWords decode the upper half of the self-test execution status (ACS-3, table
// "Self-test execution status values").
var (
	ataResults = [16]drivebay.SelfTestResult{
		0x0: drivebay.SelfTestPassed, 0x1: drivebay.SelfTestAborted, 0x2: drivebay.SelfTestAborted, 0x3: drivebay.SelfTestFatal,
		0x4: drivebay.SelfTestFailed, 0x5: drivebay.SelfTestFailed, 0x6: drivebay.SelfTestFailed, 0x7: drivebay.SelfTestFailed,
		0x8: drivebay.SelfTestFailed, 0xF: drivebay.SelfTestRunning,
	}
	ataWords = [16]string{
		0x0: "completed without error", 0x1: "aborted by the host", 0x2: "interrupted by a reset", 0x3: "fatal error, could not complete",
		0x4: "failed, element unknown", 0x5: "electrical failure", 0x6: "servo failure", 0x7: "read failure", 0x8: "failed, handling damage suspected",
		0xF: "in progress",
	}
)

// ATASelfTestLog decodes SMART log 06h: a ring of 21 results of 24 bytes; byte 508 is the number
// of the newest (ACS-3, A.17). The extended log is preferred where there is one, because its
// addresses have 48 bits.
func ATASelfTestLog(ev *drivebay.Evidence, b []byte) error {
	const entries, size, base, index = 21, 24, 2, 508
	if err := summed(pageSelfTestLog, b); err != nil {
		return err
	}
	newest := int(b[index])
	if newest > entries {
		return ignored(pageSelfTestLog, "the log has %d entries, and names entry %d as the newest", entries, newest)
	}
	var found []drivebay.SelfTest
	for i := range ring(newest, entries) {
		e := b[base+i*size:][:size]
		found = addSelfTest(found, e, uint64(le.Uint32(e[5:])), math.MaxUint32)
	}
	if len(ev.SelfTests) == 0 {
		ev.SelfTests = found
	}
	return nil
}

// ATAExtSelfTestLog decodes log 07h: 19 results of 26 bytes a sector, a ring over all sectors of
// the log; bytes 2..3 are the number of the newest (ACS-4, 9.13).
func ATAExtSelfTestLog(ev *drivebay.Evidence, b []byte) error {
	const entries, size, base = 19, 26, 4
	if err := summed(pageExtSelfTestLog, b); err != nil {
		return err
	}
	newest := int(le.Uint16(b[2:]))
	if newest > entries {
		return ignored(pageExtSelfTestLog, "the newest entry is number %d, in a sector that was not read", newest)
	}
	var found []drivebay.SelfTest
	for i := range ring(newest, entries) {
		e := b[base+i*size:][:size]
		found = addSelfTest(found, e, uint64(le.Uint32(e[5:]))|uint64(le.Uint16(e[9:]))<<32, 1<<48-1)
	}
	if len(found) > 0 {
		ev.SelfTests = found
	}
	return nil
}

// addSelfTest appends an entry, unless it was never used. Entries of both logs start alike: type,
// status, hours, checkpoint, address. The parameter none is the address that means no failure.
func addSelfTest(found []drivebay.SelfTest, e []byte, lba, none uint64) []drivebay.SelfTest {
	if uniform(e, 0) {
		return found
	}
	status := e[1] >> 4
	t := drivebay.SelfTest{Kind: kind(ataKinds, e[0]&0x7F), Result: ataResults[status], Text: ataWords[status], Hours: uint64(le.Uint16(e[2:]))}
	if t.Text == "" {
		t.Text = fmt.Sprintf("status %02Xh", e[1])
	}
	if (t.Result == drivebay.SelfTestFailed || t.Result == drivebay.SelfTestFatal) && lba != none {
		t.LBA, t.ShortLBA = &lba, none == math.MaxUint32
	}
	return append(found, t)
}

// ATASelectiveLog decodes SMART log 09h: five spans of 16 bytes, first and last block; bytes 500..501 are
// the number of the span under test, 0 before and after the test (ACS-3, A.16). The host writes the spans
// before it starts the test, so they are those of the last test that was started. A span of 0 to 0 is not
// in use. While a span is under test, the log is no evidence: it names what the test has still to read.
func ATASelectiveLog(ev *drivebay.Evidence, b []byte) error {
	const revision, spans, size, base, current = 1, 5, 16, 2, 500
	if err := summed(pageSelectiveLog, b); err != nil {
		return err
	}
	if n := le.Uint16(b); n != revision {
		return ignored(pageSelectiveLog, "its revision is %d, not %d", n, revision)
	}
	a := ata(ev)
	a.SelectiveSpans = nil
	if n := le.Uint16(b[current:]); n > 0 && n <= spans && ev.SelfTestProgress != nil {
		return nil
	}
	for i := range spans {
		e := b[base+i*size:]
		if s := (drivebay.Span{First: le.Uint64(e), Last: le.Uint64(e[8:])}); s.Last > 0 && s.First <= s.Last {
			a.SelectiveSpans = append(a.SelectiveSpans, s)
		}
	}
	return nil
}
