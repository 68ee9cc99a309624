package emul

import "time"

// Subcommands of SMART, in the feature field (ACS-4 7.44; read data and thresholds
// ATA-3 and on).
const (
	smartReadData   = 0xd0
	smartThresholds = 0xd1
	smartAutosave   = 0xd2
	smartOffline    = 0xd4
	smartReadLog    = 0xd5
	smartWriteLog   = 0xd6
	smartEnable     = 0xd8
	smartDisable    = 0xd9
	smartStatus     = 0xda
	smartAutoOff    = 0xdb
)

// What the LBA field has to say besides the log address, and what a drive beyond
// its thresholds makes of it.
const (
	smartKey    = 0xc24f
	smartBeyond = 0x2cf4
)

func (d *SATDisk) smartCommand(t taskfile, cdb, out []byte) outcome {
	if t.lba>>8 != smartKey || (!d.smart && t.feature != smartEnable) {
		return abort()
	}
	d.wake(cdb)
	switch t.feature {
	case smartReadData:
		return done(d.smartData())
	case smartThresholds:
		return done(d.thresholds())
	case smartReadLog:
		return pages(d.smartLog(byte(t.lba)), 0, int(t.count))
	case smartWriteLog:
		if byte(t.lba) != logSelective || t.count != 1 {
			return abort()
		}
		return d.writeSelective(out)
	case smartOffline:
		return d.startTest(byte(t.lba))
	case smartEnable, smartDisable:
		d.smart = t.feature == smartEnable
	case smartAutosave, smartAutoOff:
	case smartStatus:
		o := done(nil)
		if o.lba = smartKey << 8; d.desc.Failed {
			o.lba = smartBeyond << 8
		}
		return o
	default:
		return abort()
	}
	return done(nil)
}

// The attribute tables have 12 bytes a slot from byte 2 on.
const (
	slotBase = 2
	slotSize = 12
	revision = 16
)

// smartData is SMART READ DATA (ATA8-ACS 7.52.6; the attributes as of ATA-3).
func (d *SATDisk) smartData() []byte {
	b := make([]byte, sectorSize)
	b[0] = revision
	for i, a := range d.desc.Attributes {
		s := b[slotBase+i*slotSize:]
		s[0], s[3], s[4] = a.ID, a.Value, a.Worst
		le.PutUint16(s[1:], a.Flags)
		le.PutUint32(s[5:], uint32(a.Raw))
		le.PutUint16(s[9:], uint16(a.Raw>>32))
	}
	b[362] = 0x02 // off-line collection completed
	b[363] = d.testState()
	b[367] = 0x51 // off-line immediate, self-tests, selective ones
	b[368] = 0x03 // attributes are saved
	b[370] = 0x01 // error log
	b[372], b[373] = d.testMinutes()
	checksum(b)
	return b
}

func (d *SATDisk) thresholds() []byte {
	b := make([]byte, sectorSize)
	b[0] = revision
	for i, a := range d.desc.Attributes {
		b[slotBase+i*slotSize], b[slotBase+i*slotSize+1] = a.ID, a.Threshold
	}
	checksum(b)
	return b
}

// hours is the power-on time that the logs put beside their entries.
func (d *SATDisk) hours() uint16 {
	for _, a := range d.desc.Attributes {
		if a.ID == 9 {
			return uint16(a.Raw)
		}
	}
	return 0
}

// runningTest is a self-test that has not ended.
type runningTest struct {
	kind byte
	ends time.Time
}

// Results of a self-test, which become the upper half of its status byte.
const (
	testPassed     = 0x0
	testAborted    = 0x1
	testReadFailed = 0x7
	testRunning    = 0xf
)

// selective is the subcommand of a self-test of the spans in log 09h.
const selective = 4

// startTest is SMART EXECUTE OFF-LINE IMMEDIATE (ACS-4 7.44.4).
func (d *SATDisk) startTest(kind byte) outcome {
	const abortTest, short, long = 0x7f, 1, 2
	d.endTest()
	switch kind {
	case 0: // off-line collection: nothing to collect
	case abortTest:
		if d.test != nil {
			d.logTest(testAborted, 0)
		}
	case short, long, selective:
		if d.test != nil {
			d.logTest(testAborted, 0)
		}
		if kind == selective {
			if d.span = d.firstUsed(); d.span == 0 {
				return abort()
			}
		}
		d.test = &runningTest{kind, d.now().Add(d.testTime())}
		d.endTest()
	default: // captive, conveyance
		return abort()
	}
	return done(nil)
}

func (d *SATDisk) testTime() time.Duration {
	return time.Duration(d.desc.SelfTestSeconds) * time.Second
}

// endTest logs a test whose time is over. It fails on the first sector that does
// not read.
func (d *SATDisk) endTest() {
	if d.test == nil || d.now().Before(d.test.ends) {
		return
	}
	bad, hit := firstBad(d.badReads, 0, d.desc.blocks())
	if d.test.kind == selective {
		bad, hit = d.readSpans()
	}
	if hit {
		d.logTest(testReadFailed, bad)
		return
	}
	d.logTest(testPassed, 0)
}

func (d *SATDisk) logTest(status byte, lba uint64) {
	d.desc.SelfTests = append(d.desc.SelfTests, SelfTest{Kind: d.test.kind, Status: status, Hours: d.hours(), LBA: lba})
	d.test = nil
}

// testState is the self-test execution status: how the last one ended, or how many
// tenths of the running one are left.
func (d *SATDisk) testState() byte {
	d.endTest()
	if d.test != nil {
		left := float64(d.test.ends.Sub(d.now())) / float64(d.testTime())
		return testRunning<<4 | byte(min(max(left*10, 1), 9))
	}
	if n := len(d.desc.SelfTests); n > 0 {
		return d.desc.SelfTests[n-1].Status << 4
	}
	return testPassed
}

// testMinutes are the polling times of a short and a long test.
func (d *SATDisk) testMinutes() (short, long byte) {
	n := byte(min(d.desc.SelfTestSeconds/60+1, 254))
	return n, n
}
