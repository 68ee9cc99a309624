package content

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/drivebay/drivebay"
)

// finders detect the formats whose place depends on the size of the device, or whose signature is
// anywhere in a range.
var finders = []func(*view) (drivebay.Signature, bool){mdAtEnd, luksBackup, zfs}

// signaturesOf returns every format on a view, each once. where is the partition, "" for the drive.
func signaturesOf(v *view, where string) []drivebay.Signature {
	var out []drivebay.Signature
	add := func(s drivebay.Signature) {
		s.Partition = where
		s.Offset += v.base
		if !slices.ContainsFunc(out, func(have drivebay.Signature) bool { return have.Format == s.Format }) {
			out = append(out, s)
		}
	}
	for _, m := range marks {
		if v.has(m.at, m.magic) && (m.check == nil || m.check(v)) {
			add(drivebay.Signature{Format: m.format, Offset: v.offset(m.at), Label: m.label.of(v), UUID: m.id.of(v)})
		}
	}
	for _, find := range finders {
		if s, ok := find(v); ok {
			add(s)
		}
	}
	return out
}

func (v *view) has(off int64, magic string) bool { return string(v.at(off, len(magic))) == magic }

func (v *view) offset(off int64) uint64 {
	if off < 0 {
		return v.size - uint64(-off)
	}
	return uint64(off)
}

func (f field) of(v *view) string {
	if f.as == nil {
		return ""
	}
	b := v.at(f.at, f.n)
	if b == nil {
		return ""
	}
	return f.as(b)
}

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return clean(string(b))
}

func utf16Text(b []byte) string {
	var u []uint16
	for ; len(b) >= 2; b = b[2:] {
		c := binary.LittleEndian.Uint16(b)
		if c == 0 {
			break
		}
		u = append(u, c)
	}
	return clean(string(utf16.Decode(u)))
}

func uuid(b []byte) string {
	if bytes.Count(b, []byte{0}) == len(b) {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// lvmID formats the UUID of a physical volume as LVM does, in seven groups.
func lvmID(b []byte) string {
	s := text(b)
	if len(s) != 32 {
		return s
	}
	return strings.Join([]string{s[:6], s[6:10], s[10:14], s[14:18], s[18:22], s[22:26], s[26:]}, "-")
}

func fatID(b []byte) string { return fmt.Sprintf("%02X%02X-%02X%02X", b[3], b[2], b[1], b[0]) }

func fatLabel(b []byte) string {
	if s := text(b); s != "NO NAME" {
		return s
	}
	return ""
}

func reversedHex(b []byte) string { return fmt.Sprintf("%016X", binary.LittleEndian.Uint64(b)) }

func xor16(b []byte) (sum uint16) {
	for i := 0; i+1 < len(b); i += 2 {
		sum ^= binary.BigEndian.Uint16(b[i:])
	}
	return sum
}

func hasLabelOne(at int64) func(*view) bool {
	return func(v *view) bool { return v.has(at, "LABELONE") }
}

// isExt accepts the two bytes of ext only with a block size and an inode count that a filesystem can
// have, and distinguishes the generations by their features
// (Documentation/filesystems/ext4/super.rst).
func isExt(name string) func(*view) bool {
	return func(v *view) bool {
		sb := v.at(0x400, 0x100)
		if sb == nil {
			return false
		}
		le := binary.LittleEndian
		compat, incompat, roCompat := le.Uint32(sb[0x5c:]), le.Uint32(sb[0x60:]), le.Uint32(sb[0x64:])
		const (
			journal, journalDevice       = 0x4, 0x8
			incompatOfExt3, roCompatExt3 = 0x2 | 0x4 | 0x10, 0x1 | 0x2 | 0x4
		)
		switch {
		case incompat&journalDevice != 0:
			return name == "jbd"
		case le.Uint32(sb) == 0 || le.Uint32(sb[0x18:]) > 6:
			return false
		case incompat&^incompatOfExt3 != 0 || roCompat&^roCompatExt3 != 0:
			return name == "ext4"
		case compat&journal != 0:
			return name == "ext3"
		}
		return name == "ext2"
	}
}

// isMinix also requires two bitmaps and a valid zone size; maps is the offset of the sizes of the
// bitmaps (include/uapi/linux/minix_fs.h).
func isMinix(maps int) func(*view) bool {
	return func(v *view) bool {
		sb := v.at(0x400, 32)
		if sb == nil {
			return false
		}
		le := binary.LittleEndian
		return le.Uint16(sb) > 0 && le.Uint16(sb[maps:]) > 0 && le.Uint16(sb[maps+2:]) > 0 && le.Uint16(sb[maps+6:]) <= 10
	}
}

// mdAtEnd finds md metadata 1.0 (4 KiB aligned, 8 to 12 KiB before the end) and
// 0.90 (64 KiB aligned, 64 to 128 KiB before it); drivers/md/md.c, md_p.h.
func mdAtEnd(v *view) (drivebay.Signature, bool) {
	const magic = "\xfc\x4e\x2b\xa9"
	if v.size < 16*512 {
		return drivebay.Signature{}, false
	}
	at := int64((v.size/512-16)&^7) * 512
	if b := v.at(at, 64); b != nil && string(b[:4]) == magic && binary.LittleEndian.Uint32(b[4:]) == 1 {
		return drivebay.Signature{Format: "linux_raid_member", Offset: uint64(at), UUID: uuid(b[16:32]), Label: text(b[32:64])}, true
	}
	at = int64(v.size&^0xffff) - 0x10000
	if b := v.at(max(at, 0), 64); at >= 0 && b != nil && string(b[:4]) == magic {
		id := make([]byte, 0, 16)
		for _, word := range []int{20, 52, 56, 60} {
			id = binary.BigEndian.AppendUint32(id, binary.LittleEndian.Uint32(b[word:]))
		}
		return drivebay.Signature{Format: "linux_raid_member", Offset: uint64(at), UUID: uuid(id)}, true
	}
	return drivebay.Signature{}, false
}

// luksBackup finds the second header of LUKS2, which begins where the first one ends: at a power of
// two from 16 KiB to 4 MiB (LUKS2 On-Disk Format, 2.2).
func luksBackup(v *view) (drivebay.Signature, bool) {
	for at := int64(16 << 10); at <= 4<<20; at *= 2 {
		if v.has(at, "SKUL\xba\xbe") {
			return drivebay.Signature{Format: "crypto_LUKS", Offset: uint64(at), Label: text(v.at(at+24, 48)), UUID: text(v.at(at+168, 40))}, true
		}
	}
	return drivebay.Signature{}, false
}

// zfs finds uberblocks: four labels of 256 KiB, two at each end of the device, with a ring of
// uberblocks in the upper half of each (ZFS On-Disk Specification, 1.2). It searches only what has
// been read already.
func zfs(v *view) (drivebay.Signature, bool) {
	const label, ring, step = 256 << 10, 128 << 10, 1 << 10
	end := int64(v.size &^ (label - 1))
	for _, base := range []int64{0, label, end - 2*label, end - label} {
		for off := base + ring; base >= 0 && off < base+label; off += step {
			inTail := off >= int64(v.size)-int64(len(v.tail))
			if off+8 > int64(len(v.head)) && !inTail {
				continue
			}
			if v.has(off, "\x0c\xb1\xba\x00\x00\x00\x00\x00") || v.has(off, "\x00\x00\x00\x00\x00\xba\xb1\x0c") {
				return drivebay.Signature{Format: "zfs_member", Offset: uint64(off)}, true
			}
		}
	}
	return drivebay.Signature{}, false
}
