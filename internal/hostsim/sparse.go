package hostsim

import "bytes"

const pageSize = 4096

type page = [pageSize]byte

// sparse is a range of bytes that keeps only the pages with other bytes than zeros, so that zeros on a
// whole rack need no memory. A stored page never changes, so copies of a range share pages.
type sparse struct {
	pages   map[uint64]*page
	changed func(number uint64, old, fresh *page) // called for each change of a page; a nil page is zeros
}

var zeros page

func (s *sparse) read(p []byte, off uint64) {
	for len(p) > 0 {
		at := off % pageSize
		n := min(uint64(len(p)), pageSize-at)
		if pg := s.pages[off/pageSize]; pg != nil {
			copy(p[:n], pg[at:])
		} else {
			clear(p[:n])
		}
		p, off = p[n:], off+n
	}
}

func (s *sparse) write(p []byte, off uint64) {
	for len(p) > 0 {
		at := off % pageSize
		n := min(uint64(len(p)), pageSize-at)
		s.change(off/pageSize, at, p[:n])
		p, off = p[n:], off+n
	}
}

// change writes bytes into one page.
func (s *sparse) change(number, at uint64, p []byte) {
	old := s.pages[number]
	blank := bytes.Equal(p, zeros[:len(p)])
	if old == nil && blank {
		return
	}
	pg := new(page)
	if old != nil {
		*pg = *old
	}
	copy(pg[at:], p)
	s.set(number, pg, blank && *pg == zeros)
}

func (s *sparse) set(number uint64, pg *page, blank bool) {
	if s.changed != nil {
		fresh := pg
		if blank {
			fresh = nil
		}
		s.changed(number, s.pages[number], fresh)
	}
	switch {
	case blank:
		delete(s.pages, number)
	case s.pages == nil:
		s.pages = map[uint64]*page{number: pg}
	default:
		s.pages[number] = pg
	}
}

func (s *sparse) zero(off, n uint64) {
	if len(s.pages) == 0 || n == 0 {
		return
	}
	end := off + n
	if head := (pageSize - off%pageSize) % pageSize; head > 0 {
		head = min(head, n)
		s.write(zeros[:head], off)
		off += head
	}
	if tail := end % pageSize; tail > 0 && off < end {
		end -= tail
		s.write(zeros[:tail], end)
	}
	for _, number := range s.in(off, end) {
		s.set(number, nil, true)
	}
}

// in lists the stored pages between two page boundaries, unsorted.
func (s *sparse) in(from, to uint64) []uint64 {
	var out []uint64
	first, last := from/pageSize, to/pageSize
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

// take copies a range of whole pages from another sparse.
func (s *sparse) take(off uint64, from *sparse, fromOff, n uint64) {
	s.zero(off, n)
	for _, number := range from.in(fromOff, fromOff+n) {
		s.set(number-fromOff/pageSize+off/pageSize, from.pages[number], false)
	}
}
