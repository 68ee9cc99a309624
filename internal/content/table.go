package content

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// maxPartitions bounds how many partitions are inspected.
const maxPartitions = 128

// table is a partition table.
type table struct {
	signatures []drivebay.Signature
	partitions []extent
	ours       bool // a sound GPT whose partitions all have the prefix OursPrefix
	beyond     string
	damage     string // of a table that has one sound copy
	sum        uint32
}

type extent struct {
	number      int
	start, size uint64
	name        string
}

func (e extent) inside(size uint64) bool {
	return e.size > 0 && e.start < size && e.size <= size-e.start
}

// inPartition reports whether a signature that was found on the drive lies in a partition, and so may
// belong to that partition only.
func (t table) inPartition(s drivebay.Signature) bool {
	return slices.ContainsFunc(t.partitions, func(p extent) bool { return s.Offset >= p.start && s.Offset-p.start < p.size })
}

func readTable(v *view, blockSize uint64) table {
	if t, ok := readGPT(v, blockSize); ok {
		return t
	}
	parts, format := readMBR(v, max(blockSize, 512))
	if format == "" {
		return table{}
	}
	return table{signatures: []drivebay.Signature{{Format: format, Offset: 510}}, partitions: parts}
}

// gptHeader holds the used fields of a header (UEFI 2.10, 5.3.2).
type gptHeader struct {
	at, block    uint64
	guid         string
	entries      uint64 // LBA of the partition entries
	count, entry uint32
	sum          uint32 // CRC of the entries
	sound        bool   // its CRC is right and so is the LBA that it gives for itself
	other, last  uint64 // LBA of the other header, and the last one for partitions
}

// readGPT reads the GPT from the header after the protective MBR, or from its backup in the last
// block. It tries the known block size and the two usual ones.
func readGPT(v *view, blockSize uint64) (table, bool) {
	sizes := []uint64{512, 4096}
	if blockSize > 0 && blockSize != 512 {
		sizes = []uint64{blockSize, 512, 4096}
	}
	for _, bs := range sizes {
		if v.size < 3*bs {
			continue
		}
		first, ok := v.gptHeader(bs, bs)
		backup, hasBackup := v.gptHeader(v.size/bs*bs-bs, bs)
		switch {
		case !ok && !hasBackup:
			continue
		case !ok || (!first.sound && hasBackup && backup.sound):
			first = backup
		}
		t := v.gptTable(first)
		t.ours = t.ours && first.at == bs && protective(v) && !(hasBackup && backup.sound && backup.guid != first.guid)
		t.damage = v.gptDamage(bs)
		return t, true
	}
	return table{}, false
}

// gptDamage says what of a GPT is damaged while one copy of it is sound. The kernel shows no partition without the protective MBR
// (Linux, block/partitions/efi.c, is_pmbr_valid), and with one copy the next damage is the loss of the table.
func (v *view) gptDamage(bs uint64) string {
	last := v.size/bs - 1
	first, backup := v.gptCopy(bs, bs), v.gptCopy(last*bs, bs)
	switch {
	case first == nil && backup == nil, first != nil && first.other != last: // the drive has grown or shrunk since
		return ""
	case first == nil:
		return "its first copy is damaged"
	case backup == nil:
		return "its backup is damaged"
	case first.guid != backup.guid || first.sum != backup.sum:
		return "its two copies differ"
	case !hasProtective(v):
		return "the protective MBR before it is missing, without which the kernel shows no partition at its next start"
	}
	return ""
}

// gptCopy returns the header of a sound copy of a GPT, or nil.
func (v *view) gptCopy(at, bs uint64) *gptHeader {
	h, ok := v.gptHeader(at, bs)
	if !ok || !h.sound || h.count > maxPartitions || h.entry < 128 || h.entry > 4096 || h.entries >= v.size/bs {
		return nil
	}
	if entries := v.at(int64(h.entries*bs), int(h.count*h.entry)); entries == nil || crc32.ChecksumIEEE(entries) != h.sum {
		return nil
	}
	return &h
}

func (v *view) gptHeader(at, bs uint64) (gptHeader, bool) {
	b := v.at(int64(at), 92)
	if b == nil || string(b[:8]) != "EFI PART" {
		return gptHeader{}, false
	}
	le := binary.LittleEndian
	h := gptHeader{at: at, block: bs, guid: guid(b[56:72]), entries: le.Uint64(b[72:]), count: le.Uint32(b[80:]), entry: le.Uint32(b[84:]), sum: le.Uint32(b[88:]),
		other: le.Uint64(b[32:]), last: le.Uint64(b[48:])}
	if n := le.Uint32(b[12:]); n >= 92 && uint64(n) <= bs {
		if whole := slices.Clone(v.at(int64(at), int(n))); whole != nil {
			clear(whole[16:20]) // the CRC is calculated with its own field zero
			h.sound = crc32.ChecksumIEEE(whole) == le.Uint32(b[16:]) && le.Uint64(b[24:]) == at/bs
		}
	}
	return h, true
}

// gptTable reads the partitions that a header lists, sound or not: they may hold foreign data in both
// cases.
func (v *view) gptTable(h gptHeader) table {
	var t table
	whole := h.sound && h.count <= maxPartitions
	needs := max(h.at/h.block, h.other, h.last)
	var names []string
	if h.entry >= 128 && h.entry <= 4096 && h.entries < v.size/h.block {
		entries := v.at(int64(h.entries*h.block), int(min(h.count, maxPartitions)*h.entry))
		believed := entries != nil && crc32.ChecksumIEEE(entries) == h.sum
		whole = whole && believed
		if h.sound && believed {
			t.sum = h.sum
		}
		for i := 0; i+int(h.entry) <= len(entries); i += int(h.entry) {
			if p, used := gptEntry(entries[i:], h.block); used {
				p.number = i/int(h.entry) + 1
				if believed {
					needs = max(needs, binary.LittleEndian.Uint64(entries[i+40:]))
				}
				whole = whole && p.inside(v.size) && strings.HasPrefix(p.name, OursPrefix)
				t.partitions = append(t.partitions, p)
				names = append(names, p.name)
			}
		}
	}
	if h.sound && needs > v.size/h.block-1 {
		t.beyond = fmt.Sprintf("its partition table is that of a drive of %d blocks of %d bytes or more, and it has %d", needs+1, h.block, v.size/h.block)
	}
	t.ours = whole && len(t.partitions) > 0
	names = slices.DeleteFunc(names, func(s string) bool { return s == "" })
	t.signatures = []drivebay.Signature{{Format: "gpt", UUID: h.guid, Label: strings.Join(names, ", "), Offset: h.at}}
	return t
}

func gptEntry(e []byte, bs uint64) (extent, bool) {
	le := binary.LittleEndian
	if le.Uint64(e) == 0 && le.Uint64(e[8:]) == 0 {
		return extent{}, false
	}
	p := extent{name: utf16Text(e[56:128])}
	const most = 1 << 51 // blocks; prevents an overflow of the multiplication
	if first, last := le.Uint64(e[32:]), le.Uint64(e[40:]); first <= last && last < most {
		p.start, p.size = first*bs, (last-first+1)*bs
	}
	return p, true
}

// guid formats a GUID; its first three fields are little-endian.
func guid(b []byte) string {
	return uuid([]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]})
}

const (
	mbrEntries  = 446
	mbrSlots    = 4
	typeGPT     = 0xee
	mbrEntryLen = 16
)

var extendedTypes = map[byte]bool{0x05: true, 0x0f: true, 0x85: true}

type mbrEntry struct {
	status, kind byte
	start, count uint64 // in blocks
}

func mbr(b []byte) []mbrEntry {
	if b == nil || b[510] != 0x55 || b[511] != 0xaa {
		return nil
	}
	out := make([]mbrEntry, mbrSlots)
	for i := range out {
		e := b[mbrEntries+mbrEntryLen*i:][:mbrEntryLen]
		out[i] = mbrEntry{e[0], e[4], uint64(binary.LittleEndian.Uint32(e[8:])), uint64(binary.LittleEndian.Uint32(e[12:]))}
	}
	return out
}

func (e mbrEntry) used() bool { return e.kind != 0 && e.count != 0 }

// hasProtective reports whether an MBR has the entry by which the kernel looks for a GPT; other entries may be beside it.
func hasProtective(v *view) bool {
	return slices.ContainsFunc(mbr(v.at(0, 512)), func(e mbrEntry) bool { return e.kind == typeGPT })
}

// protective reports whether the MBR before a GPT has only the protective entry.
func protective(v *view) bool {
	used := slices.DeleteFunc(mbr(v.at(0, 512)), func(e mbrEntry) bool { return !e.used() })
	return len(used) == 1 && used[0].kind == typeGPT
}

// readMBR accepts 55AAh only with four plausible entries: boot sectors of filesystems end with it as
// well.
func readMBR(v *view, bs uint64) ([]extent, string) {
	entries := mbr(v.at(0, 512))
	if !slices.ContainsFunc(entries, mbrEntry.used) || slices.ContainsFunc(entries, func(e mbrEntry) bool { return e.status&0x7f != 0 }) {
		return nil, ""
	}
	var out []extent
	for i, e := range entries {
		switch {
		case e.kind == typeGPT:
			return nil, "PMBR"
		case e.used():
			out = append(out, extent{number: i + 1, start: e.start * bs, size: e.count * bs})
		}
	}
	for _, e := range entries {
		if e.used() && extendedTypes[e.kind] {
			out = append(out, logical(v, e.start, bs)...)
		}
	}
	return out, "dos"
}

// logical returns the partitions in the chain of extended boot records. The first entry of each record
// is a partition, relative to the record; the second is the next record, relative to the first one.
func logical(v *view, first, bs uint64) []extent {
	var out []extent
	for at, n := first, 0; n < maxPartitions; n++ {
		e := mbr(v.at(int64(at*bs), 512))
		if e == nil {
			break
		}
		if e[0].used() {
			out = append(out, extent{number: mbrSlots + 1 + n, start: (at + e[0].start) * bs, size: e[0].count * bs})
		}
		if !e[1].used() || e[1].start == 0 {
			break
		}
		at = first + e[1].start
	}
	return out
}
