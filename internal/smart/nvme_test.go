package smart

import (
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

func controllerPage() []byte {
	b := page(4096, map[int][]byte{0: {0x86, 0x80}, 4: []byte("PHLJ0000            "), 24: []byte("INTEL SSDPE2KX080T8" + strings.Repeat(" ", 21)), 64: []byte("VDV10131")})
	binary.LittleEndian.PutUint16(b[266:], 343)
	binary.LittleEndian.PutUint16(b[268:], 353)
	return b
}

func namespacePage() []byte {
	b := make([]byte, 4096)
	binary.LittleEndian.PutUint64(b, 1000)
	b[26], b[128+4+2] = 1, 12 // format 1: 4096 bytes
	copy(b[120:], []byte{0x5C, 0xD2, 0xE4, 1, 2, 3, 4, 5})
	return b
}

func smartLog(change func([]byte)) []byte {
	b := make([]byte, 512)
	b[3], b[4], b[5] = 100, 10, 3
	binary.LittleEndian.PutUint16(b[1:], 310)
	for i, at := range []int{32, 48, 64, 80, 96, 112, 128, 144, 160, 176} {
		b[at] = byte(i + 1)
	}
	if change != nil {
		change(b)
	}
	return b
}

func TestNVMeIdentify(t *testing.T) {
	ev := decode(t, nil, NVMeSmartLog, smartLog(nil))
	decode(t, ev, NVMeIdentifyController, controllerPage())
	decode(t, ev, NVMeIdentifyNamespace, namespacePage())
	want := drivebay.Identity{Model: "INTEL SSDPE2KX080T8", Serial: "PHLJ0000", Firmware: "VDV10131", WWN: "eui.5cd2e40102030405", Size: 4096000}
	if ev.Identity != want || ev.Type != drivebay.TypeNVMe || ev.Protocol != drivebay.ProtocolNVMe {
		t.Errorf("%+v %v", ev.Identity, ev.Type)
	}
	if ev.NVMe.WarningTemp != 70 || ev.NVMe.CriticalTemp != 80 {
		t.Errorf("limits %d and %d", ev.NVMe.WarningTemp, ev.NVMe.CriticalTemp)
	}
	if alone := decode(t, nil, NVMeIdentifyController, controllerPage()); alone.NVMe != nil {
		t.Error("identify is no health log")
	}
	guid := namespacePage()
	copy(guid[104:], []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	if ev = decode(t, nil, NVMeIdentifyNamespace, guid); ev.Identity.WWN != "eui.0102030405060708090a0b0c0d0e0f10" {
		t.Error(ev.Identity.WWN)
	}
	ev = &drivebay.Evidence{Identity: drivebay.Identity{WWN: "uuid.1"}}
	if decode(t, ev, NVMeIdentifyNamespace, guid); ev.Identity.WWN != "uuid.1" {
		t.Error(ev.Identity.WWN)
	}
	refuse(t, NVMeIdentifyController, make([]byte, 4096), "all bytes are 00h")
	refuse(t, NVMeIdentifyNamespace, make([]byte, 4096), "the namespace does not exist")
}

func TestNVMeSmartLog(t *testing.T) {
	ev := decode(t, nil, NVMeSmartLog, smartLog(nil))
	want := &drivebay.NVMe{AvailableSpare: 100, SpareThreshold: 10, PercentageUsed: 3, DataUnitsRead: 1, DataUnitsWritten: 2, HostReads: 3, HostWrites: 4,
		BusyMinutes: 5, PowerCycles: 6, PowerOnHours: 7, UnsafeShutdowns: 8, MediaErrors: 9, ErrorLogEntries: 10, TemperatureKelvin: 310}
	if !reflect.DeepEqual(ev.NVMe, want) {
		t.Errorf("%+v", ev.NVMe)
	}
	if *ev.Temperature != 37 || *ev.PercentUsed != 3 || *ev.BytesWritten != 1024000 || *ev.BytesRead != 512000 || *ev.PowerOnHours != 7 ||
		*ev.PowerCycles != 6 || ev.Verdict != drivebay.VerdictPassed {
		t.Errorf("%+v", ev)
	}
	for bit := range 8 {
		if ev = decode(t, nil, NVMeSmartLog, smartLog(func(b []byte) { b[0] = 1 << bit })); ev.Verdict != drivebay.VerdictFailed {
			t.Errorf("critical warning bit %d is %v", bit, ev.Verdict)
		}
	}
	ev = decode(t, nil, NVMeSmartLog, smartLog(func(b []byte) {
		b[5], b[48+8], b[160+15] = 255, 1, 1 // 2^64 data units, 2^120 errors
		for i := range 8 {
			b[128+i] = 0xFF
		}
	}))
	if *ev.BytesWritten != math.MaxUint64 || ev.NVMe.MediaErrors != math.MaxUint64 || ev.NVMe.PowerOnHours != math.MaxUint64 || *ev.PercentUsed != 255 {
		t.Errorf("counters wrapped: %+v", ev.NVMe)
	}
	ev = decode(t, filled(), NVMeSmartLog, smartLog(nil))
	if len(ev.NVMe.Errors) != 1 {
		t.Error("the error log was lost")
	}
	refuse(t, NVMeSmartLog, make([]byte, 512), "all bytes are 00h")
	refuse(t, NVMeSmartLog, smartLog(func(b []byte) { b[1], b[2] = 0, 0 }), "0 K")
	refuse(t, NVMeSmartLog, smartLog(func(b []byte) { b[3] = 255 }), "spare is 255 %")
	refuse(t, NVMeSmartLog, smartLog(nil)[:511], "511 bytes")
}

func TestNVMeErrorLog(t *testing.T) {
	b := make([]byte, 4*64)
	for i, e := range []struct {
		count  uint64
		status uint16
		lba    uint64
	}{{7, 0x0281<<1 | 1, 4711}, {0, 0, 0}, {9, 0x0002 << 1, math.MaxUint64}} {
		binary.LittleEndian.PutUint64(b[64*i:], e.count)
		binary.LittleEndian.PutUint16(b[64*i+12:], e.status)
		binary.LittleEndian.PutUint64(b[64*i+16:], e.lba)
	}
	ev := decode(t, nil, NVMeSmartLog, smartLog(nil))
	decode(t, ev, NVMeErrorLog, b)
	want := []drivebay.DriveLog{{Number: 9, Text: "invalid field in command (status 002h)"}, {Number: 7, LBA: 4711, Text: "unrecovered read error (status 281h)"}}
	if !reflect.DeepEqual(ev.NVMe.Errors, want) {
		t.Errorf("%+v", ev.NVMe.Errors)
	}
	if err := NVMeErrorLog(&drivebay.Evidence{}, b); err == nil {
		t.Error("an error log alone would look like a health log")
	}
}

func TestNVMeSelfTestLog(t *testing.T) {
	b := make([]byte, 564)
	b[0], b[1] = 2, 30 // the long one is at 30 %
	for i := range 20 {
		b[4+28*i] = 0x0F // unused
	}
	copy(b[4:], []byte{0x27, 3, 2})
	binary.LittleEndian.PutUint64(b[4+4:], 500)
	binary.LittleEndian.PutUint64(b[4+16:], 99)
	copy(b[4+28:], []byte{0x10, 0, 0})
	ev := decode(t, nil, NVMeSelfTestLog, b)
	lba := uint64(99)
	want := []drivebay.SelfTest{
		{Kind: "long", Result: drivebay.SelfTestFailed, Text: "failed in a segment", Hours: 500, LBA: &lba},
		{Kind: "short", Result: drivebay.SelfTestPassed, Text: "completed without error"},
	}
	if !reflect.DeepEqual(ev.SelfTests, want) || *ev.SelfTestProgress != 70 {
		t.Errorf("%+v, %v to go", ev.SelfTests, ev.SelfTestProgress)
	}
}
