// Package content says whether there is anything on a drive, and what.
//
// It reads a few areas in which every known format leaves its mark: a good MiB at
// each end of the drive and of each partition. What it cannot read it
// calls unknown; blank is only what reads back as blank.
package content

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/drivebay/drivebay"
)

// OursPrefix begins the name of every partition that drivebay makes.
const OursPrefix = "drivebay-"

// area is how much of each end of a drive is read. VMFS keeps its mark furthest
// in, at 1 MiB.
const area = 1<<20 + 4096

// Detect reads a drive of size bytes. blockSize is its logical block, 0 if that
// is not known.
func Detect(r io.ReaderAt, size uint64, blockSize int) drivebay.Content {
	if size == 0 {
		return drivebay.Content{Reason: "the kernel holds the drive at 0 bytes"}
	}
	var c drivebay.Content
	v, err := read(r, 0, size)
	if err == nil {
		c.Signatures = signaturesOf(v, "")
		table := readTable(r, v, size, blockSize)
		c.Signatures = append(c.Signatures, table.signatures...)
		err = table.err
		ours := len(table.names) > 0
		for _, n := range table.names {
			ours = ours && strings.HasPrefix(n, OursPrefix)
		}
		if ours && err == nil {
			c.Kind = drivebay.ContentOurs
			return c
		}
	}
	switch {
	case len(c.Signatures) > 0:
		c.Kind = drivebay.ContentForeign
	case err != nil:
		c.Reason = err.Error()
	case v.uniform():
		c.Kind = drivebay.ContentBlank
	default:
		c.Kind = drivebay.ContentForeign
		c.Signatures = []drivebay.Signature{{Format: "unrecognised data"}}
	}
	return c
}

// view is the two ends of a drive or of a partition.
type view struct {
	base uint64 // where it begins on the drive
	size uint64
	head []byte
	tail []byte // the last bytes; overlaps head on a small one
}

func read(r io.ReaderAt, base, size uint64) (view, error) {
	n := min(size, area)
	v := view{base: base, size: size, head: make([]byte, n), tail: make([]byte, n)}
	if err := fill(r, v.head, base); err != nil {
		return v, err
	}
	return v, fill(r, v.tail, base+size-n)
}

// fill reads all of b or says why not: a short read is no read.
func fill(r io.ReaderAt, b []byte, at uint64) error {
	n, err := r.ReadAt(b, int64(at))
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading %d bytes at %d: %w", len(b), at, err)
}

// at returns n bytes at an offset from the beginning, or from the end where off
// is negative; nil where that lies outside of what was read.
func (v view) at(off int64, n int) []byte {
	if off < 0 {
		off += int64(len(v.tail))
		if off < 0 || off+int64(n) > int64(len(v.tail)) {
			return nil
		}
		return v.tail[off:][:n]
	}
	if off+int64(n) > int64(len(v.head)) {
		return nil
	}
	return v.head[off:][:n]
}

// uniform says whether everything read is one byte, zero or all ones: what an
// empty drive returns (NVMe DLFEAT allows both after a deallocate).
func (v view) uniform() bool {
	first := v.head[0]
	if first != 0x00 && first != 0xff {
		return false
	}
	for _, part := range [][]byte{v.head, v.tail} {
		for _, b := range part {
			if b != first {
				return false
			}
		}
	}
	return true
}
