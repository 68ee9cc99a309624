package content

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/drivebay/drivebay"
)

// mark is the sign that one format leaves: bytes at an offset, from the end where
// it is negative. label and uuid say where the format keeps them; uuidLen 16 is
// binary, more is text.
type mark struct {
	format   string
	at       int64
	magic    string
	label    int64
	labelLen int
	uuid     int64
	uuidLen  int
	check    func(v view, at int64) bool // a magic that is too short to be believed alone
}

// marks are the formats by the names that blkid uses. The offsets are each
// format's own: its on-disk documentation or header is the source.
var marks = []mark{
	{format: "ext", at: 0x438, magic: "\x53\xef", label: 0x478, labelLen: 16, uuid: 0x468, uuidLen: 16, check: plausibleExt},
	{format: "xfs", at: 0, magic: "XFSB", label: 108, labelLen: 12, uuid: 32, uuidLen: 16},
	{format: "xfs_external_log", at: 0, magic: "\xfe\xed\xba\xbe", check: func(v view, at int64) bool { return zeroAt(v, 512, 0) }},
	{format: "btrfs", at: 0x10040, magic: "_BHRfS_M", label: 0x1012b, labelLen: 256, uuid: 0x10020, uuidLen: 16},
	{format: "swap", at: 4086, magic: "SWAPSPACE2", label: 1052, labelLen: 16, uuid: 1036, uuidLen: 16},
	{format: "swap", at: 4086, magic: "SWAP-SPACE"},
	{format: "swap", at: 65526, magic: "SWAPSPACE2"},
	{format: "LVM2_member", at: 0x000, magic: "LABELONE", uuid: 0x020, uuidLen: 32, check: lvmLabel},
	{format: "LVM2_member", at: 0x200, magic: "LABELONE", uuid: 0x220, uuidLen: 32, check: lvmLabel},
	{format: "LVM2_member", at: 0x400, magic: "LABELONE", uuid: 0x420, uuidLen: 32, check: lvmLabel},
	{format: "LVM2_member", at: 0x600, magic: "LABELONE", uuid: 0x620, uuidLen: 32, check: lvmLabel},
	{format: "LVM1_member", at: 0, magic: "HM\x01\x00"},
	{format: "crypto_LUKS", at: 0, magic: "LUKS\xba\xbe", uuid: 168, uuidLen: 40},
	{format: "crypto_LUKS", at: 0x4000, magic: "SKUL\xba\xbe", uuid: 0x4000 + 168, uuidLen: 40},
	{format: "linux_raid_member", at: 0, magic: "\xfc\x4e\x2b\xa9", label: 32, labelLen: 32, uuid: 16, uuidLen: 16},
	{format: "linux_raid_member", at: 4096, magic: "\xfc\x4e\x2b\xa9", label: 4096 + 32, labelLen: 32, uuid: 4096 + 16, uuidLen: 16},
	{format: "bcache", at: 4096 + 24, magic: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"},
	{format: "bcachefs", at: 4096 + 24, magic: "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"},
	{format: "ceph_bluestore", at: 0, magic: "bluestore block device"},
	{format: "stratis", at: 512, magic: "!Stra0tis\x86\xff\x02^\x41rh"},
	{format: "stratis", at: 9 * 512, magic: "!Stra0tis\x86\xff\x02^\x41rh"},
	{format: "vdo", at: 0, magic: "dmvdo001"},
	{format: "drbd", at: -4096 + 0x3c, magic: "\x83\x74\x02\x6b"},
	{format: "drbd", at: -4096 + 0x3c, magic: "\x83\x74\x02\x6c"},
	{format: "drbd", at: -4096 + 0x3c, magic: "\x83\x74\x02\x6d"},
	{format: "ddf_raid_member", at: -512, magic: "\xde\x11\xde\x11"},
	{format: "ddf_raid_member", at: -512, magic: "\x11\xde\x11\xde"},
	{format: "isw_raid_member", at: -1024, magic: "Intel Raid ISM Cfg Sig. "},
	{format: "lsi_mega_raid_member", at: -512, magic: "$XIDE$"},
	{format: "adaptec_raid_member", at: -512, magic: "DPTM"},
	{format: "promise_fasttrack_raid_member", at: -63 * 512, magic: "Promise Technology, Inc."},
	{format: "nvidia_raid_member", at: -1024, magic: "NVIDIA  "},
	{format: "ntfs", at: 3, magic: "NTFS    "},
	{format: "exfat", at: 3, magic: "EXFAT   "},
	{format: "vfat", at: 82, magic: "FAT32   ", label: 71, labelLen: 11},
	{format: "vfat", at: 54, magic: "FAT16   ", label: 43, labelLen: 11},
	{format: "vfat", at: 54, magic: "FAT12   ", label: 43, labelLen: 11},
	{format: "BitLocker", at: 3, magic: "-FVE-FS-"},
	{format: "ReFS", at: 3, magic: "ReFS\x00"},
	{format: "iso9660", at: 0x8001, magic: "CD001", label: 0x8028, labelLen: 32},
	{format: "udf", at: 0x8001, magic: "BEA01"},
	{format: "udf", at: 0x8001, magic: "NSR02"},
	{format: "squashfs", at: 0, magic: "hsqs"},
	{format: "erofs", at: 1024, magic: "\xe2\xe1\xf5\xe0"},
	{format: "f2fs", at: 1024, magic: "\x10\x20\xf5\xf2", uuid: 1024 + 108, uuidLen: 16},
	{format: "jfs", at: 0x8000, magic: "JFS1", uuid: 0x8088, uuidLen: 16},
	{format: "reiserfs", at: 0x10034, magic: "ReIsErFs"},
	{format: "reiserfs", at: 0x10034, magic: "ReIsEr2Fs"},
	{format: "nilfs2", at: 0x406, magic: "\x34\x34", check: func(v view, at int64) bool { return !zeroAt(v, 0x400, 4) }},
	{format: "hfsplus", at: 1024, magic: "H+\x00\x04"},
	{format: "apfs", at: 32, magic: "NXSB"},
	{format: "VMFS_volume_member", at: 1 << 20, magic: "\x0d\xd0\x01\xc0"},
	{format: "gfs2", at: 0x10000, magic: "\x01\x16\x19\x70"},
	{format: "ocfs2", at: 0x2000, magic: "OCFSV2", uuid: 0x2000 + 0x3b0, uuidLen: 16},
	{format: "oracleasm", at: 32, magic: "ORCLDISK"},
	{format: "minix", at: 0x410, magic: "\x8f\x13", check: plausibleMinix},
	{format: "minix", at: 0x418, magic: "\x5a\x4d", check: plausibleMinix},
	{format: "cramfs", at: 0, magic: "\x45\x3d\xcd\x28"},
	{format: "romfs", at: 0, magic: "-rom1fs-"},
	{format: "sun", at: 508, magic: "\xda\xbe", check: func(v view, at int64) bool { return xor16(v.at(0, 512)) == 0 }},
	{format: "mac", at: 512, magic: "PM\x00\x00"},
	{format: "atari_or_amiga", at: 0, magic: "RDSK"},
	{format: "aix", at: 0, magic: "\xc9\xc2\xd4\xc1"},
}

// signaturesOf finds every mark on a view. where is the partition, "" for the drive.
func signaturesOf(v view, where string) []drivebay.Signature {
	var out []drivebay.Signature
	add := func(s drivebay.Signature) {
		s.Partition = where
		for _, have := range out {
			if have.Format == s.Format {
				return
			}
		}
		out = append(out, s)
	}
	for _, m := range marks {
		if !bytes.Equal(v.at(m.at, len(m.magic)), []byte(m.magic)) || (m.check != nil && !m.check(v, m.at)) {
			continue
		}
		off := m.at
		if off < 0 {
			off += int64(v.size)
		}
		s := drivebay.Signature{Format: m.format, Offset: v.base + uint64(off), Label: text(v.at(m.label, m.labelLen)), UUID: uuid(v.at(m.uuid, m.uuidLen))}
		if m.format == "ext" {
			s.Format = extName(v)
		}
		add(s)
	}
	for _, find := range []func(view) (drivebay.Signature, bool){mdAtEnd, zfs} {
		if s, ok := find(v); ok {
			add(s)
		}
	}
	return out
}

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
}

func uuid(b []byte) string {
	if len(b) != 16 {
		return text(b)
	}
	if bytes.Count(b, []byte{0}) == 16 {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func zeroAt(v view, off int64, n int) bool {
	for _, b := range v.at(off, n) {
		if b != 0 {
			return false
		}
	}
	return true
}

func xor16(b []byte) (sum uint16) {
	for i := 0; i+1 < len(b); i += 2 {
		sum ^= binary.BigEndian.Uint16(b[i:])
	}
	return sum
}

// plausibleExt believes the two magic bytes of ext only beside a block size and
// an inode count that a filesystem can have (Documentation/filesystems/ext4).
func plausibleExt(v view, _ int64) bool {
	sb := v.at(0x400, 0x100)
	return sb != nil && binary.LittleEndian.Uint32(sb[0x18:]) <= 6 && binary.LittleEndian.Uint32(sb) > 0
}

// extName tells ext2, ext3 and ext4 apart by their features: a journal, and
// anything that ext3 does not know.
func extName(v view) string {
	sb := v.at(0x400, 0x100)
	compat, incompat, roCompat := binary.LittleEndian.Uint32(sb[0x5c:]), binary.LittleEndian.Uint32(sb[0x60:]), binary.LittleEndian.Uint32(sb[0x64:])
	const journal, ext3Incompat, ext3RoCompat = 0x4, 0x2 | 0x4 | 0x10, 0x1 | 0x2 | 0x4
	switch {
	case incompat == 0x8:
		return "jbd"
	case incompat&^ext3Incompat != 0 || roCompat&^ext3RoCompat != 0:
		return "ext4"
	case compat&journal != 0:
		return "ext3"
	}
	return "ext2"
}

func plausibleMinix(v view, _ int64) bool {
	sb := v.at(0x400, 32)
	return binary.LittleEndian.Uint16(sb) > 0 && binary.LittleEndian.Uint16(sb[4:]) > 0
}

func lvmLabel(v view, at int64) bool { return bytes.Equal(v.at(at+24, 8), []byte("LVM2 001")) }

// mdAtEnd finds md metadata 1.0 (8 KiB aligned, at least 8 KiB from the end) and
// 0.90 (64 KiB aligned, in the last 64 to 128 KiB); drivers/md/md.c, md_p.h.
func mdAtEnd(v view) (drivebay.Signature, bool) {
	for _, at := range []int64{int64((v.size/512-16)&^7) * 512, int64(v.size&^0xffff) - 0x10000} {
		off := at - int64(v.size)
		if at < 0 || off >= 0 {
			continue
		}
		b := v.at(off, 64)
		if b != nil && binary.LittleEndian.Uint32(b) == 0xa92b4efc {
			return drivebay.Signature{Format: "linux_raid_member", Offset: v.base + uint64(at)}, true
		}
	}
	return drivebay.Signature{}, false
}

// zfs looks for uberblocks in the first and the last labels: four labels of
// 256 KiB, two at each end, with an array of uberblocks in the upper half of each.
func zfs(v view) (drivebay.Signature, bool) {
	const label, ring = 256 << 10, 128 << 10
	magic := [][]byte{{0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0xba, 0xb1, 0x0c}}
	for _, base := range []int64{0, label, -2 * label, -label} {
		for off := int64(ring); off < label; off += 1024 {
			b := v.at(base+off, 8)
			if base < 0 && base+off >= 0 {
				break
			}
			if bytes.Equal(b, magic[0]) || bytes.Equal(b, magic[1]) {
				at := base + off
				if base < 0 {
					at += int64(v.size)
				}
				return drivebay.Signature{Format: "zfs_member", Offset: v.base + uint64(at)}, true
			}
		}
	}
	return drivebay.Signature{}, false
}

func utf16Text(b []byte) string {
	var u []uint16
	for i := 0; i+1 < len(b); i += 2 {
		c := binary.LittleEndian.Uint16(b[i:])
		if c == 0 {
			break
		}
		u = append(u, c)
	}
	return string(utf16.Decode(u))
}
