package smart

import "testing"

func TestPromises(t *testing.T) {
	identify := make([]byte, 512)
	set := func(word int, v uint16) { le.PutUint16(identify[2*word:], v) }
	data := make([]byte, 512)
	none := func() bool {
		return ATAHasSMART(identify) || ATAHasErrorLog(identify, data) || ATAHasSelfTests(identify, data) || ATAHasGeneralLogs(identify)
	}
	if none() {
		t.Error("an empty identify promises something")
	}
	set(82, 1)
	set(85, 1)
	set(84, 0x23) // without the mark of validity
	if none() {
		t.Error("words that are not valid promise something")
	}
	set(83, 0x4000)
	set(84, 0x4023)
	if !ATAHasSMART(identify) || !ATAHasErrorLog(identify, nil) || !ATAHasSelfTests(identify, nil) || !ATAHasGeneralLogs(identify) {
		t.Error("a promise is not seen")
	}
	set(85, 0)
	if ATAHasSMART(identify) {
		t.Error("SMART that is switched off")
	}
	set(84, 0)
	data[367], data[370] = 1<<4, 1
	if !ATAHasErrorLog(identify, data) || !ATAHasSelfTests(identify, data) {
		t.Error("what SMART data promises is not seen")
	}

	directory := make([]byte, 512)
	le.PutUint16(directory, 1)
	le.PutUint16(directory[2*4:], 8)
	if !ATAHasLog(directory, 4) || ATAHasLog(directory, 3) || ATAHasLog(directory, 0) || ATAHasLog(directory[:6], 4) || ATAHasLog(nil, 4) {
		t.Error("log directory")
	}
	list := []byte{0, 0, 0, 3, 0x00, 0x0d, 0x2f, 0x15}
	if !SCSIHasPage(list, 0x2f) || SCSIHasPage(list, 0x15) || SCSIHasPage(list[:5], 0x0d) || SCSIHasPage(nil, 0) {
		t.Error("list of pages")
	}
	ctrl := make([]byte, 4096)
	if NVMeHasSelfTests(ctrl) || NVMeHasSelfTests(nil) {
		t.Error("no self-tests were promised")
	}
	if ctrl[256] = 1 << 4; !NVMeHasSelfTests(ctrl) {
		t.Error("self-tests were promised")
	}
}
