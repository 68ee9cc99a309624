package content

import (
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// Bytes holds the bytes written on a drive.
type Bytes struct{ Sparse }

type piece struct {
	At   uint64
	Data []byte
}

func (c *Bytes) Put(pieces []piece) {
	for _, x := range pieces {
		c.Write(x.Data, x.At)
	}
}

// Formats lists the kinds of content: as few bytes as a reader of signatures needs, and what udev's
// rules find (blkid(8)).
var Formats = []struct {
	kind   string
	udev   string
	Marks  []piece // any one of them is proof
	pieces func(size, block uint64) []piece
}{
	{"blank", "", nil, func(uint64, uint64) []piece { return nil }},
	{"ext4", "E:ID_FS_TYPE=ext4", mark(0x438, "\x53\xef"), func(size, _ uint64) []piece { return []piece{{1024, writeExt4(someFS(size, "simulated ext4fs"))}} }},
	{"xfs", "E:ID_FS_TYPE=xfs", mark(0, "XFSB"), func(size, _ uint64) []piece { return []piece{{0, writeXFS(someFS(size, "simulated xfs fs"))}} }},
	{"btrfs", "E:ID_FS_TYPE=btrfs", mark(0x10040, "_BHRfS_M"), func(size, _ uint64) []piece { return []piece{{0x10000, writeBtrfs(someFS(size, "simulated btrfs "))}} }},
	{"lvm", "E:ID_FS_TYPE=LVM2_member", mark(512, "LABELONE"), func(uint64, uint64) []piece { return []piece{{512, LVMLabel("B935T0NeltK8HT493KKNfmMH3x0IrxOV")}} }},
	{"luks", "E:ID_FS_TYPE=crypto_LUKS", mark(0, "LUKS\xba\xbe"), func(uint64, uint64) []piece {
		return []piece{{0, append([]byte("LUKS\xba\xbe\x00\x02"), make([]byte, 160)...)}, {168, []byte(someUUID)}}
	}},
	{"md", "E:ID_FS_TYPE=linux_raid_member", mark(4096, "\xfc\x4e\x2b\xa9"), func(uint64, uint64) []piece { return []piece{{4096, mdSuper()}} }},
	{"swap", "E:ID_FS_TYPE=swap", mark(4086, "SWAPSPACE2"), func(uint64, uint64) []piece { return []piece{{4086, []byte("SWAPSPACE2")}} }},
	{"bluestore", "E:ID_FS_TYPE=ceph_bluestore", mark(0, "bluestore block device"), func(uint64, uint64) []piece {
		return []piece{{0, []byte("bluestore block device\n" + someUUID + "\n")}}
	}},
	{"gpt", "E:ID_PART_TABLE_TYPE=gpt", append(mark(512, "EFI PART"), mark(4096, "EFI PART")...), func(size, block uint64) []piece { return GPT(size, block, dataTable(size, block)...) }},
	{"mbr", "E:ID_PART_TABLE_TYPE=dos", mark(510, "\x55\xaa"), func(size, _ uint64) []piece { return []piece{{0, mbr(0x83, 2048, size/512-2048)}} }},
}

func mark(at uint64, magic string) []piece { return []piece{{at, []byte(magic)}} }

// Recognize returns the kind of content that the bytes show, and udev's line for it. Both are empty
// without a known mark.
func Recognize(read func([]byte, uint64)) (kind, udev string) {
	for _, c := range Formats {
		for _, x := range c.Marks {
			have := make([]byte, len(x.Data))
			if read(have, x.At); string(have) == string(x.Data) {
				return c.kind, c.udev
			}
		}
	}
	return "", ""
}

// UdevFound returns the lines of udev's database for the bytes, as blkid(8) finds them.
func UdevFound(read func([]byte, uint64)) []string {
	_, found := Recognize(read)
	if found == "" {
		return nil
	}
	lines := []string{found}
	if s, ok := ReadSuper(read); ok && found == "E:ID_FS_TYPE="+s.Kind {
		lines = append(lines, "S:disk/by-uuid/"+UUIDText(s.UUID), "E:ID_FS_UUID="+UUIDText(s.UUID), "E:ID_FS_USAGE=filesystem")
		if s.Label != "" {
			lines = append(lines, "E:ID_FS_LABEL="+sysfs.Word(s.Label))
		}
	}
	return lines
}

// Sort returns the kind of content on a drive.
func (c *Bytes) Sort() string {
	kind, _ := Recognize(c.Read)
	switch {
	case kind != "":
		return kind
	case len(c.pages) == 0:
		return "blank"
	}
	return "data"
}

// someFS returns the filesystem of a drive that has one from the start.
func someFS(size uint64, id string) *Super {
	return &Super{UUID: [16]byte([]byte(id)), Label: "data", Size: size &^ 4095}
}

const someUUID = "6d1e5a3c-9d2f-4c55-9a0e-3b1f5c7d9e21"

func New(kind string, size, block uint64) (Bytes, error) {
	var known []string
	for _, c := range Formats {
		if c.kind == kind {
			var out Bytes
			out.Put(c.pieces(size, block))
			return out, nil
		}
		known = append(known, c.kind)
	}
	return Bytes{}, fmt.Errorf("content %q: want one of %s", kind, strings.Join(known, ", "))
}

// mbr returns a boot record with one entry.
func mbr(kind byte, start, sectors uint64) []byte {
	b := make([]byte, 512)
	e := b[446:]
	e[4] = kind
	le.PutUint32(e[8:], uint32(start))
	le.PutUint32(e[12:], uint32(min(sectors, 0xFFFFFFFF)))
	b[510], b[511] = 0x55, 0xAA
	return b
}

// LVMLabel returns the label of a physical volume in sector 1 (lvm2, lib/format_text/layout.h):
// label_header with its checksum, then pv_header.
func LVMLabel(id string) []byte {
	b := make([]byte, 512)
	copy(b, "LABELONE")
	le.PutUint64(b[8:], 1)
	le.PutUint32(b[20:], 32)
	copy(b[24:], "LVM2 001")
	copy(b[32:], strings.ReplaceAll(id, "-", ""))
	le.PutUint32(b[16:], LVMCRC(b[20:]))
	return b
}

// LVMCRC is the checksum of LVM (lvm2, lib/misc/crc.c).
func LVMCRC(b []byte) uint32 {
	return ^crc32.Update(^uint32(0xF597A6CF), crc32.IEEETable, b)
}

// mdSuper returns a superblock of metadata 1.2 (include/uapi/linux/raid/md_p.h).
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
