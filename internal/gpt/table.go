// Package gpt reads and changes the partition table of a drive (UEFI 2.10, section 5.3). A power loss
// at any time loses no partition table.
//
// No library writes or reads the tables of drives, because of three damage cases: a damaged table must
// differ from a missing one, the backup must serve when the first copy cannot even be read, and the only
// good copy must never be the one that is written. go-diskfs v1.9.4 reports the first two cases with one
// unexported error, ignores the backup after a read error, and always writes it first. It is the second
// reader of what this package encodes, before the first byte is written (secondopinion.go).
package gpt

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

var (
	// ErrNone: the drive has no table, in neither place.
	ErrNone = errors.New("no partition table")
	// ErrDamaged: the drive has or may have a table, and neither copy is readable and valid.
	ErrDamaged = errors.New("partition table is damaged or cannot be read")
	// ErrNoRoom: that much is not free in one piece, or not right behind the partition.
	ErrNoRoom = errors.New("not enough contiguous free space")
	// ErrNoPartition: the table has no partition of that GUID.
	ErrNoPartition = errors.New("no such partition")
)

// Align is the alignment of partitions: a multiple of nearly all erase blocks, stripes and physical
// sectors.
const Align = 1 << 20

// MaxPartitions is the number of entries in a table that drivebay writes, the usual one.
const MaxPartitions = 128

// Table is a partition table. A change to it reaches the drive only with Write.
type Table struct {
	GUID       string
	First, End uint64 // partitions may use the bytes from First up to End
	Partitions []Partition

	block uint64
}

// Partition is an entry of a table. Start and Size are in bytes. The GUIDs are in lower case.
type Partition struct {
	Number         int
	Start, Size    uint64
	Type, GUID     string
	Name           string
	TypeAttributes uint16 // bits 48 to 63 of the attributes, reserved for the partition type (UEFI 2.10, table 5.8)

	attributes uint64 // the other bits, unchanged
}

func (p Partition) end() uint64 { return p.Start + p.Size }

// Range is a free piece of a drive, in bytes.
type Range struct {
	Start, Size uint64
	After       uint64 // size of the partition right before it, or 0
}

// Choose returns the range for a new partition: one of exactly that size, else the largest range,
// where the partition and its neighbors can grow most. Size 0: none is large enough.
func Choose(free []Range, size uint64) Range {
	var best Range
	for _, r := range free {
		if r.Size == size {
			return r
		}
		if r.Size > best.Size {
			best = r
		}
	}
	if best.Size < size {
		return Range{}
	}
	return best
}

// Place returns where a new partition of a size starts in the range, which must hold it. It leaves
// room for the partition before the range: the free space is shared in proportion to the two sizes, so
// that both can grow. The earlier partition gets three times its size at most: a small volume does not
// cut a large drive in half.
func (r Range) Place(size, align uint64) uint64 {
	spare := float64(r.Size - size)
	room := min(spare*float64(r.After)/float64(r.After+size), 3*float64(r.After))
	return r.Start + uint64(room)/align*align
}

// Places returns the ranges of a drive that a partition table occupies: at its front and at its end.
func Places(d Disk) ([]Range, error) {
	l, err := layoutOf(d)
	if err != nil {
		return nil, err
	}
	return []Range{{Start: 0, Size: l.first()}, {Start: l.end(), Size: d.Size() - l.end()}}, nil
}

// Free returns the ranges without a partition, cut to multiples of align.
func (t *Table) Free(align uint64) []Range {
	if align == 0 {
		return nil
	}
	var out []Range
	at, after := t.First, uint64(0)
	gap := func(end uint64) {
		start := (at + align - 1) / align * align
		if end = end / align * align; end > start {
			out = append(out, Range{start, end - start, after})
		}
	}
	for _, p := range t.byStart() {
		gap(p.Start)
		at, after = p.end(), p.Size
	}
	gap(t.End)
	return out
}

// Largest returns the largest free range, the first of several, or zero.
func (t *Table) Largest(align uint64) Range {
	var best Range
	for _, r := range t.Free(align) {
		if r.Size > best.Size {
			best = r
		}
	}
	return best
}

// Add adds a partition where Choose and Place put it.
func (t *Table) Add(size, align uint64, kind, guid, name string) (Partition, error) {
	fail := func(err error) (Partition, error) {
		return Partition{}, fmt.Errorf("partition %s of %d bytes: %w", name, size, err)
	}
	if align == 0 || align%t.block != 0 || size == 0 || size%align != 0 {
		return fail(fmt.Errorf("the size is not a multiple of the alignment of %d bytes and of the block size of %d bytes", align, t.block))
	}
	p := Partition{Number: t.freeNumber(), Size: size, Type: strings.ToLower(kind), GUID: strings.ToLower(guid), Name: name}
	room := Choose(t.Free(align), size)
	switch {
	case room.Size == 0:
		return fail(fmt.Errorf("%w: the largest free range has %d bytes", ErrNoRoom, t.Largest(align).Size))
	case p.Number == 0:
		return fail(fmt.Errorf("%w: the table already has %d entries", ErrNoRoom, MaxPartitions))
	}
	p.Start = room.Place(size, align)
	if err := p.sound(); err != nil {
		return fail(err)
	}
	if _, ok := t.Find(p.GUID); ok {
		return fail(errors.New("another partition has this GUID"))
	}
	t.Partitions = append(t.Partitions, p)
	t.sort()
	return p, nil
}

func (t *Table) Remove(guid string) error {
	i := t.index(guid)
	if i < 0 {
		return fmt.Errorf("remove %s: %w", guid, ErrNoPartition)
	}
	t.Partitions = slices.Delete(t.Partitions, i, i+1)
	return nil
}

// Grow enlarges a partition into the free space right behind it. It never shrinks one, and a partition
// that has the size already is no error.
func (t *Table) Grow(guid string, size uint64) error {
	i := t.index(guid)
	if i < 0 {
		return fmt.Errorf("grow %s: %w", guid, ErrNoPartition)
	}
	p := &t.Partitions[i]
	limit := t.End
	for _, q := range t.Partitions {
		if q.Start > p.Start {
			limit = min(limit, q.Start)
		}
	}
	switch {
	case size < p.Size:
		return fmt.Errorf("grow %s: the partition has %d bytes, more than the requested %d", guid, p.Size, size)
	case size%t.block != 0:
		return fmt.Errorf("grow %s: %d bytes are not a multiple of the block size of %d bytes", guid, size, t.block)
	case size > limit-p.Start:
		return fmt.Errorf("grow %s to %d bytes: %w: at most %d bytes are available", guid, size, ErrNoRoom, limit-p.Start)
	}
	p.Size = size
	return nil
}

func (t *Table) Find(guid string) (Partition, bool) { return t.at(t.index(guid)) }

func (t *Table) FindName(name string) (Partition, bool) {
	return t.at(slices.IndexFunc(t.Partitions, func(p Partition) bool { return p.Name == name }))
}

func (t *Table) at(i int) (Partition, bool) {
	if i < 0 {
		return Partition{}, false
	}
	return t.Partitions[i], true
}

func (t *Table) index(guid string) int {
	return slices.IndexFunc(t.Partitions, func(p Partition) bool { return strings.EqualFold(p.GUID, guid) })
}

// freeNumber returns the lowest unused number, 0 if all are in use.
func (t *Table) freeNumber() int {
	for n := 1; n <= MaxPartitions; n++ {
		if !slices.ContainsFunc(t.Partitions, func(p Partition) bool { return p.Number == n }) {
			return n
		}
	}
	return 0
}

func (t *Table) sort() {
	slices.SortFunc(t.Partitions, func(a, b Partition) int { return cmp.Compare(a.Number, b.Number) })
}

func (t *Table) byStart() []Partition {
	return slices.SortedFunc(slices.Values(t.Partitions), func(a, b Partition) int { return cmp.Compare(a.Start, b.Start) })
}

// check returns an error for a table that must not be trusted or written.
func (t *Table) check() error {
	if _, err := parseGUID(t.GUID); err != nil {
		return err
	}
	if t.First > t.End || t.End > math.MaxInt64 {
		return fmt.Errorf("the range for partitions is from %d to %d", t.First, t.End)
	}
	numbers, guids := map[int]bool{}, map[string]bool{}
	at := t.First
	for _, p := range t.byStart() {
		switch err := p.sound(); {
		case err != nil:
			return err
		case p.Start%t.block != 0 || p.Size%t.block != 0 || p.Size == 0 || p.Start >= t.End || p.Size > t.End-p.Start:
			return fmt.Errorf("partition %d at %d with %d bytes is not between %d and %d", p.Number, p.Start, p.Size, t.First, t.End)
		case p.Start < at:
			return fmt.Errorf("partition %d begins at %d, which overlaps another partition or is not allowed", p.Number, p.Start)
		case numbers[p.Number] || guids[p.GUID]:
			return fmt.Errorf("partition %d has the number or the GUID of another partition", p.Number)
		}
		numbers[p.Number], guids[p.GUID] = true, true
		at = p.end()
	}
	return nil
}

// sound returns an error if a partition cannot be encoded.
func (p Partition) sound() error {
	kind, err := parseGUID(p.Type)
	if err == nil && kind == (guid{}) {
		err = errors.New("the type is that of an empty entry")
	}
	if err == nil {
		_, err = parseGUID(p.GUID)
	}
	if err == nil {
		_, err = encodeName(p.Name)
	}
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.Number, err)
	}
	return nil
}
