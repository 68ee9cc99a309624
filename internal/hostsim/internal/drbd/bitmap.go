package drbd

import (
	"bytes"
	"math/bits"
)

// bitmap has a bit for each page of a device, as the metadata have it. It is set where the page differs from the peer, or may.
type bitmap []byte

func newBitmap(pages uint64) bitmap { return make(bitmap, (pages+7)/8) }

func (m bitmap) has(n uint64) bool { return m[n/8]&(1<<(n%8)) != 0 }

// set sets the bits of pages from one up to and without another.
func (m bitmap) set(from, to uint64) {
	for from < to {
		if from%8 == 0 && to-from >= 8 {
			m[from/8] = 0xff
			from += 8
			continue
		}
		m[from/8] |= 1 << (from % 8)
		from++
	}
}

// resized returns the bits of so many pages. Those of more pages than it had are not set.
func (m bitmap) resized(pages uint64) bitmap {
	out := newBitmap(pages)
	copy(out, m)
	if pages%8 != 0 {
		out[pages/8] &= 1<<(pages%8) - 1
	}
	return out
}

// add sets the bits that are set in other.
func (m bitmap) add(other bitmap) {
	for i := range min(len(m), len(other)) {
		m[i] |= other[i]
	}
}

func (m bitmap) count() (n uint64) {
	for _, b := range m {
		n += uint64(bits.OnesCount8(b))
	}
	return n
}

func (m bitmap) empty() bool { return bytes.Count(m, []byte{0}) == len(m) }

// runs calls f with the ranges of pages that are set, each of at most so many pages, until f returns an error.
func (m bitmap) runs(most uint64, f func(from, to uint64) error) error {
	pages := uint64(len(m)) * 8
	for from := uint64(0); from < pages; {
		switch {
		case from%8 == 0 && m[from/8] == 0:
			from += 8
			continue
		case !m.has(from):
			from++
			continue
		}
		to := from + 1
		for to < pages && to-from < most && m.has(to) {
			to++
		}
		if err := f(from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}
