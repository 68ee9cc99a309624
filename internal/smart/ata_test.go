package smart

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/drivebay/drivebay"
)

// identifyPage is a 4 TB disk; change may spoil it before the checksum is made.
func identifyPage(change func([]byte)) []byte {
	b := page(512, map[int][]byte{20: wordsOf("  WD-1234", 20), 46: wordsOf("01.01A01", 8), 54: wordsOf("WDC WD4000FYYZ", 40)})
	for word, v := range map[int]uint16{0: 0x427A, 60: 0xFFFF, 61: 0x0FFF, 82: 0x346B, 83: 0x7F69, 84: 0x6163, 85: 0x3469, 86: 0xBC49, 87: 0x6163,
		100: 0xBEB0, 101: 0xD1C0, 102: 1, 106: 0x6003, 108: 0x5001, 109: 0x4EE2, 110: 0x5E00, 111: 0x1234, 217: 7200, 255: 0x00A5} {
		binary.LittleEndian.PutUint16(b[2*word:], v)
	}
	if change != nil {
		change(b)
	}
	if b[510] == 0xA5 {
		seal(b)
	}
	return b
}

func put(word int, v uint16) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint16(b[2*word:], v) }
}

func TestATAIdentify(t *testing.T) {
	ev := decode(t, nil, ATAIdentify, identifyPage(nil))
	want := drivebay.Identity{Model: "WDC WD4000FYYZ", Serial: "WD-1234", Firmware: "01.01A01", WWN: "naa.50014ee25e001234",
		Size: (0x1D1C0BEB0) * 512, RPM: 7200}
	if ev.Identity != want {
		t.Errorf("%+v\nwant %+v", ev.Identity, want)
	}
	if ev.Type != drivebay.TypeHDD || ev.Protocol != drivebay.ProtocolATA || !ev.ATA.SMARTSupported || !ev.ATA.SMARTEnabled {
		t.Errorf("type %v, protocol %v, ata %+v", ev.Type, ev.Protocol, ev.ATA)
	}
}

func TestATAIdentifyVariants(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte)
		ok     func(*drivebay.Evidence) bool
	}{
		"solid state":   {put(217, 1), func(e *drivebay.Evidence) bool { return e.Type == drivebay.TypeSSD && e.Identity.RPM == 0 }},
		"rate reserved": {put(217, 0x0200), func(e *drivebay.Evidence) bool { return e.Type == drivebay.TypeUnknown }},
		"no rate, TRIM": {func(b []byte) { put(217, 0)(b); put(169, 1)(b) }, func(e *drivebay.Evidence) bool { return e.Type == drivebay.TypeSSD }},
		"no WWN":        {func(b []byte) { put(87, 0x6063)(b); put(84, 0x6063)(b) }, func(e *drivebay.Evidence) bool { return e.Identity.WWN == "" }},
		"WWN of zeros":  {put(108, 0), func(e *drivebay.Evidence) bool { return e.Identity.WWN == "" }},
		"28 bits":       {put(83, 0x7B69), func(e *drivebay.Evidence) bool { return e.Identity.Size == 0x0FFFFFFF*512 }},
		"4Kn": {func(b []byte) { put(106, 0x5000)(b); put(117, 2048)(b) }, func(e *drivebay.Evidence) bool {
			return e.Identity.Size == 0x1D1C0BEB0*4096 && e.ATA.LogicalSector == 4096
		}},
		"huge":              {func(b []byte) { put(103, 0xFFFF)(b) }, func(e *drivebay.Evidence) bool { return e.Identity.Size == 1<<64-1 }},
		"SMART off":         {put(85, 0x3468), func(e *drivebay.Evidence) bool { return e.ATA.SMARTSupported && !e.ATA.SMARTEnabled }},
		"SMART not told":    {put(83, 0), func(e *drivebay.Evidence) bool { return !e.ATA.SMARTSupported && !e.ATA.SMARTEnabled }},
		"no checksum":       {func(b []byte) { b[510], b[511] = 0, 1 }, func(e *drivebay.Evidence) bool { return e.Identity.Serial == "WD-1234" }},
		"model not UTF-8":   {func(b []byte) { b[54], b[55] = 0xFF, 0xFE }, func(e *drivebay.Evidence) bool { return e.Identity.Model == "\uFFFDC WD4000FYYZ" }},
		"CompactFlash card": {put(0, 0x848A), func(e *drivebay.Evidence) bool { return e.Identity.Serial == "WD-1234" }},
	} {
		t.Run(name, func(t *testing.T) {
			if ev := decode(t, nil, ATAIdentify, identifyPage(c.change)); !c.ok(ev) {
				t.Errorf("%+v %+v %v", ev.Identity, ev.ATA, ev.Type)
			}
		})
	}
	wrong := identifyPage(nil)
	wrong[100] ^= 1
	refuse(t, ATAIdentify, wrong, "ata-identify: the checksum is wrong: page ignored")
	refuse(t, ATAIdentify, identifyPage(nil)[:511], "511 bytes of at least 512")
	refuse(t, ATAIdentify, identifyPage(put(0, 0x85C0)), "not a disk")
	refuse(t, ATAIdentify, identifyPage(func(b []byte) { clear(b[54:94]) }), "the model name is empty")
}

type attr struct {
	id, flags, value, worst uint8
	raw                     uint64
}

func dataPage(attrs ...attr) []byte {
	b := make([]byte, 512)
	b[0] = 16
	for i, a := range attrs {
		s := b[2+12*i:]
		s[0], s[1], s[3], s[4] = a.id, a.flags, a.value, a.worst
		binary.LittleEndian.PutUint32(s[5:], uint32(a.raw))
		binary.LittleEndian.PutUint16(s[9:], uint16(a.raw>>32))
	}
	return seal(b)
}

func thresholdPage(limits map[uint8]uint8) []byte {
	b := make([]byte, 512)
	i := 0
	for id, limit := range limits {
		b[2+12*i], b[3+12*i] = id, limit
		i++
	}
	b[400] = 1 // a page without thresholds is not a page of zeros
	return seal(b)
}

func TestATASmartData(t *testing.T) {
	gap := make([]attr, 29)
	gap[0], gap[28] = attr{5, 3, 100, 99, 2818091}, attr{12, 2, 100, 100, 1<<48 - 1}
	ev := decode(t, nil, ATASmartData, dataPage(gap...))
	want := []drivebay.Attribute{
		{ID: 5, Name: "Reallocated_Sector_Ct", Value: 100, Worst: 99, Prefail: true, Raw: 2818091, Count: 43, Text: "43 (0 43)"},
		{ID: 12, Name: "Power_Cycle_Count", Value: 100, Worst: 100, Raw: 1<<48 - 1, Count: 1<<48 - 1, Text: "281474976710655"},
	}
	if !reflect.DeepEqual(ev.ATA.Attributes, want) {
		t.Errorf("%+v\nwant %+v", ev.ATA.Attributes, want)
	}
	if ev.SelfTestProgress != nil {
		t.Error("no self-test is running")
	}
	running := dataPage(gap...)
	running[363] = 0xF4
	if ev = decode(t, nil, ATASmartData, seal(running)); ev.SelfTestProgress == nil || *ev.SelfTestProgress != 40 {
		t.Errorf("progress %v, want 40 to go", ev.SelfTestProgress)
	}
	wrong := dataPage(gap...)
	wrong[300]++
	refuse(t, ATASmartData, wrong, "ata-smart-data: the checksum is wrong: page ignored")
	refuse(t, ATASmartData, make([]byte, 512), "all bytes are 00h")
	refuse(t, ATASmartData, dataPage(gap...)[:500], "500 bytes")
}

func TestThresholds(t *testing.T) {
	for _, c := range []struct {
		value, worst, limit uint8
		now, past           bool
	}{
		{100, 100, 36, false, false}, {36, 36, 36, true, false}, {35, 35, 36, true, false}, {100, 36, 36, false, true},
		{1, 1, 0, false, false}, {0, 0, 0, false, false}, {0, 0, 1, true, false}, {253, 253, 255, true, false}, {255, 255, 255, true, false},
	} {
		ev := decode(t, nil, ATASmartData, dataPage(attr{5, 3, c.value, c.worst, 0}))
		decode(t, ev, ATASmartThresholds, thresholdPage(map[uint8]uint8{5: c.limit, 7: 99}))
		a := ev.ATA.Attributes[0]
		if a.FailedNow != c.now || a.FailedPast != c.past || a.Threshold == nil || *a.Threshold != c.limit {
			t.Errorf("%+v: now %v, past %v, threshold %v", c, a.FailedNow, a.FailedPast, a.Threshold)
		}
	}
	ev := &drivebay.Evidence{}
	if err := ATASmartThresholds(ev, thresholdPage(map[uint8]uint8{5: 1})); err == nil || ev.ATA != nil {
		t.Errorf("thresholds without attributes: %v", err)
	}
	wrong := thresholdPage(nil)
	wrong[7]++
	refuse(t, ATASmartThresholds, wrong, "the checksum is wrong")
}

func TestATASmartStatus(t *testing.T) {
	if ev := decode(t, nil, ATASmartStatus, []byte{0x4F, 0xC2}); ev.Verdict != drivebay.VerdictPassed {
		t.Error(ev.Verdict)
	}
	if ev := decode(t, nil, ATASmartStatus, []byte{0xF4, 0x2C}); ev.Verdict != drivebay.VerdictFailed {
		t.Error(ev.Verdict)
	}
	refuse(t, ATASmartStatus, []byte{0, 0}, "neither passed nor failed")
	refuse(t, ATASmartStatus, []byte{0xC2, 0x4F}, "neither passed nor failed")
	refuse(t, ATASmartStatus, []byte{0x4F}, "1 bytes")
}

func TestCommonFields(t *testing.T) {
	for _, c := range []struct {
		model, firmware string
		medium          drivebay.Type
		attr            attr
		name            string
		count           uint64
		text            string
		ok              func(*drivebay.Evidence) bool
	}{
		{"", "", 0, attr{id: 9, raw: 0x70b300001119}, "Power_On_Hours", 0x1119, "4377 (112 179 0)", func(e *drivebay.Evidence) bool { return *e.PowerOnHours == 4377 }},
		{"Maxtor 96147H8", "", hdd, attr{id: 9, raw: 121017}, "Power_On_Minutes", 2016, "2016h+57m+00s", func(e *drivebay.Evidence) bool { return *e.PowerOnHours == 2016 }},
		{"FUJITSU MHV2080AH", "", hdd, attr{id: 9, raw: 7205}, "Power_On_Seconds", 2, "2h+00m+05s", func(e *drivebay.Evidence) bool { return *e.PowerOnHours == 2 }},
		{"SAMSUNG MP0804H", "", hdd, attr{id: 9, raw: 557429}, "Power_On_Half_Minutes", 4645, "4645h+14m+30s", nil},
		{"SAMSUNG SV0412H", "", hdd, attr{id: 194, raw: 287}, "Temperature_Celsius", 28, "28.7", func(e *drivebay.Evidence) bool { return *e.Temperature == 28 }},
		{"OCZ-VERTEX3", "", ssd, attr{id: 9, raw: 0x1234_0000_0102}, "Power_On_Hours_and_Msec", 258, "258", func(e *drivebay.Evidence) bool { return *e.PowerOnHours == 258 }},
		{"SAMSUNG HS122JC", "", hdd, attr{id: 197, raw: 282013244}, "Vendor_Specific", 282013244, "282013244", nil},
		{"ST4000NM0035-1V4107", "", hdd, attr{id: 1, raw: 3<<32 | 77}, "Raw_Read_Error_Rate", 3, "3/77", nil},
		{"ST4000NM0035-1V4107", "", hdd, attr{id: 188, raw: 0x0001_0002_0003}, "Command_Timeout", 3, "1 2 3", nil},
		{"", "", 0, attr{id: 194, raw: 0x0014_0034_0022}, "Temperature_Celsius", 34, "34 (Min/Max 20/52)", func(e *drivebay.Evidence) bool { return *e.Temperature == 34 }},
		{"", "", 0, attr{id: 194, raw: 0xFFFF_FFFF_FFFF}, "Temperature_Celsius", 255, "255 (255 255 255 255 255)", func(e *drivebay.Evidence) bool { return e.Temperature == nil }},
		{"", "", 0, attr{id: 5, raw: 8589934592000}, "Reallocated_Sector_Ct", 0, "0 (2000 0)", nil},
		{"INTEL SSDSC2KB480G8", "", ssd, attr{id: 241, raw: 10}, "Host_Writes_32MiB", 10, "10", func(e *drivebay.Evidence) bool { return *e.BytesWritten == 10*32<<20 }},
		{"Samsung SSD 860 EVO 500GB", "", ssd, attr{id: 241, raw: 10}, "Total_LBAs_Written", 10, "10", func(e *drivebay.Evidence) bool { return *e.BytesWritten == 5120 }},
		{"anything", "", ssd, attr{id: 241, raw: 10}, "Unknown_SSD_Attribute", 10, "10", func(e *drivebay.Evidence) bool { return e.BytesWritten == nil }},
		{"anything", "SBFMBB.3", ssd, attr{id: 241, raw: 10}, "Lifetime_Writes_GiB", 10, "10", func(e *drivebay.Evidence) bool { return *e.BytesWritten == 10<<30 }},
		{"anything", "", hdd, attr{id: 233, raw: 1}, "Unknown_HDD_Attribute", 1, "1", nil},
		{"anything", "", ssd, attr{id: 7, raw: 1}, "Unknown_SSD_Attribute", 1, "1", nil},
		{"anything", "", ssd, attr{id: 42, raw: 1}, "Unknown_Attribute", 1, "1", nil},
		{"CT500MX500SSD1", "M3CR010", ssd, attr{id: 197, raw: 1}, "Bogus_Current_Pend_Sect", 1, "1", nil},
		{"CT500MX500SSD1", "M3CR046", ssd, attr{id: 197, raw: 1}, "Current_Pending_ECC_Cnt", 1, "1", nil},
	} {
		ev := &drivebay.Evidence{Type: c.medium, Identity: drivebay.Identity{Model: c.model, Firmware: c.firmware}}
		a := decode(t, ev, ATASmartData, dataPage(c.attr)).ATA.Attributes[0]
		if a.Name != c.name || a.Count != c.count || a.Text != c.text || a.Raw != c.attr.raw {
			t.Errorf("%s %d: %+v, want %s %d %q", c.model, c.attr.id, a, c.name, c.count, c.text)
		}
		if c.ok != nil && !c.ok(ev) {
			t.Errorf("%s %d: common fields %+v", c.model, c.attr.id, ev)
		}
	}
}

// TestWarmth: every layout that is known, and what lies beside each. The texts are
// smartctl 7.3's for the same bits.
func TestWarmth(t *testing.T) {
	for raw, want := range map[uint64]string{
		0x0000_0000_001F: "31",
		0x0000_0000_FFF6: "-10", // the sign extended
		0x0000_0000_00F6: "-10",
		0x0000_0000_121F: "31 (0 0 0 0 18)",
		0x0000_1F1F_001F: "31 (Min/Max 31/31)",
		0x0000_2212_001F: "31 (Min/Max 18/34)",
		0x0000_1222_001F: "31 (Min/Max 18/34)",
		0x0000_0022_121F: "31 (Min/Max 18/34)",
		0x0000_0012_221F: "31 (Min/Max 18/34)",
		0x0000_22F6_001F: "31 (Min/Max -10/34)",
		0x0022_0012_001F: "31 (Min/Max 18/34)",
		0x0012_0022_001F: "31 (Min/Max 18/34)",
		0x0022_FFF6_001F: "31 (Min/Max -10/34)",
		0x0022_FFF6_FFFF: "-1 (Min/Max -10/34)",
		0x0022_FFF6_00FF: "255 (0 34 255 246 0)", // one sign extended, one not
		0x0003_3412_001F: "31 (Min/Max 18/52 #3)",
		0x0003_2712_001F: "31 (0 3 39 18 0)",     // too hot three times, and never above 39
		0x7FFF_3412_001F: "31 (127 255 52 18 0)", // no count
		0x0021_0007_0024: "36 (0 33 0 7 0)",      // 36 lies above its maximum
		0x0012_0000_0018: "24 (0 18 0 0 0)",      // one extreme (Seagate)
		0x0000_0000_221F: "31 (Min/Max 0/34)",
		0x0000_79F6_001F: "31 (0 0 121 246 0)", // 121 degrees
		0x0000_22C3_001F: "31 (0 0 34 195 0)",  // -61 degrees
		0x0000_FF00_0000: "0 (0 0 255 0 0)",    // flags
		0xFFFF_FFFF_FFFF: "255 (255 255 255 255 255)",
	} {
		if n, got := warmth(raw); n != raw&0xFF || got != want {
			t.Errorf("%012X: %d, %q, want %q", raw, n, got, want)
		}
	}
}

func statisticsPage() []byte {
	b := make([]byte, 8*512)
	for _, n := range []int{1, 3, 5, 7} {
		binary.LittleEndian.PutUint16(b[n*512:], 1)
		b[n*512+2] = byte(n)
	}
	set := func(page, offset int, flags byte, v uint64) {
		binary.LittleEndian.PutUint64(b[page*512+offset:], v)
		b[page*512+offset+7] = flags
	}
	set(1, 0x08, 0xC0, 77)
	set(1, 0x10, 0xC0, 1234)
	set(1, 0x18, 0xC0, 1<<48-1)
	set(1, 0x28, 0x80, 77) // not valid
	set(3, 0x20, 0xC0, 9)
	set(5, 0x08, 0xC0, 0xF6)
	set(7, 0x08, 0xE0, 255)
	return b
}

func TestATADevStats(t *testing.T) {
	ev := decode(t, nil, ATADevStats, statisticsPage())
	want := []drivebay.Statistic{
		{Page: 1, Offset: 0x08, Name: "Lifetime Power-On Resets", Value: 77},
		{Page: 1, Offset: 0x10, Name: "Power-on Hours", Value: 1234},
		{Page: 1, Offset: 0x18, Name: "Logical Sectors Written", Value: 1<<48 - 1},
		{Page: 3, Offset: 0x20, Name: "Number of Reallocated Logical Sectors", Value: 9},
		{Page: 5, Offset: 0x08, Name: "Current Temperature", Value: -10},
		{Page: 7, Offset: 0x08, Name: "Percentage Used Endurance Indicator", Value: 255, Normalized: true},
	}
	if !reflect.DeepEqual(ev.ATA.Statistics, want) {
		t.Errorf("%+v", ev.ATA.Statistics)
	}
	if *ev.PowerOnHours != 1234 || *ev.PowerCycles != 77 || *ev.BytesWritten != (1<<48-1)*512 || ev.BytesRead != nil || *ev.Temperature != -10 || *ev.PercentUsed != 255 {
		t.Errorf("%+v", ev)
	}
	ev = decode(t, &drivebay.Evidence{ATA: &drivebay.ATA{LogicalSector: 4096}}, ATADevStats, statisticsPage())
	if *ev.BytesWritten != (1<<48-1)*4096 {
		t.Errorf("%d bytes written on 4Kn", *ev.BytesWritten)
	}
	wrong := statisticsPage()
	wrong[3*512+2] = 9
	ev = decode(t, nil, ATADevStats, wrong)
	if len(ev.ATA.Statistics) != 5 || len(ev.Problems) != 1 || *ev.PercentUsed != 255 {
		t.Errorf("page 3 says 9: %+v %v", ev.ATA.Statistics, ev.Problems)
	}
	refuse(t, ATADevStats, make([]byte, 4096), "no page of the log")
}

// TestStatisticsBeforeAttributes: where the drive says the same thing twice, the
// standard's page is believed before the vendor's, if the drive vouches for it.
func TestStatisticsBeforeAttributes(t *testing.T) {
	ev := decode(t, nil, ATASmartData, dataPage(attr{id: 9, raw: 12}, attr{id: 12, raw: 5}, attr{id: 194, raw: 36}))
	b := statisticsPage()
	decode(t, ev, ATADevStats, b)
	if *ev.PowerOnHours != 1234 || *ev.PowerCycles != 77 || *ev.Temperature != -10 {
		t.Errorf("%d hours, %d cycles, %d degrees", *ev.PowerOnHours, *ev.PowerCycles, *ev.Temperature)
	}
	for _, at := range []int{512 + 0x08, 512 + 0x10, 5*512 + 0x08} {
		b[at+7] = 0x80 // supported, not valid
	}
	ev = decode(t, nil, ATASmartData, dataPage(attr{id: 9, raw: 12}, attr{id: 12, raw: 5}, attr{id: 194, raw: 36}))
	decode(t, ev, ATADevStats, b)
	if *ev.PowerOnHours != 12 || *ev.PowerCycles != 5 || *ev.Temperature != 36 {
		t.Errorf("nothing to believe instead: %d hours, %d cycles, %d degrees", *ev.PowerOnHours, *ev.PowerCycles, *ev.Temperature)
	}
}

func TestATAErrorLogs(t *testing.T) {
	b := make([]byte, 512)
	b[0], b[1] = 1, 2 // the second entry is the newest
	first, second := b[2+60:], b[2+90+60:]
	first[1], first[7], first[3] = 0x84, 0x51, 1
	binary.LittleEndian.PutUint16(first[28:], 100)
	second[1], second[7], second[3], second[4], second[5], second[6] = 0x40, 0x51, 0x78, 0x56, 0x34, 0xE2
	binary.LittleEndian.PutUint16(second[28:], 200)
	binary.LittleEndian.PutUint16(b[452:], 300)
	ev := decode(t, nil, ATASummaryErrorLog, seal(b))
	want := []drivebay.DriveLog{
		{Kind: drivebay.LogUncorrectable, Number: 300, Hours: 200, LBA: 0x2345678, Text: "uncorrectable data (error 40h, status 51h) at LBA 36984440"},
		{Kind: drivebay.LogLink, Number: 299, Hours: 100, LBA: 1, Text: "interface CRC error, command aborted (error 84h, status 51h) at LBA 1"},
	}
	if !reflect.DeepEqual(ev.ATA.Errors, want) || *ev.ATA.ErrorCount != 300 {
		t.Errorf("%+v, %d", ev.ATA.Errors, *ev.ATA.ErrorCount)
	}
	b[1] = 6
	refuse(t, ATASummaryErrorLog, seal(b), "entry 6")

	x := make([]byte, 512)
	x[0] = 1
	binary.LittleEndian.PutUint16(x[2:], 1)
	binary.LittleEndian.PutUint16(x[500:], 299) // fewer than the summary log says
	copy(x[4+90:], []byte{0, 0x10, 0, 0, 1, 4, 2, 5, 3, 6, 0x40, 0x51})
	decode(t, ev, ATAExtErrorLog, seal(x))
	if len(ev.ATA.Errors) != 2 || *ev.ATA.ErrorCount != 300 {
		t.Errorf("the shorter story won: %+v", ev.ATA)
	}
	ext := decode(t, nil, ATAExtErrorLog, x)
	if len(ext.ATA.Errors) != 1 || ext.ATA.Errors[0].LBA != 0x060504030201 {
		t.Errorf("%+v", ext.ATA.Errors)
	}
	binary.LittleEndian.PutUint16(x[2:], 9) // elsewhere
	if ext = decode(t, nil, ATAExtErrorLog, seal(x)); len(ext.ATA.Errors) != 0 || *ext.ATA.ErrorCount != 299 {
		t.Errorf("%+v", ext.ATA)
	}
}

func TestATASelfTestLogs(t *testing.T) {
	b := make([]byte, 512)
	b[0] = 1
	oldest, newest := b[2+24*20:], b[2:] // a ring: after the first comes the last
	copy(newest, []byte{2, 0x79, 0x10, 0x27, 0, 0x78, 0x56, 0x34, 0x02})
	copy(oldest, []byte{0x81, 0x00, 0x0F, 0x27, 0, 0xFF, 0xFF, 0xFF, 0xFF})
	b[508] = 1
	ev := decode(t, nil, ATASelfTestLog, seal(b))
	lba := uint64(0x2345678)
	want := []drivebay.SelfTest{
		{Kind: "long", Result: drivebay.SelfTestFailed, Text: "read failure", Hours: 10000, LBA: &lba, ShortLBA: true},
		{Kind: "short", Result: drivebay.SelfTestPassed, Text: "completed without error", Hours: 9999},
	}
	if !reflect.DeepEqual(ev.SelfTests, want) {
		t.Errorf("%+v", ev.SelfTests)
	}
	x := make([]byte, 512)
	x[0] = 1
	binary.LittleEndian.PutUint16(x[2:], 1)
	copy(x[4:], []byte{2, 0x60, 0x10, 0x27, 0, 1, 2, 3, 4, 5, 6})
	decode(t, ev, ATAExtSelfTestLog, seal(x))
	if len(ev.SelfTests) != 1 || *ev.SelfTests[0].LBA != 0x060504030201 || ev.SelfTests[0].ShortLBA || ev.SelfTests[0].Text != "servo failure" {
		t.Errorf("%+v", ev.SelfTests)
	}
	decode(t, ev, ATASelfTestLog, b)
	if len(ev.SelfTests) != 1 {
		t.Error("the short log took the place of the extended one")
	}
	empty := make([]byte, 512)
	empty[0] = 1
	if ev = decode(t, nil, ATASelfTestLog, seal(empty)); ev.SelfTests != nil {
		t.Errorf("%+v", ev.SelfTests)
	}
	binary.LittleEndian.PutUint16(x[2:], 20)
	refuse(t, ATAExtSelfTestLog, seal(x), "was not read")
}

func TestATASelectiveLog(t *testing.T) {
	const first, current = 2, 500
	log := func(spans ...uint64) []byte {
		b := make([]byte, 512)
		b[0] = 1
		for i, n := range spans {
			binary.LittleEndian.PutUint64(b[first+8*i:], n)
		}
		return b
	}
	large := uint64(1)<<40 + 5
	ev := decode(t, nil, ATASelectiveLog, seal(log(70, 80, 0, 0, 9, 8, 0, 0, large, large+1)))
	want := []drivebay.Span{{First: 70, Last: 80}, {First: large, Last: large + 1}}
	if !reflect.DeepEqual(ev.ATA.SelectiveSpans, want) {
		t.Errorf("%+v, want %+v", ev.ATA.SelectiveSpans, want)
	}
	if decode(t, ev, ATASelectiveLog, seal(log(1, 2))); !reflect.DeepEqual(ev.ATA.SelectiveSpans, []drivebay.Span{{First: 1, Last: 2}}) {
		t.Errorf("the spans of a later log are %+v", ev.ATA.SelectiveSpans)
	}
	left := 50
	for span, want := range map[byte]int{0: 1, 1: 0, 5: 0, 6: 1} { // 6: all spans were read, and now the rest is
		b := log(70, 80)
		b[current] = span
		ev := decode(t, &drivebay.Evidence{SelfTestProgress: &left}, ATASelectiveLog, seal(b))
		if got := len(ev.ATA.SelectiveSpans); got != want {
			t.Errorf("with span %d under test, %d spans, want %d", span, got, want)
		}
		if got := len(decode(t, nil, ATASelectiveLog, b).ATA.SelectiveSpans); got != 1 {
			t.Errorf("with span %d named and no test in progress, %d spans, want 1", span, got)
		}
	}
	wrong := seal(log(70, 80))
	wrong[2]++
	refuse(t, ATASelectiveLog, wrong, "ata-selective-log: the checksum is wrong: page ignored")
	refuse(t, ATASelectiveLog, make([]byte, 512), "all bytes are 00h")
	other := log(70, 80)
	other[0] = 0
	refuse(t, ATASelectiveLog, seal(other), "its revision is 0, not 1")
	refuse(t, ATASelectiveLog, log(70, 80)[:500], "500 bytes")
}

func TestAsleep(t *testing.T) {
	for mode := range 256 {
		want := mode == 0x00 || mode == 0x01 || mode == 0x40
		if Asleep(byte(mode)) != want {
			t.Errorf("Asleep(%02Xh) is %v", mode, !want)
		}
	}
}
