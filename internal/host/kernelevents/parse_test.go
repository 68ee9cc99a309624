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
	boot := time.Unix(1000, 0)
	l, ok := parseKmsg("3,1234,5000000,-;I/O error, dev sdc, sector 4096\n SUBSYSTEM=block\n", boot)
	if !ok || l.Priority != 3 || l.Text != "I/O error, dev sdc, sector 4096" || !l.At.Equal(time.Unix(1005, 0)) {
		t.Errorf("%+v %v", l, ok)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("add@/devices/x\x00ACTION=add\x00DEVPATH=/devices/x\x00"))
	f.Add([]byte("3,1,5,-;text\n A=b\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseUevent(b)
		if l, ok := parseKmsg(string(b), time.Time{}); ok && !utf8.ValidString(l.Text) {
			t.Errorf("kernel log text is no text: %q", l.Text)
		}
	})
}
