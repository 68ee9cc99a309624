package smart

import (
	"slices"

	"github.com/drivebay/drivebay"
)

// These functions find out which commands a drive supports. An unsupported command costs an error
// in the drive's own log, a failed command in the kernel's counters and a line in the kernel's
// log, each time; so it is not sent.

// idWord returns one word of identify data, or 0 when it is missing.
func idWord(identify []byte, n int) uint16 {
	if len(identify) < 2*n+2 {
		return 0
	}
	return le.Uint16(identify[2*n:])
}

// valid reports whether a feature word is marked as valid (bits 15:14 = 01b).
func valid(w uint16) bool { return w>>14 == 1 }

// ATAHasSMART reports whether SMART is supported and enabled (words 82, 85).
func ATAHasSMART(identify []byte) bool {
	return valid(idWord(identify, 83)) && idWord(identify, 82)&1 != 0 && idWord(identify, 85)&1 != 0
}

// ATAHasErrorLog reports word 84 bit 0, or the error logging capability in SMART data, which
// drives older than the word have too.
func ATAHasErrorLog(identify, data []byte) bool {
	w := idWord(identify, 84)
	return valid(w) && w&1 != 0 || len(data) > 370 && data[370]&1 != 0
}

// ATAHasSelfTests reports word 84 bit 1, or bit 4 of the off-line data collection capability.
func ATAHasSelfTests(identify, data []byte) bool {
	w := idWord(identify, 84)
	return valid(w) && w&2 != 0 || len(data) > 367 && data[367]&(1<<4) != 0
}

// ATANeedsSelectiveLog reports whether the spans of the selective self-test log can decide about a failed
// test: the drive has the log (SMART data, byte 367 bit 6), its newest selective test passed, and an earlier
// test failed. The spans belong to the last selective test that was started, which need not be in the logs
// yet: they are not read unless the execution status says that the last test completed without error, or that
// one is in progress, which the rule for self-tests judges.
func ATANeedsSelectiveLog(data, log, extended []byte) bool {
	if len(data) < sector || data[367]&(1<<6) == 0 {
		return false
	}
	if last := ataResults[data[selfTestState]>>4]; last != drivebay.SelfTestPassed && last != drivebay.SelfTestRunning {
		return false
	}
	var ev drivebay.Evidence
	_, _ = ATASelfTestLog(&ev, log), ATAExtSelfTestLog(&ev, extended) // a log that cannot be used has no tests
	newest := slices.IndexFunc(ev.SelfTests, func(t drivebay.SelfTest) bool { return t.Kind == "selective" })
	return newest >= 0 && ev.SelfTests[newest].Result == drivebay.SelfTestPassed &&
		slices.ContainsFunc(ev.SelfTests[newest:], func(t drivebay.SelfTest) bool { return t.Result == drivebay.SelfTestFailed })
}

// ATAHasGeneralLogs reports whether READ LOG EXT is supported (word 84 bit 5).
func ATAHasGeneralLogs(identify []byte) bool {
	w := idWord(identify, 84)
	return valid(w) && w&(1<<5) != 0
}

// ATALogDirectory returns an error for a directory that cannot be used, and adds nothing to the evidence. A drive is asked for the
// logs in it alone: one that is empty or cut short would leave out what shows a fault, and nothing would say so.
func ATALogDirectory(_ *drivebay.Evidence, b []byte) error {
	const name = "ata-log-directory"
	if err := atLeast(name, b, sector); err != nil {
		return err
	}
	if version := idWord(b, 0); version != 1 {
		return ignored(name, "its version is %d and not 1", version)
	}
	return nil
}

// ATAHasLog reports whether the general purpose log directory lists the log: word 0 is the
// version, word n the number of pages of log n.
func ATAHasLog(directory []byte, log byte) bool {
	return idWord(directory, 0) == 1 && log > 0 && idWord(directory, int(log)) > 0
}

// NVMeHasSelfTests reports bit 4 of the optional admin commands (identify controller, bytes 256
// and 257).
func NVMeHasSelfTests(identify []byte) bool {
	return len(identify) >= 258 && identify[256]&(1<<4) != 0
}

// SCSIHasPage reports whether a list of supported pages has the code: VPD page 00h and log page
// 00h have the same form, a length in bytes 2 and 3 and then the codes.
func SCSIHasPage(list []byte, code byte) bool {
	if len(list) < 4 {
		return false
	}
	n := int(list[2])<<8 | int(list[3])
	for _, c := range list[4:min(len(list), 4+n)] {
		if c == code {
			return true
		}
	}
	return false
}

// SCSIHasLog is SCSIHasPage for log pages. A list that cannot be used names none.
func SCSIHasLog(list []byte, code byte) bool {
	return SCSILogPages(nil, list) == nil && SCSIHasPage(list, code)
}
