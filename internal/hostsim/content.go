package hostsim

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
)

// content is what is written on a drive: zeros, but for some pieces.
type content struct {
	kind   string
	udev   string
	pieces []piece
}

type piece struct {
	at   uint64
	data []byte
}

// read copies what is at an offset.
func (c *content) read(p []byte, off uint64) {
	clear(p)
	for _, x := range c.pieces {
		end := x.at + uint64(len(x.data))
		if x.at < off+uint64(len(p)) && off < end {
			if x.at >= off {
				copy(p[x.at-off:], x.data)
			} else {
				copy(p, x.data[off-x.at:])
			}
		}
	}
}

// contents are the kinds of content, as few bytes each as a reader of signatures
// must see, and what udev's rules find (blkid(8)).
var contents = []struct {
	kind   string
	udev   string
	pieces func(size, block uint64) []piece
}{
	{"blank", "", func(uint64, uint64) []piece { return nil }},
	{"gpt", "E:ID_PART_TABLE_TYPE=gpt", gpt},
	{"mbr", "E:ID_PART_TABLE_TYPE=dos", func(size, _ uint64) []piece { return []piece{{0, mbr(0x83, 2048, size/512-2048)}} }},
	{"ext4", "E:ID_FS_TYPE=ext4", func(size, _ uint64) []piece { return []piece{{1024, ext4(size)}} }},
	{"xfs", "E:ID_FS_TYPE=xfs", func(size, _ uint64) []piece { return []piece{{0, xfs(size)}} }},
	{"btrfs", "E:ID_FS_TYPE=btrfs", func(uint64, uint64) []piece { return []piece{{0x10040, []byte("_BHRfS_M")}} }},
	{"lvm", "E:ID_FS_TYPE=LVM2_member", func(uint64, uint64) []piece { return []piece{{512, lvm()}} }},
	{"luks", "E:ID_FS_TYPE=crypto_LUKS", func(uint64, uint64) []piece {
		return []piece{{0, append([]byte("LUKS\xba\xbe\x00\x02"), make([]byte, 160)...)}, {168, []byte(someUUID)}}
	}},
	{"md", "E:ID_FS_TYPE=linux_raid_member", func(uint64, uint64) []piece { return []piece{{4096, mdSuper()}} }},
	{"swap", "E:ID_FS_TYPE=swap", func(uint64, uint64) []piece { return []piece{{4086, []byte("SWAPSPACE2")}} }},
	{"bluestore", "E:ID_FS_TYPE=ceph_bluestore", func(uint64, uint64) []piece {
		return []piece{{0, []byte("bluestore block device\n" + someUUID + "\n")}}
	}},
}

const someUUID = "6d1e5a3c-9d2f-4c55-9a0e-3b1f5c7d9e21"

func newContent(kind string, size, block uint64) (content, error) {
	var known []string
	for _, c := range contents {
		if c.kind == kind {
			return content{kind, c.udev, c.pieces(size, block)}, nil
		}
		known = append(known, c.kind)
	}
	return content{}, fmt.Errorf("content %q: want one of %s", kind, strings.Join(known, ", "))
}

// mbr is a boot record with one entry.
func mbr(kind byte, start, sectors uint64) []byte {
	b := make([]byte, 512)
	e := b[446:]
	e[4] = kind
	le.PutUint32(e[8:], uint32(start))
	le.PutUint32(e[12:], uint32(min(sectors, 0xFFFFFFFF)))
	b[510], b[511] = 0x55, 0xAA
	return b
}

// gpt is a table with one partition over the whole drive and its copy at the end
// (UEFI 2.10, 5.3).
func gpt(size, block uint64) []piece {
	const entries, entry = 128, 128
	table := make([]byte, entries*entry)
	last := size/block - 1
	long := uint64(len(table)) / block
	first, end := 2+long, last-long-1
	copy(table, []byte{0xAF, 0x3D, 0xC6, 0x0F, 0x83, 0x84, 0x72, 0x47, 0x8E, 0x79, 0x3D, 0x69, 0xD8, 0x47, 0x7D, 0xE4}) // Linux filesystem data
	copy(table[16:], []byte("simulated part 1"))
	le.PutUint64(table[32:], first)
	le.PutUint64(table[40:], end)
	for i, r := range "data" {
		le.PutUint16(table[56+2*i:], uint16(r))
	}
	header := func(here, other, entriesAt uint64) []byte {
		h := make([]byte, 92)
		copy(h, "EFI PART")
		le.PutUint32(h[8:], 0x00010000)
		le.PutUint32(h[12:], uint32(len(h)))
		le.PutUint64(h[24:], here)
		le.PutUint64(h[32:], other)
		le.PutUint64(h[40:], first)
		le.PutUint64(h[48:], end)
		copy(h[56:], "simulated disk 1")
		le.PutUint64(h[72:], entriesAt)
		le.PutUint32(h[80:], entries)
		le.PutUint32(h[84:], entry)
		le.PutUint32(h[88:], crc32.ChecksumIEEE(table))
		le.PutUint32(h[16:], crc32.ChecksumIEEE(h))
		return h
	}
	return []piece{
		{0, mbr(0xEE, 1, size/512-1)}, {block, header(1, last, 2)}, {2 * block, table},
		{(last - long) * block, slices.Clone(table)}, {last * block, header(last, 1, last-long)},
	}
}

// ext4 is a superblock (Documentation/filesystems/ext4/super.rst).
func ext4(size uint64) []byte {
	b := make([]byte, 1024)
	le.PutUint32(b, 1<<20)                               // inodes
	le.PutUint32(b[4:], uint32(min(size/4096, 1<<32-1))) // blocks
	le.PutUint32(b[0x18:], 2)                            // of 4 KiB
	le.PutUint32(b[0x20:], 32768)
	le.PutUint32(b[0x28:], 8192)
	le.PutUint16(b[0x38:], 0xEF53)
	le.PutUint16(b[0x3A:], 1) // clean
	le.PutUint32(b[0x4C:], 1)
	le.PutUint16(b[0x58:], 256)
	le.PutUint32(b[0x5C:], 0x3C)  // journal, extended attributes, resize, dir index
	le.PutUint32(b[0x60:], 0x2C2) // file type, extents, 64 bits, flexible groups
	le.PutUint32(b[0x64:], 0x46B)
	copy(b[0x68:], "simulated ext4fs")
	copy(b[0x78:], "data")
	return b
}

// xfs is the beginning of a superblock (fs/xfs/libxfs/xfs_format.h).
func xfs(size uint64) []byte {
	b := make([]byte, 512)
	copy(b, "XFSB")
	be.PutUint32(b[4:], 4096)
	be.PutUint64(b[8:], size/4096)
	copy(b[32:], "simulated xfs fs")
	be.PutUint16(b[100:], 0xB4A5)
	be.PutUint16(b[102:], 512)
	return b
}

// lvm is a label of a physical volume (lvm2, lib/label/label.h) in sector 1.
func lvm() []byte {
	b := make([]byte, 512)
	copy(b, "LABELONE")
	le.PutUint64(b[8:], 1)
	le.PutUint32(b[20:], 32)
	copy(b[24:], "LVM2 001")
	copy(b[32:], "B935T0NeltK8HT493KKNfmMH3x0IrxOV")
	return b
}

// mdSuper is a superblock of metadata 1.2 (include/uapi/linux/raid/md_p.h).
func mdSuper() []byte {
	b := make([]byte, 256)
	le.PutUint32(b, 0xA92B4EFC)
	le.PutUint32(b[4:], 1)
	copy(b[16:], "simulated md arr")
	copy(b[32:], "any:0")
	le.PutUint32(b[72:], 1)
	le.PutUint32(b[92:], 2)
	return b
}
