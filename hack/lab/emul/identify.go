package emul

import "math/bits"

// words is IDENTIFY DEVICE data under construction.
type words []byte

func (w words) set(n int, v uint16) { le.PutUint16(w[2*n:], v) }

// text puts a string of n words, which has its bytes swapped (ACS-4 3.4.9).
func (w words) text(at, n int, s string) {
	b := padded(s, 2*n)
	for i := 0; i < len(b); i += 2 {
		w[2*at+i], w[2*at+i+1] = b[i+1], b[i]
	}
}

// long puts a number of n words, the lowest first.
func (w words) long(at, n int, v uint64) {
	for i := range n {
		w.set(at+i, uint16(v>>(16*i)))
	}
}

// identify is IDENTIFY DEVICE data (ACS-4 7.13), by which the drive promises what
// its other commands keep.
func (d *SATDisk) identify() []byte {
	w := words(make([]byte, sectorSize))
	w.text(10, 10, d.desc.Serial)
	w.text(23, 4, d.desc.Firmware)
	w.text(27, 20, d.desc.Model)
	w.interfaces()
	d.features(w)
	d.geometry(w)
	for i := range 4 { // world wide name, the highest word first
		w.set(108+i, uint16(d.desc.WWN>>(48-16*i)))
	}
	w[510] = 0xa5 // there is a checksum
	checksum(w)
	return w
}

// interfaces are the words about the bus: a SATA drive of 6 Gb/s.
func (w words) interfaces() {
	w.set(0, 0x0040)  // ATA, fixed
	w.set(49, 0x2f00) // DMA, LBA, IORDY, standard standby timer
	w.set(50, 0x4000) //
	w.set(53, 0x0006) // words 64..70 and 88 are valid
	w.set(63, 0x0007) // multiword DMA modes
	w.set(64, 0x0003) // PIO modes
	w.long(65, 4, 120|120<<16|120<<32|120<<48)
	w.set(75, 31)      // queue depth less one
	w.set(76, 0x010e)  // NCQ, generations 1 to 3
	w.set(77, 0x0006)  // generation 3 negotiated
	w.set(80, 0x0ff0)  // ATA-4 to ACS-4
	w.set(88, 0x407f)  // ultra DMA modes, mode 6 selected
	w.set(222, 0x10ff) // serial, ATA8-AST to SATA 3.2
}

// features are supported, marked valid, and switched on.
func (d *SATDisk) features(w words) {
	const (
		smart, power, cache, lookAhead = 1 << 0, 1 << 3, 1 << 5, 1 << 6
		errorLog, selfTest, logs, name = 1 << 0, 1 << 1, 1 << 5, 1 << 8
		lba48, flush, flushExt, valid  = 1 << 10, 1 << 12, 1 << 13, 1 << 14
	)
	enabled := uint16(power | lookAhead)
	if d.smart {
		enabled |= smart
	}
	if d.writeCache {
		enabled |= cache
	}
	w.set(82, smart|power|cache|lookAhead)
	w.set(83, valid|lba48|flush|flushExt)
	w.set(84, valid|name|logs|selfTest|errorLog)
	w.set(85, enabled)
	w.set(86, lba48|flush|flushExt)
	w.set(87, valid|name|logs|selfTest|errorLog)
	w.set(217, d.rotation())
	w.set(168, uint16(d.formFactor()))
	if d.desc.solid() {
		w.set(69, 1<<14|1<<5) // TRIM is deterministic and reads back as zeros
		w.set(105, 8)         // blocks of ranges that one TRIM takes
		w.set(169, 1)         // TRIM
	}
}

// geometry is size and blocks.
func (d *SATDisk) geometry(w words) {
	n := d.desc.blocks()
	w.long(60, 2, min(n, 0x0fffffff))
	w.long(100, 4, n)
	blocks := uint16(1 << 14)
	if per := d.desc.physical() / d.desc.block(); per > 1 {
		blocks |= 1<<13 | uint16(bits.TrailingZeros(uint(per)))
	}
	if d.desc.block() != sectorSize {
		blocks |= 1 << 12
		w.long(117, 2, uint64(d.desc.block()/2))
	}
	w.set(106, blocks)
	w.set(209, 1<<14)
}

// checksum makes all bytes of a sector add up to zero.
func checksum(sector []byte) {
	var sum byte
	for _, v := range sector[:sectorSize-1] {
		sum += v
	}
	sector[sectorSize-1] = -sum
}
