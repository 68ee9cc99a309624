package emul

import "math/bits"

// unmapRanges is how many ranges one UNMAP names.
const unmapRanges = 64

// extent is the blocks that a command of any length names (SBC-4 5).
func extent(cdb []byte) (lba, count uint64) {
	switch cdb[0] >> 5 {
	case 0: // six bytes; no blocks means 256
		if count = uint64(cdb[4]); count == 0 {
			count = 256
		}
		return uint64(be.Uint32(cdb) & 0x1fffff), count
	case 4:
		return be.Uint64(cdb[2:]), uint64(be.Uint32(cdb[10:]))
	case 5:
		return uint64(be.Uint32(cdb[2:])), uint64(be.Uint32(cdb[6:]))
	}
	return uint64(be.Uint32(cdb[2:])), uint64(be.Uint16(cdb[7:]))
}

// access is what all commands to the medium have in common.
func (d *SATDisk) access(cdb []byte) (lba, count uint64, refused *Reply) {
	lba, count = extent(cdb)
	refuse := func(c condition) (uint64, uint64, *Reply) {
		r := d.refuse(c)
		return 0, 0, &r
	}
	n := d.desc.blocks()
	switch {
	case lba > n || count > n-lba:
		return refuse(outOfRange)
	case count*uint64(d.desc.block()) > MaxTransfer && cdb[0] != 0x2f && cdb[0] != 0x8f:
		return refuse(badField)
	case d.halted:
		return refuse(stopped)
	}
	d.wake(cdb)
	return lba, count, nil
}

// firstBad is the first block of a range that is in a set.
func firstBad(set map[uint64]bool, lba, count uint64) (uint64, bool) {
	found, first := false, uint64(0)
	for b := range set {
		if b >= lba && b-lba < count && (!found || b < first) {
			found, first = true, b
		}
	}
	return first, found
}

func (d *SATDisk) read(cdb, _ []byte) Reply {
	lba, count, refused := d.access(cdb)
	if refused != nil {
		return *refused
	}
	bad, hit := firstBad(d.badReads, lba, count)
	if hit {
		count = bad - lba
	}
	size := uint64(d.desc.block())
	data := make([]byte, count*size)
	if _, err := d.data.ReadAt(data, int64(lba*size)); err != nil {
		return d.failed(lba, unreadable)
	}
	if hit { // what came before the bad block has been transferred
		r := d.failed(bad, unreadable)
		r.Data = data
		return r
	}
	return good(data)
}

// mediumFault is how a block can fail.
type mediumFault struct {
	asc     byte
	error   byte // ATA
	command byte
}

// UNC of a read, IDNF of a write (SAT-4 table 185).
var (
	unreadable = mediumFault{asc: 0x11, error: 0x40, command: 0x25}
	unwritable = mediumFault{asc: 0x0c, error: 0x10, command: 0x35}
)

// failed is the answer about a bad block, which drives also log.
func (d *SATDisk) failed(lba uint64, f mediumFault) Reply {
	d.logError(LoggedError{Error: f.error, Status: 0x51, LBA: lba, Command: f.command})
	return d.refuse(condition{key: keyMedium, asc: f.asc, lba: &lba})
}

func (d *SATDisk) write(cdb, out []byte) Reply {
	lba, count, refused := d.access(cdb)
	if refused != nil {
		return *refused
	}
	if bad, hit := firstBad(d.badWrites, lba, count); hit {
		return d.failed(bad, unwritable)
	}
	size := uint64(d.desc.block())
	if uint64(len(out)) < count*size {
		return d.refuse(badField)
	}
	if _, err := d.data.WriteAt(out[:count*size], int64(lba*size)); err != nil {
		return d.failed(lba, unwritable)
	}
	if d.desc.Reallocate {
		d.mend(lba, count)
	}
	return good(nil)
}

// mend moves bad sectors that were written to spare ones, as firmware does.
func (d *SATDisk) mend(lba, count uint64) {
	for bad, hit := firstBad(d.badReads, lba, count); hit; bad, hit = firstBad(d.badReads, lba, count) {
		delete(d.badReads, bad)
		for i := range d.desc.Attributes {
			if a := &d.desc.Attributes[i]; a.ID == 5 {
				a.Raw++
			}
		}
	}
}

// verify reads without a transfer.
func (d *SATDisk) verify(cdb, _ []byte) Reply {
	lba, count, refused := d.access(cdb)
	if refused != nil {
		return *refused
	}
	if cdb[1]&0x06 != 0 { // compare with data sent
		return d.refuse(badField)
	}
	if bad, hit := firstBad(d.badReads, lba, count); hit {
		return d.failed(bad, unreadable)
	}
	return good(nil)
}

// unmap is UNMAP (SBC-4 5.32).
func (d *SATDisk) unmap(cdb, out []byte) Reply {
	const header, entry = 8, 16
	if !d.desc.solid() {
		return d.refuse(badOpcode)
	}
	if d.halted {
		return d.refuse(stopped)
	}
	if len(out) < header {
		return good(nil)
	}
	n := min(int(be.Uint16(out[2:])), len(out)-header) / entry
	if n > unmapRanges {
		return d.refuse(badParameter)
	}
	size := uint64(d.desc.block())
	d.wake(cdb)
	for i := range n {
		e := out[header+i*entry:]
		lba, count := be.Uint64(e), uint64(be.Uint32(e[8:]))
		if lba > d.desc.blocks() || count > d.desc.blocks()-lba {
			return d.refuse(outOfRange)
		}
		if err := d.data.discard(int64(lba*size), int64(count*size)); err != nil {
			return d.failed(lba, unwritable)
		}
	}
	return good(nil)
}

func (d *SATDisk) capacity10(_, _ []byte) Reply {
	b := be.AppendUint32(nil, uint32(min(d.desc.blocks()-1, 0xffffffff)))
	return good(be.AppendUint32(b, uint32(d.desc.block())))
}

// serviceActionIn knows READ CAPACITY (16) only (SBC-4 5.20).
func (d *SATDisk) serviceActionIn(cdb, _ []byte) Reply {
	const readCapacity = 0x10
	if cdb[1]&0x1f != readCapacity {
		return d.refuse(badField)
	}
	b := make([]byte, 32)
	be.PutUint64(b, d.desc.blocks()-1)
	be.PutUint32(b[8:], uint32(d.desc.block()))
	b[13] = d.perPhysical()
	if d.desc.solid() {
		const provisioning, zeros = 1 << 7, 1 << 6
		b[14] = provisioning | zeros
	}
	return good(limited(b, int(be.Uint32(cdb[10:]))))
}

// perPhysical is the number of logical blocks in a physical one, as a power of 2.
func (d *SATDisk) perPhysical() byte {
	return byte(bits.TrailingZeros(uint(d.desc.physical() / d.desc.block())))
}
