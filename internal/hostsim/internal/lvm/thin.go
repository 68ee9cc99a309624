package lvm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// chunkSize is LVM's default for thin pools up to some terabytes (lvmthin(7)).
const chunkSize = 64 << 10

// chunk is a piece of a thin pool. A snapshot shares the chunks of its origin.
type chunk struct {
	refs  int
	pages [chunkSize / content.PageSize]*content.Page
}

// thin is a volume that gets its space from the pool when it is written (dm-thin).
type thin struct{ lv *lv }

func (t thin) Length() uint64 { return t.lv.size() }

func (t thin) Ask(a block.Access) ([]*block.Drive, error) {
	return t.lv.pool.data.dev.Ask(block.Access{Write: a.Write})
}

func (t thin) Read(p []byte, off uint64) {
	for len(p) > 0 {
		at := off % content.PageSize
		n := min(uint64(len(p)), content.PageSize-at)
		var pg *content.Page
		if c := t.lv.chunks[off/chunkSize]; c != nil {
			pg = c.pages[off%chunkSize/content.PageSize]
		}
		if clear(p[:n]); pg != nil {
			copy(p[:n], pg[at:])
		}
		p, off = p[n:], off+n
	}
}

func (t thin) Write(p []byte, off uint64) error {
	for len(p) > 0 {
		at := off % content.PageSize
		n := min(uint64(len(p)), content.PageSize-at)
		c, err := t.own(off / chunkSize)
		if err != nil {
			return err
		}
		slot := &c.pages[off%chunkSize/content.PageSize]
		fresh := new(content.Page)
		if *slot != nil {
			*fresh = **slot
		}
		copy(fresh[at:], p[:n])
		if *slot = fresh; *fresh == content.Zeros {
			*slot = nil
		}
		p, off = p[n:], off+n
	}
	return nil
}

// own returns a chunk that is not shared.
func (t thin) own(number uint64) (*chunk, error) {
	old := t.lv.chunks[number]
	if old != nil && old.refs == 1 {
		return old, nil
	}
	pool := t.lv.pool
	if pool.used >= pool.size()/chunkSize {
		return nil, fmt.Errorf("%s: %w", t.lv.dev.Name, kernel.ErrNoSpace)
	}
	fresh := &chunk{refs: 1}
	if old != nil {
		fresh.pages = old.pages
		old.refs--
	}
	pool.used++
	if t.lv.chunks == nil {
		t.lv.chunks = map[uint64]*chunk{}
	}
	t.lv.chunks[number] = fresh
	return fresh, nil
}

// Zero writes zeros over existing chunks only. Linux would allocate the others; here a volume of
// terabytes would fill the memory.
func (t thin) Zero(off, n uint64) error {
	for number := range t.touched(off, n) {
		from, to := max(off, number*chunkSize), min(off+n, (number+1)*chunkSize)
		if err := t.Write(make([]byte, to-from), from); err != nil {
			return err
		}
	}
	return nil
}

// Discard returns whole chunks to the pool.
func (t thin) Discard(off, n uint64) error {
	for number := range t.touched(off, n) {
		if off <= number*chunkSize && (number+1)*chunkSize <= off+n {
			t.lv.drop(number)
		}
	}
	return nil
}

// touched returns the existing chunks of a range.
func (t thin) touched(off, n uint64) map[uint64]*chunk {
	out := map[uint64]*chunk{}
	for number, c := range t.lv.chunks {
		if number*chunkSize < off+n && off < (number+1)*chunkSize {
			out[number] = c
		}
	}
	return out
}

// pooled is the pool's device, which is never read or written.
type pooled struct{ *block.Device }

func (p pooled) Write([]byte, uint64) error      { return host.ErrUnsupported }
func (p pooled) Zero(uint64, uint64) error       { return host.ErrUnsupported }
func (p pooled) Discard(uint64, uint64) error    { return host.ErrUnsupported }
func (p pooled) Written(uint64, uint64) []uint64 { return nil }

func (t thin) Written(off, n uint64) (out []uint64) {
	for _, number := range slices.Sorted(maps.Keys(t.lv.chunks)) {
		for i, pg := range t.lv.chunks[number].pages {
			if at := number*chunkSize + uint64(i)*content.PageSize; pg != nil && at >= off && at < off+n {
				out = append(out, at-off)
			}
		}
	}
	return out
}
