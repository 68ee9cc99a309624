package content

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// view holds the two ends of a drive or of a partition.
type view struct {
	r    io.ReaderAt
	base uint64 // where the view begins on the drive
	size uint64
	head []byte
	tail []byte // the last bytes; overlaps head on a small drive
	err  error  // the first read error

	lent []*[]byte // taken from buffers
}

// look reads both ends, valid until done. An end that fails keeps what came before the failure.
func look(r io.ReaderAt, base, size uint64, head, tail uint64) *view {
	v := &view{r: r, base: base, size: size}
	v.head = v.end(0, min(size, head))
	from := size - min(size, tail)
	if b := v.end(from, size-from); uint64(len(b)) == size-from {
		v.tail = b
	}
	return v
}

// read returns what it can read of n bytes at off; a short read sets v.err.
func (v *view) read(off, n uint64) []byte {
	return v.fill(make([]byte, n), off)
}

// end reads into a buffer that is lent until done.
func (v *view) end(off, n uint64) []byte {
	if n > driveEnd {
		return v.read(off, n)
	}
	b := lend()
	v.lent = append(v.lent, b)
	return v.fill((*b)[:n:n], off)
}

// done returns the buffers; the view must not be used after it.
func (v *view) done() {
	for _, b := range v.lent {
		takeBack(b)
	}
	v.lent, v.head, v.tail = nil, nil, nil
}

func (v *view) fill(b []byte, off uint64) []byte {
	got, err := v.r.ReadAt(b, int64(v.base+off))
	got = max(0, min(got, len(b)))
	if got < len(b) && v.err == nil {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		v.err = fmt.Errorf("reading %d bytes at %d: %w", len(b), v.base+off, err)
	}
	return b[:got]
}

// at returns n bytes at an offset from the beginning, or from the end where off is negative; nil if
// they are outside the view or cannot be read. at reads bytes between the ends when it is called.
func (v *view) at(off int64, n int) []byte {
	if off < 0 {
		off += int64(v.size)
	}
	if off < 0 || uint64(off)+uint64(n) > v.size {
		return nil
	}
	if end := off + int64(n); end <= int64(len(v.head)) {
		return v.head[off:end]
	}
	if in := off - int64(v.size) + int64(len(v.tail)); in >= 0 {
		return v.tail[in:][:n]
	}
	if b := v.read(uint64(off), uint64(n)); len(b) == n {
		return b
	}
	return nil
}

// uniform reports whether everything read is one byte, all zeros or all ones, as an empty drive reads
// (NVMe DLFEAT allows both after a deallocate).
func (v *view) uniform() bool {
	if v.err != nil || len(v.head) == 0 {
		return false
	}
	first := v.head[0]
	if first != 0x00 && first != 0xff {
		return false
	}
	for _, part := range [][]byte{v.head, v.tail} {
		if bytes.Count(part, []byte{first}) != len(part) {
			return false
		}
	}
	return true
}
