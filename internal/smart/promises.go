package smart

// What a drive promises. A question that it never promised to answer is an error
// in its own log, a failed command in the kernel's counters and a line in the
// kernel's log, each time; so it is not asked.

// idWord reads one word of identify data; 0 when it is not there.
func idWord(identify []byte, n int) uint16 {
	if len(identify) < 2*n+2 {
		return 0
	}
	return le.Uint16(identify[2*n:])
}

// valid is whether a word of features says that it is valid (bits 15:14 = 01b).
func valid(w uint16) bool { return w>>14 == 1 }

// ATAHasSMART is whether the feature is supported and switched on (words 82, 85).
func ATAHasSMART(identify []byte) bool {
	return valid(idWord(identify, 83)) && idWord(identify, 82)&1 != 0 && idWord(identify, 85)&1 != 0
}

// ATAHasErrorLog is word 84 bit 0, or error logging capability in SMART data,
// which drives older than the word have too.
func ATAHasErrorLog(identify, data []byte) bool {
	w := idWord(identify, 84)
	return valid(w) && w&1 != 0 || len(data) > 370 && data[370]&1 != 0
}

// ATAHasSelfTests is word 84 bit 1, or off-line data collection capability bit 4.
func ATAHasSelfTests(identify, data []byte) bool {
	w := idWord(identify, 84)
	return valid(w) && w&2 != 0 || len(data) > 367 && data[367]&(1<<4) != 0
}

// ATAHasGeneralLogs is word 84 bit 5: READ LOG EXT works.
func ATAHasGeneralLogs(identify []byte) bool {
	w := idWord(identify, 84)
	return valid(w) && w&(1<<5) != 0
}

// ATAHasLog looks a log up in the general purpose log directory: word 0 is the
// version, word n the number of pages of log n.
func ATAHasLog(directory []byte, log byte) bool {
	return idWord(directory, 0) == 1 && log > 0 && idWord(directory, int(log)) > 0
}

// NVMeHasSelfTests is bit 4 of the optional admin commands (identify controller,
// bytes 256 and 257).
func NVMeHasSelfTests(identify []byte) bool {
	return len(identify) >= 258 && identify[256]&(1<<4) != 0
}

// SCSIHasPage looks a page up in a list of supported pages: VPD page 00h and log
// page 00h have the same form, a length in bytes 2 and 3 and then the codes.
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
