package gpt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	diskfs "github.com/diskfs/go-diskfs/partition/gpt"
)

// ErrMisencoded: another implementation reads the encoded table differently than it was meant, and
// nothing was written.
var ErrMisencoded = errors.New("the encoded partition table is not the requested one; nothing was written")

// secondOpinion reads both copies of a table that encode just made, each alone, by go-diskfs, and
// returns an error unless both say what t says. go-diskfs shares no code with this package: a wrong idea
// of the format, in which encoder and decoder here would agree, shows. It never reads bytes of a drive: a header
// with 2^31 entries ends its process.
func (t *Table) secondOpinion(l layout, head, tail []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: go-diskfs: panic: %v", ErrMisencoded, p)
		}
	}()
	if !isProtective(head) { // go-diskfs does not find the MBR on 4Kn drives, nor on drives of more than 2^32 blocks
		return fmt.Errorf("%w: the protective MBR is missing", ErrMisencoded)
	}
	first := max(t.First, l.first()) / l.block
	for _, c := range []struct {
		region
		header []byte
		want   header
		backup bool
	}{
		{region{"first copy", 0, head}, head[l.block:], header{at: 1, other: l.last(), first: first, array: 2}, false},
		{region{"backup", l.end(), tail}, tail[uint64(len(tail))-l.block:], header{at: l.last(), other: 1, first: first, array: l.end() / l.block}, true},
	} {
		err := c.want.stands(c.header)
		if err == nil {
			err = t.readsAs(l, c.region, c.backup)
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrMisencoded, c.what, err)
		}
	}
	return nil
}

// stands returns an error unless the numbers that go-diskfs trusts, or does not return, are in a header:
// its size and the size of the table, by which go-diskfs allocates, and the places.
func (h header) stands(b []byte) error {
	for _, f := range []struct {
		what     string
		is, want uint64
	}{
		{"the size of the header", uint64(le.Uint32(b[12:])), headerSize},
		{"the number of entries", uint64(le.Uint32(b[80:])), MaxPartitions},
		{"the size of an entry", uint64(le.Uint32(b[84:])), entrySize},
		{"the block of the header", le.Uint64(b[24:]), h.at},
		{"the block of the other header", le.Uint64(b[32:]), h.other},
		{"the first block for partitions", le.Uint64(b[40:]), h.first},
		{"the block of the entries", le.Uint64(b[72:]), h.array},
	} {
		if f.is != f.want {
			return fmt.Errorf("%s is %d, not %d", f.what, f.is, f.want)
		}
	}
	return nil
}

// readsAs returns an error unless go-diskfs reads t from one copy on a drive that is otherwise zeros.
func (t *Table) readsAs(l layout, r region, backup bool) error {
	got, err := diskfs.Read(&image{l.blocks * l.block, r}, int(l.block), int(l.block))
	switch {
	case err != nil:
		return fmt.Errorf("go-diskfs: %w", err)
	case got.RecoveredFromBackup != backup:
		return errors.New("it reads as the other copy")
	case !strings.EqualFold(got.GUID, t.GUID):
		return fmt.Errorf("the GUID is %s, not %s", got.GUID, t.GUID)
	case got.TotalSize() != l.blocks*l.block || (got.LastDataSector()+1)*l.block != l.end():
		return fmt.Errorf("the table is for %d bytes with partitions up to %d, not for %d and %d", got.TotalSize(), (got.LastDataSector()+1)*l.block, l.blocks*l.block, l.end())
	case len(got.Partitions) != len(t.Partitions):
		return fmt.Errorf("the table has %d partitions, not %d", len(got.Partitions), len(t.Partitions))
	}
	read := map[int]*diskfs.Partition{}
	for _, p := range got.Partitions {
		read[p.Index] = p
	}
	for _, p := range t.Partitions {
		is, there := read[p.Number]
		if !there {
			return fmt.Errorf("partition %d is missing", p.Number)
		}
		if err := p.isRead(is, l.block); err != nil {
			return fmt.Errorf("partition %d: %w", p.Number, err)
		}
	}
	return nil
}

// isRead returns an error if an entry, as go-diskfs reads it, is not p.
func (p Partition) isRead(is *diskfs.Partition, block uint64) error {
	attributes := p.attributes | uint64(p.TypeAttributes)<<typeBits
	switch {
	case is.Start*block != p.Start || (is.End+1)*block != p.end() || is.Size != p.Size:
		return fmt.Errorf("the place is %d to %d (%d bytes), not %d to %d (%d bytes)", is.Start*block, (is.End+1)*block, is.Size, p.Start, p.end(), p.Size)
	case !strings.EqualFold(string(is.Type), p.Type):
		return fmt.Errorf("the type is %s, not %s", is.Type, p.Type)
	case !strings.EqualFold(is.GUID, p.GUID):
		return fmt.Errorf("the GUID is %s, not %s", is.GUID, p.GUID)
	case is.Name != p.Name:
		return fmt.Errorf("the name is %q, not %q", is.Name, p.Name)
	case is.Attributes != attributes:
		return fmt.Errorf("the attributes are %#x, not %#x", is.Attributes, attributes)
	}
	return nil
}

// image is a drive in memory that holds one region and zeros elsewhere: it needs no more memory than the
// region, however large the drive is.
type image struct {
	size uint64
	held region
}

func (m *image) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || uint64(off) > m.size || uint64(len(p)) > m.size-uint64(off) {
		return 0, fmt.Errorf("%d bytes at %d: %w", len(p), off, io.ErrUnexpectedEOF)
	}
	clear(p)
	if at, start := uint64(off), m.held.at; at < start {
		copy(p[min(start-at, uint64(len(p))):], m.held.data)
	} else if skip := at - start; skip < uint64(len(m.held.data)) {
		copy(p, m.held.data[skip:])
	}
	return len(p), nil
}

// Seek returns the size of the drive, which is all that go-diskfs asks it for.
func (m *image) Seek(_ int64, whence int) (int64, error) {
	if whence != io.SeekEnd {
		return 0, errors.ErrUnsupported
	}
	return int64(m.size), nil
}

func (m *image) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }
func (m *image) Read([]byte) (int, error)   { return 0, errors.ErrUnsupported }
func (m *image) Close() error               { return nil }
