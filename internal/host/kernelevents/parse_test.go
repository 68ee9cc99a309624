package kernelevents

import (
	"testing"
	"time"
	"unicode/utf8"
)

func TestParseUevent(t *testing.T) {
	e, ok := parseUevent([]byte("add@/devices/x/block/sde\x00ACTION=add\x00DEVPATH=/devices/x/block/sde\x00SUBSYSTEM=block\x00DEVNAME=sde\x00"))
	if !ok || e.Action != "add" || e.Subsystem != "block" || e.DevName != "sde" || e.DevPath != "/devices/x/block/sde" {
		t.Errorf("%+v %v", e, ok)
	}
	for _, bad := range []string{"", "libudev\x00\xfe\xed\xca\xfe", "add@/x\x00", "no nul"} {
		if _, ok := parseUevent([]byte(bad)); ok {
			t.Errorf("%q is a uevent", bad)
		}
	}
}

func TestParseKmsg(t *testing.T) {
	l, stamp, ok := parseKmsg("3,1234,5000000,-;I/O error, dev sdc, sector 4096\n SUBSYSTEM=block\n")
	if !ok || l.Priority != 3 || l.Text != "I/O error, dev sdc, sector 4096" || stamp != 5*time.Second {
		t.Errorf("%+v %v %v", l, stamp, ok)
	}
}

// TestLogClock: the kernel's stamps drift from the time of the machine. A line is of the moment at which it is read, and of an earlier one only
// if others show that it was read late. Else the errors of a drive that was just put in would be those of the drive before, and end by a proof
// that proves nothing of a write.
func TestLogClock(t *testing.T) {
	const day = 24 * time.Hour
	for _, ppm := range []time.Duration{-200, 0, 200} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		up := 300 * day // the stamps are off by more than an hour already
		c := newLogClock(now)
		read := func(passed, late time.Duration) {
			t.Helper()
			now, up = now.Add(passed), up+passed
			is := c.at((up-late)+(up-late)/1_000_000*ppm, now)
			if off := is.Sub(now.Add(-late)); off.Abs() > 2*time.Second {
				t.Errorf("%d ppm: a line that was logged %v ago is %v off", ppm, late, off)
			}
		}
		read(0, 0)
		read(time.Second, 0)
		read(30*day, 0)
		for late := 20 * time.Minute; late > 0; late -= time.Minute { // the daemon was held up
			read(time.Second, late)
		}
		read(10*day, 0)
		read(time.Minute, 30*time.Second)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("add@/devices/x\x00ACTION=add\x00DEVPATH=/devices/x\x00"))
	f.Add([]byte("3,1,5,-;text\n A=b\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseUevent(b)
		if l, _, ok := parseKmsg(string(b)); ok && !utf8.ValidString(l.Text) {
			t.Errorf("kernel log text is no text: %q", l.Text)
		}
	})
}
