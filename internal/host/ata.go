package host

import (
	"errors"
	"fmt"
	"time"
)

// ataCommand is an ATA taskfile (ACS-4 clause 7).
type ataCommand struct {
	command  byte
	feature  byte
	count    uint16
	lba      uint64 // 48 bits
	sectors  int    // 512-byte blocks to read; 0: no data, the registers are the answer
	extended bool   // 48-bit command
	returns  func(registers) []byte
}

// registers holds the ATA output registers that a translation layer returns.
type registers struct {
	status, error           byte
	count                   byte
	lbaLow, lbaMid, lbaHigh byte
}

// smartKey is C24F00h, which SMART commands carry in the LBA so that none is run by accident (ACS-4
// 7.44). Log addresses go into its low byte.
const smartKey = 0xc24f00

var ataCommands = map[Page]ataCommand{
	ATAPowerMode:       {command: 0xe5, returns: func(r registers) []byte { return []byte{r.count} }},
	ATAIdentify:        {command: 0xec, count: 1, sectors: 1},
	ATASmartData:       {command: 0xb0, feature: 0xd0, count: 1, lba: smartKey, sectors: 1},
	ATASmartThresholds: {command: 0xb0, feature: 0xd1, count: 1, lba: smartKey | 1, sectors: 1},
	ATASmartStatus:     {command: 0xb0, feature: 0xda, lba: smartKey, returns: func(r registers) []byte { return []byte{r.lbaMid, r.lbaHigh} }},
	ATASummaryErrorLog: {command: 0xb0, feature: 0xd5, count: 1, lba: smartKey | 0x01, sectors: 1},
	ATASelfTestLog:     {command: 0xb0, feature: 0xd5, count: 1, lba: smartKey | 0x06, sectors: 1},
	ATASelectiveLog:    {command: 0xb0, feature: 0xd5, count: 1, lba: smartKey | 0x09, sectors: 1},
	ATALogDirectory:    readLog(0x00, 0),
	ATAExtErrorLog:     readLog(0x03, 0),
	ATAExtSelfTestLog:  readLog(0x07, 0),
}

// readLog returns READ LOG EXT for one block of a log.
func readLog(log byte, page uint16) ataCommand {
	return ataCommand{command: 0x2f, count: 1, lba: uint64(log) | uint64(page&0xff)<<8 | uint64(page>>8)<<32, sectors: 1, extended: true}
}

// cdb wraps the taskfile in ATA PASS-THROUGH (16) (SAT-4 12.2.3).
func (c ataCommand) cdb() []byte {
	const (
		nonData = 3 << 1
		pioIn   = 4 << 1
		// T_DIR from the device, BYT_BLOK in blocks, T_LENGTH in the count field.
		transfer = 1<<3 | 1<<2 | 2
		ckCond   = 1 << 5 // return the registers after success, too
	)
	b := make([]byte, 16)
	b[0], b[1], b[2] = 0x85, nonData, ckCond
	if c.sectors > 0 {
		b[1], b[2] = pioIn, transfer
	}
	if c.extended {
		b[1] |= 1
		b[3], b[5] = 0, byte(c.count>>8)
		b[7], b[9], b[11] = byte(c.lba>>24), byte(c.lba>>32), byte(c.lba>>40)
	}
	b[4], b[6] = c.feature, byte(c.count)
	b[8], b[10], b[12] = byte(c.lba), byte(c.lba>>8), byte(c.lba>>16)
	b[14] = c.command
	return b
}

func (d *realDrive) ata(c ataCommand, timeout time.Duration) ([]byte, error) {
	data, s, err := sgExec(d.fd, c.cdb(), c.sectors*512, timeout)
	return c.answer(data, s, err)
}

// answer returns the data or the error of a command, from the drive's own registers where it has them:
// they say more than the sense that a translation layer made of them.
func (c ataCommand) answer(data []byte, s sense, err error) ([]byte, error) {
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrGone) || errors.Is(err, ErrPermission) {
		return nil, err
	}
	r := s.ata
	if r != nil && r.status&0x21 != 0 { // ERR or device fault
		if r.status&0x20 == 0 && r.error&0x04 != 0 { // ABRT: the drive does not know the command
			return nil, fmt.Errorf("%w: command %02xh aborted", ErrUnsupported, c.command)
		}
		return nil, fmt.Errorf("ATA command %02xh: status %02xh, error %02xh", c.command, r.status, r.error)
	}
	if c.returns == nil {
		if err == nil && len(data) < c.sectors*512 {
			return nil, fmt.Errorf("ATA command %02xh: returned %d of %d bytes", c.command, len(data), c.sectors*512)
		}
		return data, err
	}
	if err == nil && r == nil {
		err = fmt.Errorf("%w: the controller returns no registers", ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	return c.returns(*r), nil
}

// deviceStatistics reads the log page by page. Page 0 lists the other pages, and a drive may have any
// of them (ACS-4 9.5). Missing ones stay zero.
func (d *realDrive) deviceStatistics(timeout time.Duration) ([]byte, error) {
	out := make([]byte, 8*512)
	list, err := d.ata(readLog(0x04, 0), timeout)
	if err != nil {
		return nil, err
	}
	copy(out, list)
	n := min(int(list[8]), len(list)-9)
	for _, page := range list[9 : 9+n] {
		if page == 0 || page > 7 {
			continue
		}
		b, err := d.ata(readLog(0x04, uint16(page)), timeout)
		switch {
		case err == nil:
			copy(out[int(page)*512:], b)
		case !errors.Is(err, ErrUnsupported):
			return nil, fmt.Errorf("page %d: %w", page, err)
		}
	}
	return out, nil
}
