package content

import "bytes"

const PageSize = 4096

type Page = [PageSize]byte

// Sparse is a range of bytes that keeps only the pages with other bytes than zeros, so that zeros on a
// whole rack need no memory. A stored page never changes, so copies of a range share pages.
type Sparse struct {
	pages   map[uint64]*Page
	Changed func(number uint64, old, fresh *Page) // called for each change of a page; a nil page is zeros
}

var Zeros Page

func (s *Sparse) Read(p []byte, off uint64) {
	for len(p) > 0 {
		at := off % PageSize
		n := min(uint64(len(p)), PageSize-at)
		if pg := s.pages[off/PageSize]; pg != nil {
			copy(p[:n], pg[at:])
		} else {
			clear(p[:n])
		}
		p, off = p[n:], off+n
	}
}

func (s *Sparse) Write(p []byte, off uint64) {
	for len(p) > 0 {
		at := off % PageSize
		n := min(uint64(len(p)), PageSize-at)
		s.change(off/PageSize, at, p[:n])
		p, off = p[n:], off+n
	}
}

// change writes bytes into one page.
func (s *Sparse) change(number, at uint64, p []byte) {
	old := s.pages[number]
	blank := bytes.Count(p, []byte{0}) == len(p)
	if old == nil && blank {
		return
	}
	pg := new(Page)
	if old != nil && len(p) < PageSize {
		*pg = *old
	}
	copy(pg[at:], p)
	s.set(number, pg, blank && *pg == Zeros)
}

func (s *Sparse) set(number uint64, pg *Page, blank bool) {
	if s.Changed != nil {
		fresh := pg
		if blank {
			fresh = nil
		}
		s.Changed(number, s.pages[number], fresh)
	}
	switch {
	case blank:
		delete(s.pages, number)
	case s.pages == nil:
		s.pages = map[uint64]*Page{number: pg}
	default:
		s.pages[number] = pg
	}
}

func (s *Sparse) Zero(off, n uint64) {
	if len(s.pages) == 0 || n == 0 {
		return
	}
	end := off + n
	if head := (PageSize - off%PageSize) % PageSize; head > 0 {
		head = min(head, n)
		s.Write(Zeros[:head], off)
		off += head
	}
	if tail := end % PageSize; tail > 0 && off < end {
		end -= tail
		s.Write(Zeros[:tail], end)
	}
	for _, number := range s.In(off, end) {
		s.set(number, nil, true)
	}
}

// In lists the stored pages between two page boundaries, unsorted.
func (s *Sparse) In(from, to uint64) []uint64 {
	var out []uint64
	first, last := from/PageSize, to/PageSize
	if last <= first {
		return nil
	}
	if uint64(len(s.pages)) < last-first {
		for number := range s.pages {
			if number >= first && number < last {
				out = append(out, number)
			}
		}
		return out
	}
	for number := first; number < last; number++ {
		if s.pages[number] != nil {
			out = append(out, number)
		}
	}
	return out
}

// Take copies a range of whole pages from another sparse.
func (s *Sparse) Take(off uint64, from *Sparse, fromOff, n uint64) {
	s.Zero(off, n)
	for _, number := range from.In(fromOff, fromOff+n) {
		s.set(number-fromOff/PageSize+off/PageSize, from.pages[number], false)
	}
}
