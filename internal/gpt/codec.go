package gpt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

var le = binary.LittleEndian

const (
	signature  = "EFI PART"
	revision   = 0x00010000
	headerSize = 92
	entrySize  = 128
	arraySize  = MaxPartitions * entrySize
)

// layout is the geometry of a table on a drive. Both copies have the same size: at the front the
// protective MBR, the header and the entries, at the end the entries and the header.
type layout struct {
	block, blocks uint64 // bytes of a block, and number of blocks
	array         uint64 // blocks that the entries take
}

func layoutOf(d Disk) (layout, error) {
	block := uint64(d.BlockSize())
	switch block {
	case 512, 1024, 2048, 4096:
	default:
		return layout{}, fmt.Errorf("a partition table on blocks of %d bytes", d.BlockSize())
	}
	l := layout{block, d.Size() / block, arraySize / block}
	if l.blocks < 2*(l.array+2) || d.Size() > math.MaxInt64 {
		return layout{}, fmt.Errorf("a partition table on %d bytes: %w", d.Size(), ErrNoRoom)
	}
	return l, nil
}

func (l layout) last() uint64  { return l.blocks - 1 }
func (l layout) first() uint64 { return (2 + l.array) * l.block }        // partitions may use the bytes from here
func (l layout) end() uint64   { return (l.last() - l.array) * l.block } // up to here

// header holds the fields of a header (UEFI 2.10, table 5.5).
type header struct {
	at, other, first, last, array uint64 // blocks
	guid                          guid
	count, entry, sum             uint32
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, headerSize), signature...)
	b = le.AppendUint32(b, revision)
	b = le.AppendUint32(b, headerSize)
	b = append(b, make([]byte, 8)...) // the checksum, and a reserved field
	for _, n := range []uint64{h.at, h.other, h.first, h.last} {
		b = le.AppendUint64(b, n)
	}
	b = append(b, h.guid[:]...)
	b = le.AppendUint64(b, h.array)
	for _, n := range []uint32{h.count, h.entry, h.sum} {
		b = le.AppendUint32(b, n)
	}
	le.PutUint32(b[16:], crc32.ChecksumIEEE(b))
	return b
}

// decodeHeader parses the header in a block.
func decodeHeader(b []byte) (header, error) {
	if string(b[:8]) != signature {
		return header{}, errAbsent
	}
	size := le.Uint32(b[12:])
	if le.Uint32(b[8:]) != revision || size < headerSize || int(size) > len(b) {
		return header{}, errors.New("the header has another revision or size")
	}
	body := append([]byte{}, b[:size]...)
	clear(body[16:20])
	if crc32.ChecksumIEEE(body) != le.Uint32(b[16:]) {
		return header{}, errors.New("the checksum of the header is wrong")
	}
	return header{
		at: le.Uint64(b[24:]), other: le.Uint64(b[32:]), first: le.Uint64(b[40:]), last: le.Uint64(b[48:]), guid: guid(b[56:72]),
		array: le.Uint64(b[72:]), count: le.Uint32(b[80:]), entry: le.Uint32(b[84:]), sum: le.Uint32(b[88:]),
	}, nil
}

// fits returns an error if a header that was found in block at cannot belong to this drive. The last
// block for partitions must lie on the drive, but need not match its size: the drive may have grown.
func (h header) fits(l layout, at uint64) error {
	bytes := uint64(h.count) * uint64(h.entry)
	switch {
	case h.at != at:
		return fmt.Errorf("the header names block %d as its place, but is in block %d", h.at, at)
	case h.entry < entrySize || h.entry > 4096 || h.entry&(h.entry-1) != 0 || h.count == 0 || bytes > 1<<20:
		return fmt.Errorf("the table has %d entries of %d bytes", h.count, h.entry)
	}
	array := (bytes + l.block - 1) / l.block
	switch {
	case h.first > h.last || h.last >= l.last():
		return fmt.Errorf("the blocks for partitions are %d to %d of %d", h.first, h.last, l.blocks)
	case h.array < 2 || h.array >= l.blocks || array > l.blocks-h.array || (h.array <= h.last && h.array+array > h.first) || (h.array <= at && h.array+array > at):
		return fmt.Errorf("the entries are in block %d, which is not allowed", h.array)
	}
	return nil
}

// typeBits is the first attribute bit that is reserved for the partition type.
const typeBits = 48

func (p Partition) encode(block uint64) []byte {
	kind, _ := parseGUID(p.Type) // check has validated it
	unique, _ := parseGUID(p.GUID)
	name, _ := encodeName(p.Name)
	b := append(make([]byte, 0, entrySize), kind[:]...)
	b = append(b, unique[:]...)
	b = le.AppendUint64(b, p.Start/block)
	b = le.AppendUint64(b, p.end()/block-1)
	b = le.AppendUint64(b, p.attributes|uint64(p.TypeAttributes)<<typeBits)
	for _, c := range name {
		b = le.AppendUint16(b, c)
	}
	return b
}

// decodeEntry parses an entry; an empty one is no partition.
func decodeEntry(b []byte, number int, block, blocks uint64) (p Partition, used bool, err error) {
	kind, first, last := guid(b[:16]), le.Uint64(b[32:]), le.Uint64(b[40:])
	if kind == (guid{}) {
		return p, false, nil
	}
	if first > last || last >= blocks {
		return p, true, fmt.Errorf("partition %d is in blocks %d to %d of %d", number, first, last, blocks)
	}
	attributes := le.Uint64(b[48:])
	return Partition{
		Number: number, Start: first * block, Size: (last - first + 1) * block,
		Type: kind.String(), GUID: guid(b[16:32]).String(), Name: decodeName(b[56:entrySize]), TypeAttributes: uint16(attributes >> typeBits), attributes: attributes & (1<<typeBits - 1),
	}, true, nil
}

// protectiveMBR returns the MBR that marks a drive as in use for programs without GPT (UEFI 2.10,
// 5.2.3).
func protectiveMBR(l layout) []byte {
	b := make([]byte, l.block)
	copy(b[446:], "\x00\x00\x02\x00\xee\xff\xff\xff\x01\x00\x00\x00")
	le.PutUint32(b[458:], uint32(min(l.last(), 0xffffffff)))
	copy(b[510:], "\x55\xaa")
	return b
}

// isProtective reports whether b is the MBR that the kernel requires of a GPT
// (block/partitions/efi.c).
func isProtective(b []byte) bool {
	if string(b[510:512]) != "\x55\xaa" {
		return false
	}
	for e := b[446:510]; len(e) > 0; e = e[16:] {
		if e[4] == 0xee && le.Uint32(e[8:]) == 1 {
			return true
		}
	}
	return false
}
