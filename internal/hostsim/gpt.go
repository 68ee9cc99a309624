package hostsim

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"unicode/utf16"
)

// The GUID partition table (UEFI 2.10, 5.3): a protective boot record, a header, the entries, and a
// copy of header and entries at the end.
const (
	gptEntries = 128
	gptEntry   = 128
)

// Types of partitions (UEFI 2.10, table 5.7; the discoverable partitions specification).
var (
	linuxData = [16]byte{0xAF, 0x3D, 0xC6, 0x0F, 0x83, 0x84, 0x72, 0x47, 0x8E, 0x79, 0x3D, 0x69, 0xD8, 0x47, 0x7D, 0xE4}
	efiSystem = [16]byte{0x28, 0x73, 0x2A, 0xC1, 0x1F, 0xF8, 0xD2, 0x11, 0xBA, 0x4B, 0x00, 0xA0, 0xC9, 0x3E, 0xC9, 0x3B}
)

// entry is a partition of a table; first and last are logical blocks.
type entry struct {
	number      int
	kind, id    [16]byte
	first, last uint64
	name        string
}

// dataTable returns one partition over the whole drive.
func dataTable(size, block uint64) []entry {
	long := gptEntries * gptEntry / block
	return []entry{{kind: linuxData, first: 2 + long, last: size/block - long - 2, name: "data"}}
}

// systemTable returns the partitions of a drive that a machine boots from.
func systemTable(size, block uint64) []entry {
	mib := (1 << 20) / block
	efi := min(512*mib, size/4/block/mib*mib)
	return []entry{
		{kind: efiSystem, first: mib, last: mib + efi - 1, name: "EFI System Partition"},
		{kind: linuxData, first: mib + efi, last: size/block - mib - 1, name: "root"},
	}
}

func gpt(size, block uint64, parts ...entry) []piece {
	table := make([]byte, gptEntries*gptEntry)
	last := size/block - 1
	long := uint64(len(table)) / block
	for n, p := range parts {
		e := table[n*gptEntry:]
		copy(e, p.kind[:])
		copy(e[16:], fmt.Sprintf("simulated part %d", n+1))
		le.PutUint64(e[32:], p.first)
		le.PutUint64(e[40:], p.last)
		for i, r := range utf16.Encode([]rune(p.name)) {
			le.PutUint16(e[56+2*i:], r)
		}
	}
	header := func(here, other, entriesAt uint64) []byte {
		h := make([]byte, 92)
		copy(h, "EFI PART")
		le.PutUint32(h[8:], 0x00010000)
		le.PutUint32(h[12:], uint32(len(h)))
		le.PutUint64(h[24:], here)
		le.PutUint64(h[32:], other)
		le.PutUint64(h[40:], 2+long)
		le.PutUint64(h[48:], last-long-1)
		copy(h[56:], "simulated disk 1")
		le.PutUint64(h[72:], entriesAt)
		le.PutUint32(h[80:], gptEntries)
		le.PutUint32(h[84:], gptEntry)
		le.PutUint32(h[88:], crc32.ChecksumIEEE(table))
		le.PutUint32(h[16:], crc32.ChecksumIEEE(h))
		return h
	}
	return []piece{
		{0, mbr(0xEE, 1, size/512-1)}, {block, header(1, last, 2)}, {2 * block, table},
		{(last - long) * block, slices.Clone(table)}, {last * block, header(last, 1, last-long)},
	}
}

// table returns the partitions that a kernel finds on a drive: from the first header, or from the copy
// if the first is damaged (block/partitions/efi.c).
func (c *content) table(size, block uint64) []entry {
	if !c.protected() {
		return nil
	}
	if list, ok := c.tableAt(1, size, block); ok {
		return list
	}
	list, _ := c.tableAt(size/block-1, size, block)
	return list
}

// protected reports whether the boot record marks the drive as GPT.
func (c *content) protected() bool {
	b := make([]byte, 512)
	c.read(b, 0)
	if b[510] != 0x55 || b[511] != 0xAA {
		return false
	}
	for e := 446; e < 510; e += 16 {
		if b[e+4] == 0xEE {
			return true
		}
	}
	return false
}

// tableAt reads the table whose header is in a block.
func (c *content) tableAt(lba, size, block uint64) ([]entry, bool) {
	h := make([]byte, block)
	c.read(h, lba*block)
	long := le.Uint32(h[12:])
	if string(h[:8]) != "EFI PART" || long < 92 || uint64(long) > block || le.Uint64(h[24:]) != lba {
		return nil, false
	}
	sum := le.Uint32(h[16:])
	le.PutUint32(h[16:], 0)
	at, count, each := le.Uint64(h[72:]), le.Uint32(h[80:]), le.Uint32(h[84:])
	if crc32.ChecksumIEEE(h[:long]) != sum || each != gptEntry || count > 1024 || at >= size/block || le.Uint64(h[40:]) > size/block-1 || le.Uint64(h[48:]) > size/block-1 { // is_gpt_valid: a usable block beyond the last one
		return nil, false
	}
	b := make([]byte, count*each)
	c.read(b, at*block)
	if crc32.ChecksumIEEE(b) != le.Uint32(h[88:]) {
		return nil, false
	}
	var list []entry
	for i := range int(count) {
		if e := b[i*gptEntry:]; !bytes.Equal(e[:16], make([]byte, 16)) {
			list = append(list, readEntry(i+1, e))
		}
	}
	return slices.DeleteFunc(list, func(e entry) bool { return e.first > e.last || e.last >= size/block }), true
}

// entry returns the entry of a partition. It skips the checksums, because sysfs calls it for every read
// and the kernel checked them.
func (c *content) entry(number int, block uint64) entry {
	b := make([]byte, gptEntry)
	if c.read(b[:92], block); string(b[:8]) != "EFI PART" || uint32(number) > le.Uint32(b[80:]) {
		return entry{}
	}
	c.read(b, le.Uint64(b[72:])*block+uint64(number-1)*gptEntry)
	return readEntry(number, b)
}

func readEntry(number int, b []byte) entry {
	e := entry{number: number, kind: [16]byte(b), id: [16]byte(b[16:]), first: le.Uint64(b[32:]), last: le.Uint64(b[40:])}
	var name []uint16
	for i := 56; i < gptEntry && le.Uint16(b[i:]) != 0; i += 2 {
		name = append(name, le.Uint16(b[i:]))
	}
	e.name = string(utf16.Decode(name))
	return e
}

// guid returns a GUID in its usual form: the first three numbers are little-endian.
func guid(b [16]byte) string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", le.Uint32(b[:]), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:])
}
