package gpt

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// Write writes a new table or a changed one. While one copy is written the other is whole: Write
// starts with the copy that Read would not have used. Where there is no table yet, it writes the whole
// first copy in one call, so that an interrupted Write leaves a drive that is blank or has our table.
func (t *Table) Write(d Disk) error {
	c, err := readCopies(d)
	if err != nil {
		return fmt.Errorf("write partition table: %w", err)
	}
	if c.first == nil && c.backup == nil { // a copy that cannot be read now may be the only good one
		if err := c.unread(); err != nil {
			return fmt.Errorf("write partition table: %w", err)
		}
	}
	head, tail, err := t.encode(c.layout)
	if err == nil {
		err = t.writeEncoded(d, c, head, tail)
	}
	if err != nil {
		return fmt.Errorf("write partition table: %w", err)
	}
	return nil
}

// writeEncoded writes the bytes of a table once another implementation has read t in both copies. It is
// the only place where a table is written.
func (t *Table) writeEncoded(d Disk, c copies, head, tail []byte) error {
	if err := t.secondOpinion(c.layout, head, tail); err != nil {
		return err
	}
	order := []region{{"first copy", 0, head}, {"backup", c.layout.end(), tail}}
	if c.first != nil {
		order[0], order[1] = order[1], order[0]
	}
	for _, r := range order {
		if err := r.write(d); err != nil {
			return err
		}
	}
	return nil
}

// unread returns the error of a copy that the drive did not return.
func (c copies) unread() error {
	for what, err := range map[string]error{"the first copy": c.firstErr, "the backup": c.backupErr} {
		if errors.Is(err, errUnread) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// encode returns the bytes for the front and the end of a drive.
func (t *Table) encode(l layout) (head, tail []byte, err error) {
	// The table may have been made when the drive had another size.
	t = &Table{GUID: t.GUID, First: max(t.First, l.first()), End: l.end(), Partitions: t.Partitions, block: l.block}
	if err := t.check(); err != nil {
		return nil, nil, err
	}
	array := make([]byte, arraySize)
	for _, p := range t.Partitions {
		if p.Number < 1 || p.Number > MaxPartitions {
			return nil, nil, fmt.Errorf("partition %d exceeds the %d entries of the tables that drivebay writes", p.Number, MaxPartitions)
		}
		copy(array[(p.Number-1)*entrySize:], p.encode(l.block))
	}
	id, _ := parseGUID(t.GUID)
	h := header{
		at: 1, other: l.last(), first: t.First / l.block, last: l.last() - l.array - 1, array: 2,
		guid: id, count: MaxPartitions, entry: entrySize, sum: crc32.ChecksumIEEE(array),
	}
	blockOf := func(h header) []byte { return append(h.encode(), make([]byte, l.block-headerSize)...) }
	head = append(append(protectiveMBR(l), blockOf(h)...), array...)
	h.at, h.other, h.array = l.last(), 1, l.end()/l.block
	return head, append(array, blockOf(h)...), nil
}

// Begun reports whether the places of a table on a drive hold nothing, or only parts of this very
// table: then a loss of power interrupted its Write to a blank drive, and writing it again destroys no
// other table.
func (t *Table) Begun(d Disk) (bool, error) {
	l, err := layoutOf(d)
	if err != nil {
		return false, err
	}
	head, tail, err := t.encode(l)
	if err != nil {
		return false, err
	}
	for _, r := range []region{{"first copy", 0, head}, {"backup", l.end(), tail}} {
		have, err := readBlocks(d, l, r.at/l.block, uint64(len(r.data))/l.block)
		if err != nil {
			return false, fmt.Errorf("%s: %w", r.what, err)
		}
		for at := 0; at < len(have); at += sector {
			is := have[at : at+sector]
			if !bytes.Equal(is, r.data[at:at+sector]) && !uniform(is) {
				return false, nil
			}
		}
	}
	return true, nil
}

// sector is the smallest unit that a drive writes as a whole.
const sector = 512

// uniform reports whether b is blank: all zeros or all ones.
func uniform(b []byte) bool {
	return bytes.Count(b, []byte{0}) == len(b) || bytes.Count(b, []byte{0xff}) == len(b)
}

// region is bytes and the place to write them to.
type region struct {
	what string
	at   uint64
	data []byte
}

// write returns when the medium holds the bytes, after it has read them back.
func (r region) write(d Disk) error {
	if _, err := d.WriteAt(r.data, int64(r.at)); err != nil {
		return fmt.Errorf("%s: %w", r.what, err)
	}
	if err := d.Sync(); err != nil {
		return fmt.Errorf("%s: %w", r.what, err)
	}
	back := make([]byte, len(r.data))
	if n, err := d.ReadAt(back, int64(r.at)); n < len(back) {
		return fmt.Errorf("%s, read back: %w", r.what, err)
	}
	if !bytes.Equal(back, r.data) {
		return fmt.Errorf("%s: the drive does not return what was written", r.what)
	}
	return nil
}

// Erase makes a drive with an empty table blank. It removes the headers first, the backup's before the
// first copy's, so that an interrupted Erase can be repeated. On a drive without a table it removes
// only a protective MBR.
func Erase(d Disk) error {
	c, err := readCopies(d)
	if err != nil {
		return fmt.Errorf("erase partition table: %w", err)
	}
	t, err := c.table()
	switch {
	case errors.Is(err, ErrNone):
		return c.eraseMBR(d)
	case err != nil:
		return fmt.Errorf("erase partition table: %w", err)
	}
	if err := c.unread(); err != nil { // it may have partitions
		return fmt.Errorf("erase partition table: %w", err)
	}
	for _, other := range []*Table{t, c.backup} {
		if other != nil && len(other.Partitions) > 0 {
			return fmt.Errorf("erase partition table: the table has %d partitions", len(other.Partitions))
		}
	}
	l := c.layout
	zeros := func(what string, at, n uint64) region { return region{what, at, make([]byte, n)} }
	for _, r := range []region{
		zeros("backup", l.last()*l.block, l.block), zeros("first copy", l.block, l.block),
		zeros("entries of the backup", l.end(), l.array*l.block), zeros("entries", 2*l.block, l.array*l.block),
	} {
		if err := r.write(d); err != nil {
			return fmt.Errorf("erase partition table: %w", err)
		}
	}
	return c.eraseMBR(d)
}

// eraseMBR removes an MBR that holds only the protective entry.
func (c copies) eraseMBR(d Disk) error {
	ours := protectiveMBR(c.layout)
	if c.mbr == nil || !bytes.Equal(c.mbr[:458], ours[:458]) || !bytes.Equal(c.mbr[462:], ours[462:]) { // between them is its size
		return nil
	}
	if err := (region{"protective MBR", 0, make([]byte, c.layout.block)}).write(d); err != nil {
		return fmt.Errorf("erase partition table: %w", err)
	}
	return nil
}
