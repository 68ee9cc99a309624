package content

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
	GptEntries = 128
	gptEntry   = 128
)

// Types of partitions (UEFI 2.10, table 5.7; the discoverable partitions specification).
var (
	linuxData = [16]byte{0xAF, 0x3D, 0xC6, 0x0F, 0x83, 0x84, 0x72, 0x47, 0x8E, 0x79, 0x3D, 0x69, 0xD8, 0x47, 0x7D, 0xE4}
	efiSystem = [16]byte{0x28, 0x73, 0x2A, 0xC1, 0x1F, 0xF8, 0xD2, 0x11, 0xBA, 0x4B, 0x00, 0xA0, 0xC9, 0x3E, 0xC9, 0x3B}
)

// Entry is a partition of a table; first and last are logical blocks.
type Entry struct {
	Number      int
	Kind, ID    [16]byte
	First, Last uint64
	Name        string
}

// dataTable returns one partition over the whole drive.
func dataTable(size, block uint64) []Entry {
	long := GptEntries * gptEntry / block
	return []Entry{{Kind: linuxData, First: 2 + long, Last: size/block - long - 2, Name: "data"}}
}

// SystemTable returns the partitions of a drive that a machine boots from.
func SystemTable(size, block uint64) []Entry {
	mib := (1 << 20) / block
	efi := min(512*mib, size/4/block/mib*mib)
	return []Entry{
		{Kind: efiSystem, First: mib, Last: mib + efi - 1, Name: "EFI System Partition"},
		{Kind: linuxData, First: mib + efi, Last: size/block - mib - 1, Name: "root"},
	}
}

func GPT(size, block uint64, parts ...Entry) []piece {
	table := make([]byte, GptEntries*gptEntry)
	last := size/block - 1
	long := uint64(len(table)) / block
	for n, p := range parts {
		e := table[n*gptEntry:]
		copy(e, p.Kind[:])
		copy(e[16:], fmt.Sprintf("simulated part %d", n+1))
		le.PutUint64(e[32:], p.First)
		le.PutUint64(e[40:], p.Last)
		for i, r := range utf16.Encode([]rune(p.Name)) {
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
		le.PutUint32(h[80:], GptEntries)
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

// Table returns the partitions that a kernel finds on a drive: from the first header, or from the copy
// if the first is damaged (block/partitions/efi.c). It finds none if another implementation reads them
// differently.
func (c *Bytes) Table(size, block uint64) []Entry {
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
func (c *Bytes) protected() bool {
	b := make([]byte, 512)
	c.Read(b, 0)
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
func (c *Bytes) tableAt(lba, size, block uint64) ([]Entry, bool) {
	h := make([]byte, block)
	c.Read(h, lba*block)
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
	c.Read(b, at*block)
	if crc32.ChecksumIEEE(b) != le.Uint32(h[88:]) {
		return nil, false
	}
	var list []Entry
	for i := range int(count) {
		if e := b[i*gptEntry:]; !bytes.Equal(e[:16], make([]byte, 16)) {
			list = append(list, readEntry(i+1, e))
		}
	}
	if common := le.Uint32(h[8:]) == 0x00010000 && long == 92 && le.Uint32(h[20:]) == 0; common && !c.agrees(list, lba, size, block) { // go-diskfs reads no other header
		return nil, false
	}
	return slices.DeleteFunc(list, func(e Entry) bool { return e.First > e.Last || e.Last >= size/block }), true
}

// Entry returns the entry of a partition. It skips the checksums, because sysfs calls it for every read
// and the kernel checked them.
func (c *Bytes) Entry(number int, block uint64) Entry {
	b := make([]byte, gptEntry)
	if c.Read(b[:92], block); string(b[:8]) != "EFI PART" || uint32(number) > le.Uint32(b[80:]) {
		return Entry{}
	}
	c.Read(b, le.Uint64(b[72:])*block+uint64(number-1)*gptEntry)
	return readEntry(number, b)
}

func readEntry(number int, b []byte) Entry {
	e := Entry{Number: number, Kind: [16]byte(b), ID: [16]byte(b[16:]), First: le.Uint64(b[32:]), Last: le.Uint64(b[40:])}
	var name []uint16
	for i := 56; i < gptEntry && le.Uint16(b[i:]) != 0; i += 2 {
		name = append(name, le.Uint16(b[i:]))
	}
	e.Name = string(utf16.Decode(name))
	return e
}

// GUID returns a GUID in its usual form: the first three numbers are little-endian.
func GUID(b [16]byte) string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", le.Uint32(b[:]), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:])
}
