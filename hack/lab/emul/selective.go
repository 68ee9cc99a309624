package emul

// SMART log 09h (ACS-3 A.16): the host writes up to five spans, then starts a selective self-test, which reads
// them. The log names the span under test; once all were read, none.
const (
	spans      = 5
	spanBase   = 2
	spanSize   = 16
	spanNumber = 500
)

// span is a range of blocks; both ends are part of it. 0 to 0 is not in use.
type span struct{ first, last uint64 }

func (s span) used() bool { return s != span{} }

// writeSelective takes the spans of the next selective self-test, unless one is under way.
func (d *SATDisk) writeSelective(out []byte) outcome {
	d.endTest()
	if d.test != nil || len(out) < sectorSize || le.Uint16(out) != 1 || total(out[:sectorSize]) != 0 {
		return abort()
	}
	var wanted [spans]span
	for i := range wanted {
		at := out[spanBase+i*spanSize:]
		s := span{le.Uint64(at), le.Uint64(at[8:])}
		if s.used() && (s.first > s.last || s.last >= d.desc.blocks()) {
			return abort()
		}
		wanted[i] = s
	}
	d.spans, d.span = wanted, 0
	return done(nil)
}

func (d *SATDisk) selectiveLog() []byte {
	d.endTest()
	b := make([]byte, sectorSize)
	b[0] = 1
	for i, s := range d.spans {
		le.PutUint64(b[spanBase+i*spanSize:], s.first)
		le.PutUint64(b[spanBase+i*spanSize+8:], s.last)
	}
	le.PutUint16(b[spanNumber:], d.span)
	checksum(b)
	return b
}

// firstUsed is the number of the first span in use; 0 if no span is in use.
func (d *SATDisk) firstUsed() uint16 {
	for i, s := range d.spans {
		if s.used() {
			return uint16(i + 1)
		}
	}
	return 0
}

// readSpans returns the first bad block of the spans, and leaves the number of its span in the log.
func (d *SATDisk) readSpans() (bad uint64, hit bool) {
	for i, s := range d.spans {
		if bad, hit = firstBad(d.badReads, s.first, s.last-s.first+1); hit && s.used() {
			d.span = uint16(i + 1)
			return bad, true
		}
	}
	d.span = 0
	return 0, false
}

func total(b []byte) (sum byte) {
	for _, x := range b {
		sum += x
	}
	return sum
}
