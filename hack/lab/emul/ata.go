package emul

// ATA commands and features (ACS-4 clause 7).
const (
	ataCheckPower    = 0xe5
	ataFlush         = 0xe7
	ataFlushExt      = 0xea
	ataIdentify      = 0xec
	ataIdle          = 0xe3
	ataIdleNow       = 0xe1
	ataReadLogExt    = 0x2f
	ataReadVerify    = 0x40
	ataReadVerifyExt = 0x42
	ataSMART         = 0xb0
	ataStandby       = 0xe2
	ataStandbyNow    = 0xe0
)

// taskfile is an ATA command as it comes out of ATA PASS-THROUGH.
type taskfile struct {
	command  byte
	feature  uint16
	count    uint16
	lba      uint64
	extended bool
	protocol byte
	check    bool // CK_COND: the registers are wanted whatever happens
	length   int  // bytes of the transfer that the command block describes
}

// registers are the output of an ATA command.
type registers struct {
	error, status, device byte
	count                 uint16
	lba                   uint64
	extended              bool
}

// Values of the STATUS and ERROR fields (ACS-4 6.2, 6.3).
const (
	ready      = 0x50 // DRDY, and the obsolete DSC
	failure    = 0x51
	aborted    = 0x04
	dataIn     = 4
	dataOut    = 5
	dma        = 6
	nonData    = 3
	udmaIn     = 10
	sectorSize = 512
)

// outcome of an ATA command.
type outcome struct {
	registers
	data []byte
}

func done(data []byte) outcome { return outcome{registers{status: ready, device: 0x40}, data} }

func abort() outcome {
	return outcome{registers: registers{status: failure, error: aborted, device: 0x40}}
}

// parsePassThrough reads the 12 and 16 byte forms (SAT-4 12.2.2, 12.2.3).
func parsePassThrough(cdb []byte) taskfile {
	t := taskfile{protocol: cdb[1] >> 1 & 0x0f, check: cdb[2]&0x20 != 0}
	if cdb[0] == 0xa1 {
		t.feature, t.count, t.command = uint16(cdb[3]), uint16(cdb[4]), cdb[9]
		t.lba = uint64(cdb[5]) | uint64(cdb[6])<<8 | uint64(cdb[7])<<16
	} else {
		t.extended = cdb[1]&1 != 0
		t.feature, t.count, t.command = uint16(cdb[4]), uint16(cdb[6]), cdb[14]
		t.lba = uint64(cdb[8]) | uint64(cdb[10])<<8 | uint64(cdb[12])<<16
		if t.extended {
			t.feature |= uint16(cdb[3]) << 8
			t.count |= uint16(cdb[5]) << 8
			t.lba |= uint64(cdb[7])<<24 | uint64(cdb[9])<<32 | uint64(cdb[11])<<40
		}
	}
	t.length = t.transfer(cdb[2])
	return t
}

// transfer is how long the data are by T_LENGTH, BYT_BLOK and T_TYPE; -1 where
// the transport says it.
func (t taskfile) transfer(flags byte) int {
	n := 0
	switch flags & 3 {
	case 1:
		n = int(t.feature)
	case 2:
		n = int(t.count)
	case 3:
		return -1
	}
	if flags&(1<<2) != 0 { // in blocks, of 512 bytes unless T_TYPE says logical ones
		n *= sectorSize
	}
	return n
}

// passThrough carries an ATA command to the drive and its registers back.
func (d *SATDisk) passThrough(cdb, out []byte) Reply {
	t := parsePassThrough(cdb)
	switch t.protocol {
	case nonData, dataIn, dataOut, dma, udmaIn:
	default: // resets, queued DMA
		return d.refuse(badField)
	}
	o := d.ata(t, cdb, out)
	o.extended = t.extended
	if o.status&1 != 0 {
		return d.refuse(condition{key: keyAborted, ata: &o.registers})
	}
	data := o.data
	if t.length >= 0 {
		data = limited(data, t.length)
	}
	if t.check {
		r := d.refuse(condition{key: keyRecovered, ascq: 0x1d, ata: &o.registers})
		r.Data = data
		return r
	}
	return good(data)
}

// ata carries out a command of the drive itself.
func (d *SATDisk) ata(t taskfile, cdb, out []byte) outcome {
	switch t.command {
	case ataIdentify:
		return done(d.identify())
	case ataCheckPower:
		o := done(nil)
		o.count = map[Power]uint16{Standby: 0x00, Idle: 0x80, Active: 0xff}[d.power]
		return o
	case ataStandbyNow, ataStandby:
		d.power = Standby
	case ataIdleNow, ataIdle:
		d.wake(cdb)
		d.power = Idle
	case ataFlush, ataFlushExt:
	case ataReadVerify, ataReadVerifyExt:
		d.wake(cdb)
	case ataReadLogExt:
		d.wake(cdb)
		return pages(d.generalLog(byte(t.lba)), int(t.lba>>8&0xff|t.lba>>24&0xff00), int(t.count))
	case ataSMART:
		return d.smartCommand(t, cdb, out)
	default:
		return abort()
	}
	return done(nil)
}

// pages cuts a transfer out of a log.
func pages(log []byte, first, count int) outcome {
	from, to := first*sectorSize, (first+count)*sectorSize
	if count == 0 || to > len(log) {
		return abort()
	}
	return done(log[from:to])
}
