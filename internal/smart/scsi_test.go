package smart

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/drivebay/drivebay"
)

func inquiryPage() []byte {
	return page(96, map[int][]byte{2: {6}, 4: {91}, 8: []byte("HITACHI H109060SESUN600GA720")})
}

func vpdOf(code byte, data ...byte) []byte {
	return append([]byte{0, code, byte(len(data) >> 8), byte(len(data))}, data...)
}

func param(code uint16, data ...byte) []byte {
	return append([]byte{byte(code >> 8), byte(code), 3, byte(len(data))}, data...)
}

func logOf(code, subpage byte, params ...[]byte) []byte {
	data := slices.Concat(params...)
	if subpage != 0 {
		code |= 0x40
	}
	return append([]byte{code, subpage, byte(len(data) >> 8), byte(len(data))}, data...)
}

func TestSCSIIdentity(t *testing.T) {
	ev := decode(t, nil, SCSIInquiry, inquiryPage())
	decode(t, ev, SCSIVPDSerial, vpdOf(0x80, []byte("  001234   ")...))
	decode(t, ev, SCSIVPDBlockChar, vpdOf(0xB1, 0x27, 0x24, 0, 2))
	capacity := make([]byte, 32)
	binary.BigEndian.PutUint64(capacity, 999)
	binary.BigEndian.PutUint32(capacity[8:], 520)
	decode(t, ev, SCSICapacity, capacity)
	want := drivebay.Identity{Vendor: "HITACHI", Model: "H109060SESUN600G", Firmware: "A720", Serial: "001234", RPM: 10020, Size: 520000}
	if ev.Identity != want || ev.Type != drivebay.TypeHDD {
		t.Errorf("%+v %v", ev.Identity, ev.Type)
	}
	if decode(t, ev, SCSIVPDBlockChar, vpdOf(0xB1, 0, 1)); ev.Type != drivebay.TypeSSD || ev.Identity.RPM != 0 {
		t.Errorf("%v, %d rpm", ev.Type, ev.Identity.RPM)
	}
	refuse(t, SCSIInquiry, page(36, map[int][]byte{0: {0x7F}, 8: []byte("X")}), "no drive at this address")
	refuse(t, SCSIVPDSerial, vpdOf(0x83, 'a'), "number 83h")
	refuse(t, SCSIVPDSerial, vpdOf(0x80, ' '), "the serial number is empty")
	binary.BigEndian.PutUint64(capacity, math.MaxUint64)
	refuse(t, SCSICapacity, capacity, "invalid capacity")
}

func TestSCSIVPDDeviceID(t *testing.T) {
	naa5 := []byte{1, 3, 0, 8, 0x50, 0, 0xC5, 0, 0xA1, 0xB2, 0xC3, 0xD4}
	naa6 := append([]byte{1, 3, 0, 16, 0x60}, make([]byte, 15)...)
	port := []byte{0x61, 0x93, 0, 8, 0x50, 0, 0xC5, 0, 0xA1, 0xB2, 0xC3, 0xD5}
	eui := []byte{1, 2, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8}
	t10 := append([]byte{2, 1, 0, 12}, "ATA     disk"...)
	named := append([]byte{3, 8, 0, 4}, "name"...)
	for _, c := range []struct {
		designators [][]byte
		want        string
	}{
		{[][]byte{port, naa5}, "naa.5000c500a1b2c3d4"},
		{[][]byte{t10, eui}, "eui.0102030405060708"},
		{[][]byte{naa5, naa6, eui}, "naa.60000000000000000000000000000000"},
		{[][]byte{t10}, "t10.ATA     disk"},
		{[][]byte{named, naa6}, "name"},
		{[][]byte{naa5, naa6[:9]}, "naa.5000c500a1b2c3d4"}, // the last one is cut off
		{[][]byte{port}, ""},                               // a unit need not have a name
		{[][]byte{{1, 3, 0, 1, 0x50}}, ""},
	} {
		if ev := decode(t, nil, SCSIVPDDeviceID, vpdOf(0x83, slices.Concat(c.designators...)...)); ev.Identity.WWN != c.want {
			t.Errorf("%q, want %q", ev.Identity.WWN, c.want)
		}
	}
	refuse(t, SCSIVPDDeviceID, vpdOf(0x83, naa5[:8]...), "no complete designator")
}

func TestSCSIErrorCounters(t *testing.T) {
	big := []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
	full := logOf(0x03, 0, param(0, 1), param(1, 0, 2), param(2, 3), param(3, 4), param(4, 5), param(5, 0, 0, 0, 0, 1, 0, 0, 0), param(6, big...), param(0x8000, 1))
	ev := decode(t, nil, SCSILogRead, full)
	want := drivebay.ErrorCounter{CorrectedFast: 1, CorrectedDelayed: 2, Rereads: 3, Corrected: 4, Invocations: 5, Bytes: 1 << 24, Uncorrected: math.MaxUint64}
	if ev.SCSI.ErrorCounters["read"] != want || *ev.BytesRead != 1<<24 || ev.BytesWritten != nil || len(ev.Problems) != 0 {
		t.Errorf("%+v", ev.SCSI.ErrorCounters)
	}
	ev = decode(t, ev, SCSILogWrite, logOf(0x02, 0, param(6, 9)))
	ev = decode(t, ev, SCSILogVerify, logOf(0x05, 0, param(6, 8)))
	if ev.SCSI.ErrorCounters["write"].Uncorrected != 9 || ev.SCSI.ErrorCounters["verify"].Uncorrected != 8 || ev.SCSI.ErrorCounters["read"] != want {
		t.Errorf("%+v", ev.SCSI.ErrorCounters)
	}
	short := decode(t, nil, SCSILogRead, full[:14])
	if c := short.SCSI.ErrorCounters["read"]; c.CorrectedFast != 1 || len(short.Problems) != 1 {
		t.Errorf("%+v %v", c, short.Problems)
	}
	refuse(t, SCSILogRead, full[:8], "no complete parameter")
	refuse(t, SCSILogRead, full[:3], "3 bytes")
	refuse(t, SCSILogWrite, full, "number 03h")
	refuse(t, SCSILogRead, logOf(0x03, 0, param(0x8000, 1)), "none of the 1 parameters")
}

func TestSCSILogs(t *testing.T) {
	ev := &drivebay.Evidence{}
	decode(t, ev, SCSILogNonMedium, logOf(0x06, 0, param(0, 0, 0, 1, 0)))
	decode(t, ev, SCSILogTemp, logOf(0x0D, 0, param(0, 0, 31), param(1, 0, 65)))
	decode(t, ev, SCSILogStartStop, logOf(0x0E, 0, param(3, 0, 0, 0xC3, 0x50), param(4, 0, 0, 0, 42)))
	decode(t, ev, SCSILogSSD, logOf(0x11, 0, param(1, 0, 0, 0, 255)))
	decode(t, ev, SCSILogBackground, logOf(0x15, 0, param(0, 0, 0, 0x0E, 0x10, 0, 4, 0, 1, 0, 0, 0, 0)))
	decode(t, ev, SCSIPending, logOf(0x15, 1, param(0, 0, 0, 0, 3)))
	decode(t, ev, SCSIGrownDefects, []byte{0, 0x0D, 0, 0, 0, 0, 0, 24})
	s := ev.SCSI
	if *s.NonMedium != 256 || *ev.Temperature != 31 || *s.TripTemperature != 65 || *s.StartStops != 42 || *ev.PercentUsed != 255 ||
		*s.BackgroundScan != 4 || *ev.PowerOnHours != 60 || *s.PendingDefects != 3 || *s.GrownDefects != 3 {
		t.Errorf("%+v %+v", ev, s)
	}
	if ev = decode(t, nil, SCSILogTemp, logOf(0x0D, 0, param(0, 0, 0xFF))); ev.Temperature != nil || ev.SCSI != nil {
		t.Errorf("a temperature that is not known: %+v", ev)
	}
	refuse(t, SCSILogBackground, logOf(0x15, 1, param(0, 0, 0, 0, 3)), "subpage 01h")
	refuse(t, SCSIPending, logOf(0x15, 0, param(0, 0, 0, 0, 3)), "subpage 00h")
	refuse(t, SCSILogSSD, logOf(0x11, 0, param(1, 0, 0, 9)), "none of the")
}

func TestSCSIGrownDefects(t *testing.T) {
	for format, want := range map[byte]uint64{0: 16, 1: 8, 2: 8, 3: 8, 4: 8, 5: 8} {
		if ev := decode(t, nil, SCSIGrownDefects, []byte{0, 8 | format, 0, 0, 0, 0, 0, 64}); *ev.SCSI.GrownDefects != want {
			t.Errorf("format %d: %d", format, *ev.SCSI.GrownDefects)
		}
	}
	refuse(t, SCSIGrownDefects, []byte{0, 0x0E, 0, 0, 0, 0, 0, 64}, "format 6")
	refuse(t, SCSIGrownDefects, []byte{0, 0x00, 0, 0, 0, 0, 0, 0}, "not the grown defect list")
	refuse(t, SCSIGrownDefects, []byte{0, 0x1D, 0, 0, 0, 0, 0, 8}, "primary defect list")
	refuse(t, SCSIGrownDefects, []byte{0, 0x0D, 0, 0, 0, 0, 0, 9}, "not a multiple")
}

func TestSCSISelfTests(t *testing.T) {
	result := func(head ...byte) []byte { return append(head, make([]byte, 16-len(head))...) }
	none := bytesOf(0xFF, 8)
	ev := decode(t, nil, SCSILogSelfTest, logOf(0x10, 0,
		param(1, result(0x47, 1, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34)...),
		param(2, append(append([]byte{0x20, 0, 0, 9}, none...), 0, 0, 0, 0)...), param(3, result()...)))
	lba := uint64(0x1234)
	want := []drivebay.SelfTest{
		{Kind: "long", Result: drivebay.SelfTestFailed, Text: "failed in another segment", Hours: 4096, LBA: &lba},
		{Kind: "short", Result: drivebay.SelfTestPassed, Text: "completed without error", Hours: 9},
	}
	if !reflect.DeepEqual(ev.SelfTests, want) {
		t.Errorf("%+v", ev.SelfTests)
	}
}

func bytesOf(v byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = v
	}
	return b
}

func TestSCSILogIE(t *testing.T) {
	for _, c := range []struct {
		asc, ascq byte
		want      drivebay.Verdict
	}{
		{0, 0, drivebay.VerdictPassed}, {0x5D, 0x00, drivebay.VerdictFailed}, {0x5D, 0x10, drivebay.VerdictFailed},
		{0x0B, 0x01, drivebay.VerdictUnknown}, {0x80, 0, drivebay.VerdictUnknown},
	} {
		ev := decode(t, nil, SCSILogIE, logOf(0x2F, 0, param(0, c.asc, c.ascq, 40, 65)))
		if ev.Verdict != c.want || !ev.SCSI.HasIE || ev.SCSI.ASC != c.asc || ev.SCSI.ASCQ != c.ascq || *ev.Temperature != 40 {
			t.Errorf("%02X/%02X: %v %+v", c.asc, c.ascq, ev.Verdict, ev.SCSI)
		}
	}
	refuse(t, SCSILogIE, logOf(0x2F, 0, param(0, 0x5D)), "none of the")
}
