package emul

import (
	"fmt"
	"sync"
	"time"
)

// Device answers commands. Do is called by one goroutine at a time; what changes a
// device may come from others meanwhile.
type Device interface {
	Do(cdb, out []byte) Reply
}

// SATDisk is a SATA disk behind a SCSI to ATA translation (SAT-4), as controllers
// show one.
type SATDisk struct {
	mu   sync.Mutex
	desc Disk // as it is now: attributes, logs and health move
	data store
	now  func() time.Time

	power       Power
	halted      bool // by START STOP UNIT: media access is refused until a start
	wakes       int
	wokenBy     string // the key of the command
	descriptors bool   // D_SENSE
	writeCache  bool
	smart       bool // switched on
	badReads    map[uint64]bool
	badWrites   map[uint64]bool
	test        *runningTest
	spans       [spans]span // of log 09h
	span        uint16      // the number of the one under test, or in which a test was aborted or failed
}

// NewDisk makes a disk of its description.
func NewDisk(d Disk) (*SATDisk, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	var data store = memory{}
	if d.File != "" {
		var err error
		if data, err = openFile(d.File, d.Size); err != nil {
			return nil, fmt.Errorf("open the data of disk %s: %w", d.Name, err)
		}
	}
	if d.Power == "" {
		d.Power = Active
	}
	if d.ErrorCount < len(d.Errors) {
		d.ErrorCount = len(d.Errors)
	}
	d.Attributes = append([]Attribute(nil), d.Attributes...)
	d.Errors = append([]LoggedError(nil), d.Errors...)
	d.SelfTests = append([]SelfTest(nil), d.SelfTests...)
	d.Statistics = append([]Statistic(nil), d.Statistics...)
	return &SATDisk{desc: d, data: data, now: time.Now, power: d.Power, descriptors: !d.FixedSense,
		writeCache: true, smart: true, badReads: map[uint64]bool{}, badWrites: map[uint64]bool{}}, nil
}

// handlers are the SCSI commands that the translation knows, by operation code.
var handlers = map[byte]func(d *SATDisk, cdb, out []byte) Reply{
	0x00: (*SATDisk).testUnitReady,
	0x03: (*SATDisk).requestSense,
	0x08: (*SATDisk).read, 0x28: (*SATDisk).read, 0xa8: (*SATDisk).read, 0x88: (*SATDisk).read,
	0x0a: (*SATDisk).write, 0x2a: (*SATDisk).write, 0xaa: (*SATDisk).write, 0x8a: (*SATDisk).write,
	0x12: (*SATDisk).inquiry,
	0x15: (*SATDisk).modeSelect, 0x55: (*SATDisk).modeSelect,
	0x1a: (*SATDisk).modeSense, 0x5a: (*SATDisk).modeSense,
	0x1b: (*SATDisk).startStop,
	0x1e: (*SATDisk).nothing, // PREVENT ALLOW MEDIUM REMOVAL
	0x25: (*SATDisk).capacity10,
	0x2f: (*SATDisk).verify, 0x8f: (*SATDisk).verify,
	0x35: (*SATDisk).nothing, 0x91: (*SATDisk).nothing, // SYNCHRONIZE CACHE: the cache is always clean
	0x42: (*SATDisk).unmap,
	0x85: (*SATDisk).passThrough, 0xa1: (*SATDisk).passThrough,
	0x9e: (*SATDisk).serviceActionIn,
}

// Do answers one command.
func (d *SATDisk) Do(cdb, out []byte) Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	full := make([]byte, max(16, len(cdb))) // a handler may look at any byte of the longest form
	copy(full, cdb)
	h := handlers[full[0]]
	if h == nil {
		return d.refuse(badOpcode)
	}
	return h(d, full, out)
}

func (d *SATDisk) refuse(c condition) Reply { return c.reply(d.descriptors) }

func (d *SATDisk) nothing(_, _ []byte) Reply { return good(nil) }

// testUnitReady wakes nothing; only a stopped unit is not ready (SAT-4 8.13).
func (d *SATDisk) testUnitReady(_, _ []byte) Reply {
	if d.halted {
		return d.refuse(stopped)
	}
	return good(nil)
}

func (d *SATDisk) requestSense(cdb, _ []byte) Reply {
	var c condition
	if d.halted {
		c = stopped
	}
	b := c.fixed()
	if cdb[1]&1 != 0 {
		b = c.descriptors()
	}
	return good(limited(b, int(cdb[4])))
}

// startStop is START STOP UNIT (SAT-4 9.11).
func (d *SATDisk) startStop(cdb, _ []byte) Reply {
	switch powerCondition := cdb[4] >> 4; {
	case powerCondition == 0 && cdb[4]&1 != 0:
		d.halted = false
		d.wake(cdb)
	case powerCondition == 0:
		d.halted, d.power = true, Standby
	case powerCondition == 1:
		d.wake(cdb)
	case powerCondition == 2:
		d.power = Idle
	case powerCondition == 3:
		d.power = Standby
	default:
		return d.refuse(badField)
	}
	return good(nil)
}

// wake spins the disk up for a command that needs its platters.
func (d *SATDisk) wake(cdb []byte) {
	if d.power == Standby {
		d.wakes++
		d.wokenBy = Key(cdb)
	}
	d.power = Active
}
