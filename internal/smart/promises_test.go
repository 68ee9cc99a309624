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

// The selective self-test log is read only where its spans can end a finding.
func TestATANeedsSelectiveLog(t *testing.T) {
	const selective, long = 4, 2
	type test struct{ kind, status byte }
	logs := func(newestFirst ...test) (log, extended []byte) {
		log, extended = make([]byte, 512), make([]byte, 512)
		log[0], extended[0] = 1, 1
		n := len(newestFirst)
		for i, e := range newestFirst {
			copy(log[2+24*(n-1-i):], []byte{e.kind, e.status << 4, 9})
			copy(extended[4+26*(n-1-i):], []byte{e.kind, e.status << 4, 9})
		}
		log[508], extended[2] = byte(n), byte(n)
		return seal(log), seal(extended)
	}
	passedAfterFailed := []test{{selective, 0}, {long, 7}}
	for _, c := range []struct {
		name       string
		tests      []test
		capability byte
		status     byte
		want       bool
	}{
		{"passed after a failure", passedAfterFailed, 1 << 6, 0, true},
		{"and a short test since", append([]test{{1, 0}}, passedAfterFailed...), 1 << 6, 0, true},
		{"and a test in progress", passedAfterFailed, 1 << 6, 0xF, true},
		{"and a test aborted that is not logged", passedAfterFailed, 1 << 6, 1, false},
		{"and a test interrupted", passedAfterFailed, 1 << 6, 2, false},
		{"reserved status", passedAfterFailed, 1 << 6, 9, false},
		{"no such log", passedAfterFailed, 0, 0, false},
		{"nothing failed", []test{{selective, 0}, {long, 0}}, 1 << 6, 0, false},
		{"failed since", []test{{long, 7}, {selective, 0}}, 1 << 6, 0, false},
		{"aborted", []test{{selective, 1}, {long, 7}}, 1 << 6, 0, false},
		{"the newest aborted", append([]test{{selective, 1}}, passedAfterFailed...), 1 << 6, 0, false},
		{"none selective", []test{{long, 7}}, 1 << 6, 0, false},
		{"no test", nil, 1 << 6, 0, false},
	} {
		data := make([]byte, 512)
		data[363], data[367] = c.status<<4, c.capability
		log, extended := logs(c.tests...)
		if got := ATANeedsSelectiveLog(data, log, nil); got != c.want {
			t.Errorf("%s: by log 06h %v, want %v", c.name, got, c.want)
		}
		if got := ATANeedsSelectiveLog(data, nil, extended); got != c.want {
			t.Errorf("%s: by log 07h %v, want %v", c.name, got, c.want)
		}
		log[5] ^= 0xFF
		if ATANeedsSelectiveLog(data, log, nil) {
			t.Errorf("%s: by a log whose checksum is wrong", c.name)
		}
	}
	if log, _ := logs(passedAfterFailed...); ATANeedsSelectiveLog(nil, log, nil) {
		t.Error("without SMART data")
	}
}
