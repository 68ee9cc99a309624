package gpt

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Disk is a whole drive that is open for writing. Reads after Sync come from the medium.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	Size() uint64
	BlockSize() int
	Sync() error
}

// Read reads the table of a drive: the first copy if it is valid, else the backup. It returns ErrNone
// only if both places were read and hold no table.
func Read(d Disk) (*Table, error) {
	c, err := readCopies(d)
	if err != nil {
		return nil, err
	}
	return c.table()
}

// New returns an empty table for a drive, and writes nothing.
func New(d Disk) (*Table, error) {
	l, err := layoutOf(d)
	if err != nil {
		return nil, err
	}
	t := &Table{GUID: NewGUID(), First: l.first(), End: l.end(), block: l.block}
	if len(t.Free(Align)) == 0 {
		return nil, fmt.Errorf("a partition table on %d bytes: %w", d.Size(), ErrNoRoom)
	}
	return t, nil
}

// errAbsent means that one copy is missing; ErrNone needs both to be missing.
var errAbsent = errors.New("no table")

// errUnread wraps an error of the drive: what a copy holds is not known.
var errUnread = errors.New("not read")

// copies holds the two tables of a drive, each with its error.
type copies struct {
	layout        layout
	mbr           []byte
	first, backup *Table
	firstErr      error
	backupErr     error
}

func readCopies(d Disk) (copies, error) {
	l, err := layoutOf(d)
	if err != nil {
		return copies{}, err
	}
	c := copies{layout: l}
	c.mbr, c.firstErr = readBlocks(d, l, 0, 1)
	if c.firstErr == nil {
		c.first, c.firstErr = readCopy(d, l, 1)
	}
	c.backup, c.backupErr = readCopy(d, l, l.last())
	return c, nil
}

// table returns the copy to use.
func (c copies) table() (*Table, error) {
	switch {
	case c.first != nil:
		return c.first, nil
	case c.backup != nil:
		return c.backup, nil
	case errors.Is(c.firstErr, errAbsent) && errors.Is(c.backupErr, errAbsent):
		return nil, ErrNone
	}
	return nil, fmt.Errorf("%w: the first copy: %w; the backup: %w", ErrDamaged, c.firstErr, c.backupErr)
}

func readBlocks(d Disk, l layout, at, n uint64) ([]byte, error) {
	b := make([]byte, n*l.block)
	if got, err := d.ReadAt(b, int64(at*l.block)); got < len(b) {
		return nil, fmt.Errorf("%w: %d bytes at %d: %w", errUnread, len(b), at*l.block, err)
	}
	return b, nil
}

// readCopy reads the table whose header is in block at.
func readCopy(d Disk, l layout, at uint64) (*Table, error) {
	block, err := readBlocks(d, l, at, 1)
	if err != nil {
		return nil, err
	}
	h, err := decodeHeader(block)
	if err == nil {
		err = h.fits(l, at)
	}
	if err != nil {
		return nil, err
	}
	size := uint64(h.count) * uint64(h.entry)
	array, err := readBlocks(d, l, h.array, (size+l.block-1)/l.block)
	if err != nil {
		return nil, err
	}
	if array = array[:size]; crc32.ChecksumIEEE(array) != h.sum {
		return nil, errors.New("the checksum of the entries is wrong")
	}
	// A drive that grew has more room than the header says.
	t := &Table{GUID: h.guid.String(), First: max(h.first*l.block, l.first()), End: l.end(), block: l.block}
	for n := range h.count {
		p, used, err := decodeEntry(array[n*h.entry:], int(n)+1, l.block, l.blocks)
		if err != nil {
			return nil, err
		}
		if used {
			t.Partitions = append(t.Partitions, p)
		}
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	return t, nil
}
