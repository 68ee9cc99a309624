package smart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

const (
	pageController   = "nvme-identify-controller"
	pageNamespace    = "nvme-identify-namespace"
	pageNVMeSmart    = "nvme-smart-log"
	pageNVMeErrors   = "nvme-error-log"
	pageNVMeSelfTest = "nvme-selftest-log"
)

const zeroCelsius = 273 // the specification has temperatures in whole kelvins

// NVMeIdentifyController decodes the Identify Controller data structure (NVM Express base 2.0,
// figure 275). The temperature limits are stored with the SMART log: they are dropped if it was
// not decoded before.
func NVMeIdentifyController(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageController, b, 270); err != nil {
		return err
	}
	serial, model := text(b[4:24]), text(b[24:64])
	switch {
	case uniform(b, 0) || uniform(b, 0xFF):
		return ignored(pageController, "all bytes are %02Xh", b[0])
	case serial == "" && model == "":
		return ignored(pageController, "model name and serial number are empty")
	}
	take(&ev.Identity.Serial, serial)
	take(&ev.Identity.Model, model)
	take(&ev.Identity.Firmware, text(b[64:72]))
	ev.Protocol, ev.Type = drivebay.ProtocolNVMe, drivebay.TypeNVMe
	if ev.NVMe != nil {
		ev.NVMe.WarningTemp = limit(le.Uint16(b[266:]))
		ev.NVMe.CriticalTemp = limit(le.Uint16(b[268:]))
	}
	return nil
}

// limit returns a temperature threshold in degrees Celsius, or 0 where the drive reports none (0
// K).
func limit(kelvin uint16) int {
	if kelvin == 0 {
		return 0
	}
	return int(kelvin) - zeroCelsius
}

// NVMeIdentifyNamespace decodes the Identify Namespace data structure (NVM command set 1.0, figure
// 97): the size, and the name in the format of the kernel.
func NVMeIdentifyNamespace(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageNamespace, b, 384); err != nil {
		return err
	}
	if uniform(b, 0) || uniform(b, 0xFF) {
		return ignored(pageNamespace, "all bytes are %02Xh: the namespace does not exist", b[0])
	}
	format := int(b[26]&0xF) | int(b[26]>>5&3)<<4 // FLBAS: bits 3:0, and 6:5 above them
	if at := 128 + 4*format; at+4 <= len(b) {
		if shift := b[at+2]; shift >= 9 && shift < 32 { // LBADS: at least 512 bytes
			ev.Identity.Size = times(le.Uint64(b), 1<<shift)
		}
	}
	if !strings.HasPrefix(ev.Identity.WWN, "uuid.") { // the kernel prefers a UUID, where there is one
		switch {
		case !uniform(b[104:120], 0):
			ev.Identity.WWN = fmt.Sprintf("eui.%x", b[104:120]) // NGUID
		case !uniform(b[120:128], 0):
			ev.Identity.WWN = fmt.Sprintf("eui.%x", b[120:128]) // EUI64
		}
	}
	return nil
}

// NVMeSmartLog decodes the SMART / health information log (NVM Express base 2.0, figure 207). It
// refuses a log that no working drive can write: an unnoticed failed command leaves zeros, which
// would look like a perfect drive.
func NVMeSmartLog(ev *drivebay.Evidence, b []byte) error {
	if err := atLeast(pageNVMeSmart, b, 512); err != nil {
		return err
	}
	kelvin := le.Uint16(b[1:])
	switch {
	case uniform(b, 0) || uniform(b, 0xFF):
		return ignored(pageNVMeSmart, "all bytes are %02Xh", b[0])
	case kelvin == 0:
		return ignored(pageNVMeSmart, "the temperature is 0 K")
	case b[3] > 100: // normalized, 0 to 100 %
		return ignored(pageNVMeSmart, "the available spare is %d %%", b[3])
	}
	n := &drivebay.NVMe{
		CriticalWarning: b[0], TemperatureKelvin: kelvin, AvailableSpare: b[3], SpareThreshold: b[4], PercentageUsed: b[5],
		DataUnitsRead: wide(b[32:]), DataUnitsWritten: wide(b[48:]), HostReads: wide(b[64:]), HostWrites: wide(b[80:]),
		BusyMinutes: wide(b[96:]), PowerCycles: wide(b[112:]), PowerOnHours: wide(b[128:]), UnsafeShutdowns: wide(b[144:]),
		MediaErrors: wide(b[160:]), ErrorLogEntries: wide(b[176:]),
		WarningTempTime: le.Uint32(b[192:]), CriticalTempTime: le.Uint32(b[196:]),
	}
	if old := ev.NVMe; old != nil {
		n.Errors, n.WarningTemp, n.CriticalTemp = old.Errors, old.WarningTemp, old.CriticalTemp
	}
	ev.NVMe, ev.Protocol, ev.Type = n, drivebay.ProtocolNVMe, drivebay.TypeNVMe
	// The log has no verdict: any critical warning is a failure, as in smartctl.
	ev.Verdict = drivebay.VerdictPassed
	if n.CriticalWarning != 0 {
		ev.Verdict = drivebay.VerdictFailed
	}
	celsius, used := int(kelvin)-zeroCelsius, int(n.PercentageUsed)
	written, read := times(n.DataUnitsWritten, 512_000), times(n.DataUnitsRead, 512_000)
	hours, cycles := n.PowerOnHours, n.PowerCycles
	ev.Temperature, ev.PercentUsed, ev.BytesWritten, ev.BytesRead, ev.PowerOnHours, ev.PowerCycles = &celsius, &used, &written, &read, &hours, &cycles
	return nil
}

// wide reads a 128-bit counter and limits it to the largest 64-bit number.
func wide(b []byte) uint64 {
	if le.Uint64(b[8:]) != 0 {
		return math.MaxUint64
	}
	return le.Uint64(b)
}

// statusWords holds the names of the status codes that concern the drive rather than an
// unsupported command (NVM Express base 2.0, 3.3.3.2; type in the high byte).
var statusWords = map[uint16]string{
	0x0002: "invalid field in command",
	0x0004: "data transfer error",
	0x0005: "aborted by power loss",
	0x0006: "internal error",
	0x0007: "abort requested",
	0x0080: "LBA out of range",
	0x0281: "unrecovered read error",
	0x0280: "write fault",
	0x0282: "guard check error",
	0x0283: "application tag check error",
	0x0284: "reference tag check error",
	0x0285: "compare failure",
	0x0286: "access denied",
	0x0287: "deallocated or unwritten block",
}

// NVMeErrorLog decodes the error information log (NVM Express base 2.0, figure 206), newest first.
// It needs a SMART log that was decoded before it.
func NVMeErrorLog(ev *drivebay.Evidence, b []byte) error {
	const size = 64
	if err := atLeast(pageNVMeErrors, b, size); err != nil {
		return err
	}
	if uniform(b, 0xFF) {
		return ignored(pageNVMeErrors, "all bytes are FFh")
	}
	if ev.NVMe == nil {
		return ignored(pageNVMeErrors, "the SMART log, which contains its number of errors, was not read")
	}
	var found []drivebay.DriveLog
	for ; len(b) >= size; b = b[size:] {
		number := le.Uint64(b)
		if number == 0 || number == math.MaxUint64 { // 0 is an unused entry
			continue
		}
		status := le.Uint16(b[12:]) >> 1 & 0x7FF // bit 0 is the phase tag, 10:8 the type, 7:0 the code
		words, known := statusWords[status]
		if !known {
			words = "error"
		}
		e := drivebay.DriveLog{Number: number, Text: fmt.Sprintf("%s (status %03Xh)", words, status)}
		if lba := le.Uint64(b[16:]); lba != math.MaxUint64 {
			e.LBA = lba
		}
		found = append(found, e)
	}
	slices.SortStableFunc(found, func(a, b drivebay.DriveLog) int { return cmp.Compare(b.Number, a.Number) })
	ev.NVMe.Errors = found
	return nil
}

var (
	nvmeKinds   = map[byte]string{1: "short", 2: "long"}
	nvmeResults = [16]drivebay.SelfTestResult{
		0x0: drivebay.SelfTestPassed, 0x1: drivebay.SelfTestAborted, 0x2: drivebay.SelfTestAborted, 0x3: drivebay.SelfTestAborted,
		0x4: drivebay.SelfTestAborted, 0x5: drivebay.SelfTestFatal, 0x6: drivebay.SelfTestFailed, 0x7: drivebay.SelfTestFailed,
		0x8: drivebay.SelfTestAborted, 0x9: drivebay.SelfTestAborted,
	}
	nvmeWords = [16]string{
		0x0: "completed without error", 0x1: "aborted by a command", 0x2: "aborted by a controller reset", 0x3: "aborted: the namespace went away",
		0x4: "aborted by a format", 0x5: "fatal error, could not complete", 0x6: "failed, segment unknown", 0x7: "failed in a segment",
		0x8: "aborted for an unknown reason", 0x9: "aborted by a sanitize",
	}
)

// NVMeSelfTestLog decodes the device self-test log (NVM Express base 2.0, figure 212): the running
// test, then up to 20 results of 28 bytes, newest first.
func NVMeSelfTestLog(ev *drivebay.Evidence, b []byte) error {
	const size, base, unused = 28, 4, 0xF
	if err := atLeast(pageNVMeSelfTest, b, base); err != nil {
		return err
	}
	if uniform(b, 0xFF) {
		return ignored(pageNVMeSelfTest, "all bytes are FFh")
	}
	var found []drivebay.SelfTest
	for rest := b[base:]; len(rest) >= size; rest = rest[size:] {
		result, code := rest[0]&0xF, rest[0]>>4
		if result == unused || code == 0 {
			continue
		}
		t := drivebay.SelfTest{Kind: kind(nvmeKinds, code), Result: nvmeResults[result], Text: nvmeWords[result], Hours: le.Uint64(rest[4:])}
		if t.Text == "" {
			t.Text = fmt.Sprintf("result %Xh", result)
		}
		if rest[2]&2 != 0 { // the failing LBA is valid
			lba := le.Uint64(rest[16:])
			t.LBA = &lba
		}
		found = append(found, t)
	}
	ev.SelfTests = found
	if running := b[0] & 0xF; running != 0 {
		left := 100 - int(min(b[1]&0x7F, 100))
		ev.SelfTestProgress, ev.SelfTestKind = &left, kind(nvmeKinds, running)
	}
	return nil
}
