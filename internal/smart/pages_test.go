package smart

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

type decoder func(*drivebay.Evidence, []byte) error

// seal makes a 512-byte ATA structure add up to 0.
func seal(b []byte) []byte {
	b[511] = 0
	b[511] = -checksum(b[:512])
	return b
}

func page(n int, at map[int][]byte) []byte {
	b := make([]byte, n)
	for i, data := range at {
		copy(b[i:], data)
	}
	return b
}

// wordsOf writes an ATA string of n bytes.
func wordsOf(s string, n int) []byte {
	b := []byte(s + strings.Repeat(" ", n-len(s)))
	return swapped(b)
}

func decode(t *testing.T, ev *drivebay.Evidence, d decoder, b []byte) *drivebay.Evidence {
	t.Helper()
	if ev == nil {
		ev = &drivebay.Evidence{}
	}
	if err := d(ev, b); err != nil {
		t.Fatal(err)
	}
	return ev
}

// refuse expects an error with a text, and evidence that is as it was.
func refuse(t *testing.T, d decoder, b []byte, want string) {
	t.Helper()
	ev, before := filled(), filled()
	err := d(ev, b)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if !reflect.DeepEqual(ev, before) {
		t.Error("an error changed the evidence")
	}
}

// filled is evidence with something in every part that a decoder writes to.
func filled() *drivebay.Evidence {
	n, warm := uint64(7), 33
	return &drivebay.Evidence{
		Identity: drivebay.Identity{Model: "M", Serial: "S", Firmware: "F", WWN: "naa.5", Size: 1, RPM: 7200}, Type: drivebay.TypeHDD,
		Verdict: drivebay.VerdictPassed, Temperature: &warm, PowerOnHours: &n,
		ATA: &drivebay.ATA{SMARTSupported: true, ErrorCount: &n, Attributes: []drivebay.Attribute{{ID: 5, Value: 100, Worst: 100}},
			Statistics: []drivebay.Statistic{{Page: 1}}, Errors: []drivebay.DriveLog{{Number: 3}}, SelectiveSpans: []drivebay.Span{{First: 1, Last: 2}}},
		NVMe:      &drivebay.NVMe{TemperatureKelvin: 300, AvailableSpare: 100, Errors: []drivebay.DriveLog{{Number: 3}}},
		SCSI:      &drivebay.SCSI{HasIE: true, GrownDefects: &n, ErrorCounters: map[string]drivebay.ErrorCounter{"read": {Uncorrected: 2}}},
		SelfTests: []drivebay.SelfTest{{Kind: "short", Result: drivebay.SelfTestPassed}},
		Problems:  []drivebay.Problem{{Page: "x"}},
	}
}

// checkStrings walks everything and fails on text that is not UTF-8.
func checkStrings(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			t.Errorf("%q is not UTF-8", v.String())
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			checkStrings(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				checkStrings(t, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkStrings(t, v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			checkStrings(t, v.MapIndex(k))
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"  ab c \x00\x00": "ab c", "a\x00b": "a b", "\xff\xfe": "\uFFFD", "a\x1bb": "a\uFFFDb", "": "", "\x00": "",
		"Größe": "Größe",
	} {
		if got := text([]byte(in)); got != want {
			t.Errorf("text(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestEverySize gives every decoder every length of zeros and of ones: neither
// is a drive, so none may be believed and none may panic.
func TestEverySize(t *testing.T) {
	for name, d := range allDecoders() {
		for _, fill := range []byte{0x00, 0xFF} {
			for n := 0; n <= 4096; n += 1 + n/20 {
				b := make([]byte, n)
				for i := range b {
					b[i] = fill
				}
				ev, before := filled(), filled()
				err := d(ev, b)
				if err != nil && !reflect.DeepEqual(ev, before) {
					t.Fatalf("%s, %d bytes of %02X: an error changed the evidence", name, n, fill)
				}
				if err == nil && !(believable[name] && fill == 0) {
					t.Fatalf("%s believed %d bytes of %02X", name, n, fill)
				}
			}
		}
	}
}

// believable are the pages that mean something when they are all zeros: logs in
// which nothing was ever written.
var believable = map[string]bool{pageNVMeSelfTest: true, pageNVMeErrors: true}

func allDecoders() map[string]decoder {
	all := map[string]decoder{}
	for _, family := range []map[string]decoder{ataDecoders, nvmeDecoders, scsiDecoders} {
		for name, d := range family {
			all[name] = d
		}
	}
	return all
}

var ataDecoders = map[string]decoder{
	pageIdentify: ATAIdentify, pageData: ATASmartData, pageThresholds: ATASmartThresholds, pageStatus: ATASmartStatus,
	pageErrorLog: ATASummaryErrorLog, pageExtErrorLog: ATAExtErrorLog, pageSelfTestLog: ATASelfTestLog,
	pageExtSelfTestLog: ATAExtSelfTestLog, pageSelectiveLog: ATASelectiveLog, pageStatistics: ATADevStats,
}

var nvmeDecoders = map[string]decoder{
	pageController: NVMeIdentifyController, pageNamespace: NVMeIdentifyNamespace, pageNVMeSmart: NVMeSmartLog,
	pageNVMeErrors: NVMeErrorLog, pageNVMeSelfTest: NVMeSelfTestLog,
}

var scsiDecoders = map[string]decoder{
	pageInquiry: SCSIInquiry, pageVPDSerial: SCSIVPDSerial, pageVPDDeviceID: SCSIVPDDeviceID, pageVPDBlockChar: SCSIVPDBlockChar,
	pageCapacity: SCSICapacity, pageDefects: SCSIGrownDefects, "scsi-log-02": SCSILogWrite, "scsi-log-03": SCSILogRead,
	"scsi-log-05": SCSILogVerify, "scsi-log-06": SCSILogNonMedium, "scsi-log-0d": SCSILogTemp, "scsi-log-0e": SCSILogStartStop,
	"scsi-log-10": SCSILogSelfTest, "scsi-log-11": SCSILogSSD, "scsi-log-15": SCSILogBackground, "scsi-log-15-01": SCSIPending,
	"scsi-log-2f": SCSILogIE,
}
