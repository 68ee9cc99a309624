package emul

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/smart"
)

func testDisk() Disk {
	return Disk{
		Name: "d1", Serial: "SERIAL-1", Model: "EMULATED DRIVE", Firmware: "FW01A2B3", WWN: 0x5000c50012345678,
		Size: 4 << 40, RPM: 7200, PhysicalBlock: 4096,
		Attributes: []Attribute{
			{ID: 5, Flags: 0x33, Value: 90, Worst: 80, Threshold: 10, Raw: 8},
			{ID: 9, Flags: 0x32, Value: 98, Worst: 98, Raw: 12345},
			{ID: 194, Flags: 0x22, Value: 64, Worst: 50, Raw: 0x0030_0012_0023},
			{ID: 199, Flags: 0x3e, Value: 200, Worst: 200, Raw: 1<<48 - 1},
		},
		Errors:     []LoggedError{{Hours: 100, Error: 0x40, Status: 0x51, LBA: 0x0a0b0c0d0e0f, Count: 8, Command: 0x25}, {Hours: 200, Error: 0x84, Status: 0x51, LBA: 5, Command: 0x35}},
		ErrorCount: 9,
		SelfTests:  []SelfTest{{Kind: 1, Hours: 50}, {Kind: 2, Status: 7, Hours: 60, LBA: 1 << 40}},
		Statistics: []Statistic{{Page: 1, Offset: 0x10, Value: 12345}, {Page: 3, Offset: 0x20, Value: 8}, {Page: 5, Offset: 8, Value: 35}, {Page: 5, Offset: 0x28, Value: -5}},
	}
}

func newDisk(t testing.TB, desc Disk) *SATDisk {
	t.Helper()
	d, err := NewDisk(desc)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// passed is ATA PASS-THROUGH (16) of a command that reads blocks of 512 bytes, or
// none and wants the registers.
func passed(command, feature byte, lba uint64, blocks byte, extended bool) []byte {
	b := make([]byte, 16)
	b[0], b[1], b[2] = 0x85, nonData<<1, 0x20
	if blocks > 0 {
		b[1], b[2] = dataIn<<1, 0x0e
	}
	if extended {
		b[1] |= 1
	}
	b[4], b[6], b[14] = feature, blocks, command
	b[8], b[10], b[12] = byte(lba), byte(lba>>8), byte(lba>>16)
	return b
}

func readLog(log byte, page uint64) []byte {
	return passed(ataReadLogExt, 0, uint64(log)|page<<8, 1, true)
}

func smartRead(feature, log byte) []byte {
	return passed(ataSMART, feature, smartKey<<8|uint64(log), 1, false)
}

func ask(t testing.TB, d Device, cdb []byte) []byte {
	t.Helper()
	r := d.Do(cdb, nil)
	if r.Status != StatusGood {
		t.Fatalf("% x: status %02x, sense % x", cdb, r.Status, r.Sense)
	}
	return r.Data
}

// The drive must read as it is described, through the decoders that the daemon
// has: they were written from the standards, and tried on recordings of real
// drives.
func TestReadsAsDescribed(t *testing.T) {
	desc := testDisk()
	d, ev := newDisk(t, desc), &drivebay.Evidence{}
	decode := func(f func(*drivebay.Evidence, []byte) error, page []byte) {
		t.Helper()
		if err := f(ev, page); err != nil {
			t.Error(err)
		}
	}
	decode(smart.ATAIdentify, ask(t, d, passed(ataIdentify, 0, 0, 1, false)))
	decode(smart.ATASmartData, ask(t, d, smartRead(smartReadData, 0)))
	decode(smart.ATASmartThresholds, ask(t, d, smartRead(smartThresholds, 0)))
	decode(smart.ATADevStats, d.statistics())

	want := drivebay.Identity{Model: desc.Model, Serial: desc.Serial, Firmware: desc.Firmware, WWN: "naa.5000c50012345678", Size: desc.Size, RPM: 7200}
	if ev.Identity != want || ev.Type != drivebay.TypeHDD || !ev.ATA.SMARTEnabled || ev.ATA.LogicalSector != 512 {
		t.Errorf("identity %+v, type %v, %+v", ev.Identity, ev.Type, ev.ATA)
	}
	for i, a := range desc.Attributes {
		got := ev.ATA.Attributes[i]
		if got.ID != a.ID || got.Value != a.Value || got.Worst != a.Worst || got.Raw != a.Raw || *got.Threshold != a.Threshold || got.Prefail != (a.Flags&1 != 0) {
			t.Errorf("attribute %d: %+v", a.ID, got)
		}
	}
	for i, s := range desc.Statistics {
		if got := ev.ATA.Statistics[i]; got.Page != s.Page || got.Offset != s.Offset || got.Value != s.Value {
			t.Errorf("statistic %d: %+v", i, got)
		}
	}
	if *ev.Temperature != 35 || *ev.PowerOnHours != 12345 {
		t.Errorf("%d degrees, %d hours", *ev.Temperature, *ev.PowerOnHours)
	}
}

// Both error logs and both self-test logs tell the same story.
func TestLogs(t *testing.T) {
	d := newDisk(t, testDisk())
	for name, logs := range map[string]struct {
		errors, tests   []byte
		errors1, tests1 func(*drivebay.Evidence, []byte) error
		mask            uint64
	}{
		"SMART":   {ask(t, d, smartRead(smartReadLog, 1)), ask(t, d, smartRead(smartReadLog, 6)), smart.ATASummaryErrorLog, smart.ATASelfTestLog, 1<<28 - 1},
		"general": {ask(t, d, readLog(3, 0)), ask(t, d, readLog(7, 0)), smart.ATAExtErrorLog, smart.ATAExtSelfTestLog, 1<<48 - 1},
	} {
		ev := &drivebay.Evidence{}
		if err := logs.errors1(ev, logs.errors); err != nil {
			t.Fatal(name, err)
		}
		if err := logs.tests1(ev, logs.tests); err != nil {
			t.Fatal(name, err)
		}
		e := ev.ATA.Errors
		if *ev.ATA.ErrorCount != 9 || len(e) != 2 || e[0].Number != 9 || e[0].Hours != 200 || e[0].LBA != 5 || e[1].Number != 8 || e[1].LBA != 0x0a0b0c0d0e0f&logs.mask {
			t.Errorf("%s: %d errors, %+v", name, *ev.ATA.ErrorCount, e)
		}
		s := ev.SelfTests
		if len(s) != 2 || s[0].Kind != "long" || s[0].Result != drivebay.SelfTestFailed || s[0].Hours != 60 || s[1].Result != drivebay.SelfTestPassed || s[1].LBA != nil {
			t.Errorf("%s: %+v", name, s)
		}
		if name == "general" && *s[0].LBA != 1<<40 {
			t.Errorf("failed at %d", *s[0].LBA)
		}
	}
}

// What identify data and the directory promise is kept, and nothing else is there.
func TestPromises(t *testing.T) {
	d := newDisk(t, testDisk())
	id, data, dir := ask(t, d, passed(ataIdentify, 0, 0, 1, false)), ask(t, d, smartRead(smartReadData, 0)), ask(t, d, readLog(0, 0))
	if !smart.ATAHasSMART(id) || !smart.ATAHasErrorLog(id, data) || !smart.ATAHasErrorLog(id, nil) || !smart.ATAHasSelfTests(id, nil) || !smart.ATAHasSelfTests(nil, data) || !smart.ATAHasGeneralLogs(id) {
		t.Error("a feature is not promised")
	}
	for log := 1; log < 256; log++ {
		r := d.Do(readLog(byte(log), 0), nil)
		if promised := smart.ATAHasLog(dir, byte(log)); promised != (r.Status == StatusGood) {
			t.Errorf("log %02x: promised %v, status %02x", log, promised, r.Status)
		}
	}
	if r := d.Do(readLog(4, statisticPages), nil); r.Status == StatusGood {
		t.Error("a page behind the end of the log came")
	}
	if d.Do(passed(ataSMART, smartDisable, smartKey<<8, 0, false), nil); smart.ATAHasSMART(ask(t, d, passed(ataIdentify, 0, 0, 1, false))) {
		t.Error("SMART was switched off and is on")
	}
}

// The registers come back in the format that D_SENSE says (SAT-4 12.2.2.6 and 7).
func TestRegisters(t *testing.T) {
	for _, c := range []struct {
		fixed bool
		cdb   []byte
		want  []byte
	}{
		{false, passed(ataCheckPower, 0, 0, 0, false), []byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 0x09, 0x0c, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0x40, 0x50}},
		{true, passed(ataCheckPower, 0, 0, 0, false), []byte{0x70, 0, 1, 0, 0x50, 0x40, 0xff, 10, 0, 0, 0, 0, 0, 0x1d, 0, 0, 0, 0}},
		{false, passed(ataSMART, smartStatus, smartKey<<8, 0, false), []byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 0x09, 0x0c, 0, 0, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0x40, 0x50}},
		{true, passed(ataSMART, smartStatus, smartKey<<8, 0, false), []byte{0x70, 0, 1, 0, 0x50, 0x40, 0, 10, 0, 0, 0x4f, 0xc2, 0, 0x1d, 0, 0, 0, 0}},
		{false, passed(0xf9, 0, 0, 0, false), []byte{0x72, 0xb, 0, 0, 0, 0, 0, 14, 0x09, 0x0c, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x51}},
	} {
		desc := testDisk()
		desc.FixedSense = c.fixed
		if r := newDisk(t, desc).Do(c.cdb, nil); r.Status != StatusCheckCondition || !bytes.Equal(r.Sense, c.want) {
			t.Errorf("% x, fixed %v:\n got % x\nwant % x", c.cdb, c.fixed, r.Sense, c.want)
		}
	}
	desc := testDisk()
	desc.Failed = true
	r := newDisk(t, desc).Do(passed(ataSMART, smartStatus, smartKey<<8, 0, false), nil)
	if r.Sense[17] != 0xf4 || r.Sense[19] != 0x2c {
		t.Errorf("a failed drive says % x", r.Sense)
	}
	twelve := []byte{0xa1, nonData << 1, 0x20, smartStatus, 0, 0, 0x4f, 0xc2, 0, ataSMART, 0, 0}
	if r := newDisk(t, testDisk()).Do(twelve, nil); len(r.Sense) != 22 || r.Sense[17] != 0x4f || r.Sense[19] != 0xc2 {
		t.Errorf("12 bytes: % x", r.Sense)
	}
}

// Only what needs the platters wakes a disk.
func TestSleep(t *testing.T) {
	read, stop := []byte{0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0}, []byte{0x1b, 0, 0, 0, 0, 0}
	for key, c := range map[string]struct {
		cdb   []byte
		wakes bool
	}{
		"ata e5": {passed(ataCheckPower, 0, 0, 0, false), false}, "ata ec": {passed(ataIdentify, 0, 0, 1, false), false},
		"ata b0 d0": {smartRead(smartReadData, 0), true}, "ata b0 da": {passed(ataSMART, smartStatus, smartKey<<8, 0, false), true},
		"ata 2f 04": {readLog(4, 0), true}, "scsi 28": {read, true},
		"scsi 00": {make([]byte, 6), false}, "scsi 12": {[]byte{0x12, 0, 0, 0, 96, 0}, false}, "scsi 35": {[]byte{0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false},
		"scsi 25": {make([]byte, 10), false}, "scsi 1a": {[]byte{0x1a, 0, 0x3f, 0, 255, 0}, false},
	} {
		if key == "scsi 25" {
			c.cdb[0] = 0x25
		}
		desc := testDisk()
		desc.Power = Standby
		d := newDisk(t, desc)
		d.Do(c.cdb, nil)
		s := d.state()
		if awake := s.Power != Standby; awake != c.wakes || (s.Wakes == 1) != c.wakes || Key(c.cdb) != key || c.wakes && s.WokenBy != key {
			t.Errorf("%s (%s): %+v", key, Key(c.cdb), s)
		}
	}
	d := newDisk(t, testDisk())
	if d.Do(passed(ataStandbyNow, 0, 0, 0, false), nil); d.state().Power != Standby {
		t.Error("STANDBY IMMEDIATE")
	}
	if d.Do(stop, nil); d.Do(read, nil).Sense[1] != keyNotReady || d.Do(make([]byte, 6), nil).Status == StatusGood || d.state().Power != Standby {
		t.Error("a stopped unit serves")
	}
	stop[4] = 1
	if d.Do(stop, nil); d.Do(read, nil).Status != StatusGood {
		t.Error("a started unit does not serve")
	}
}

func TestSelfTest(t *testing.T) {
	desc := testDisk()
	desc.SelfTests, desc.SelfTestSeconds = nil, 100
	d := newDisk(t, desc)
	now := time.Unix(0, 0)
	d.now = func() time.Time { return now }
	start := func(kind byte) {
		t.Helper()
		if r := d.Do(passed(ataSMART, smartOffline, smartKey<<8|uint64(kind), 0, false), nil); r.Sense[1] != keyRecovered {
			t.Fatalf("% x", r.Sense)
		}
	}
	start(1)
	now = now.Add(35 * time.Second)
	ev := &drivebay.Evidence{}
	if err := smart.ATASmartData(ev, ask(t, d, smartRead(smartReadData, 0))); err != nil || ev.SelfTestProgress == nil || *ev.SelfTestProgress != 60 {
		t.Errorf("%v, left: %v", err, ev.SelfTestProgress)
	}
	now = now.Add(65 * time.Second)
	start(2)
	start(0x7f)
	d.apply(Change{ReadErrors: &[]uint64{1 << 32}})
	start(1)
	now = now.Add(time.Hour)
	want := []SelfTest{{Kind: 1, Hours: 12345}, {Kind: 2, Status: testAborted, Hours: 12345}, {Kind: 1, Status: testReadFailed, Hours: 12345, LBA: 1 << 32}}
	if got := d.state().SelfTests; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// A selective self-test reads the spans that the host wrote into log 09h, and no others.
func TestSelectiveSelfTest(t *testing.T) {
	desc := testDisk()
	desc.SelfTests, desc.SelfTestSeconds = nil, 100
	d := newDisk(t, desc)
	now := time.Unix(0, 0)
	d.now = func() time.Time { return now }
	write := passed(ataSMART, smartWriteLog, smartKey<<8|logSelective, 1, false)
	write[1] = dataOut << 1
	log := func(first, last uint64) []byte {
		b := make([]byte, sectorSize)
		b[0] = 1
		le.PutUint64(b[2+16:], first) // the first of the five is not in use
		le.PutUint64(b[2+16+8:], last)
		checksum(b)
		return b
	}
	start := passed(ataSMART, smartOffline, smartKey<<8|selective, 0, false)
	refused := func(what string, r Reply) {
		t.Helper()
		if len(r.Sense) < 2 || r.Sense[1] != keyAborted {
			t.Errorf("%s: status %02x, sense % x", what, r.Status, r.Sense)
		}
	}
	refused("a test without spans", d.Do(start, nil))
	refused("a span beyond the drive", d.Do(write, log(5, 4<<40)))
	refused("a wrong checksum", d.Do(write, append(log(5, 6)[:sectorSize-1], 0)))
	spansNow := func() []drivebay.Span {
		ev := &drivebay.Evidence{}
		if err := smart.ATASmartData(ev, ask(t, d, smartRead(smartReadData, 0))); err != nil {
			t.Fatal(err)
		}
		if err := smart.ATASelectiveLog(ev, ask(t, d, smartRead(smartReadLog, logSelective))); err != nil {
			t.Fatal(err)
		}
		return ev.ATA.SelectiveSpans
	}
	d.apply(Change{ReadErrors: &[]uint64{1 << 32}})
	run := func(first, last uint64) {
		t.Helper()
		if r := d.Do(write, log(first, last)); r.Status != StatusGood && r.Sense[1] != keyRecovered {
			t.Fatalf("% x", r.Sense)
		}
		if r := d.Do(start, nil); r.Sense[1] != keyRecovered {
			t.Fatalf("% x", r.Sense)
		}
		if got := spansNow(); got != nil {
			t.Errorf("under test, the spans are %v", got)
		}
		refused("spans during a test", d.Do(write, log(1, 2)))
		now = now.Add(100 * time.Second)
	}
	run(1<<32+1, 1<<32+9)
	if got, want := spansNow(), []drivebay.Span{{First: 1<<32 + 1, Last: 1<<32 + 9}}; !reflect.DeepEqual(got, want) {
		t.Errorf("spans %v, want %v", got, want)
	}
	run(1<<32-1, 1<<32)
	want := []SelfTest{{Kind: selective, Hours: 12345}, {Kind: selective, Status: testReadFailed, Hours: 12345, LBA: 1 << 32}}
	if got := d.state().SelfTests; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
