package content

import (
	"encoding/binary"
	"slices"

	"github.com/drivebay/drivebay"
)

// A filesystem whose beginning was overwritten still has its data, and copies of its superblock far
// from both ends. They are checked before a drive is called blank: about forty reads of a kilobyte for
// each detection.

// backups finds the copies of superblocks in the middle of a drive or partition.
func backups(v *view) []drivebay.Signature {
	return slices.Concat(extBackups(v), xfsBackups(v), btrfsBackups(v))
}

// extBackups finds those of ext2, ext3 and ext4: with sparse_super the groups 0, 1 and the powers of
// 3, 5 and 7 begin with a copy, which holds its group and block size
// (Documentation/filesystems/ext4/blockgroup.rst, super.rst). A group has eight blocks for each byte
// of a block, as its bitmap is one block; blocks of 1 KiB begin at 1.
func extBackups(v *view) (out []drivebay.Signature) {
	for log := uint32(0); log <= 6; log++ {
		block := uint64(1024) << log
		for _, group := range []uint64{1, 3, 5, 7, 9, 25, 27, 49} {
			at := group * 8 * block * block
			if block == 1024 {
				at += block
			}
			sb := v.middle(at, 1024)
			le := binary.LittleEndian
			if sb != nil && string(sb[0x38:0x3a]) == "\x53\xef" && le.Uint32(sb[0x18:]) == log && uint64(le.Uint16(sb[0x5a:])) == group {
				out = append(out, drivebay.Signature{Format: "ext4", Label: text(sb[0x78:0x88]), UUID: uuid(sb[0x68:0x78]), Offset: at})
			}
		}
	}
	return out
}

// xfsBackups finds the headers of allocation groups. mkfs.xfs makes four groups on a device up to 4
// TiB, groups of 1 TiB beyond, and 32 on striped devices (xfsprogs, libxfs/topology.c,
// calc_default_ag_geometry). A grown filesystem keeps the size of its groups.
func xfsBackups(v *view) (out []drivebay.Signature) {
	const block = 4096
	for _, n := range []uint64{4, 2, 8, 16, 32} {
		group := (v.size/block + n - 1) / n * block
		for _, at := range []uint64{group, v.size / block / n * block, 1 << 40} {
			if sb := v.middle(at, 512); sb != nil && string(sb[:4]) == "XFSB" {
				out = append(out, drivebay.Signature{Format: "xfs", Label: text(sb[108:120]), UUID: uuid(sb[32:48]), Offset: at})
			}
		}
	}
	return out
}

// btrfsBackups finds the second and the third superblock (fs/btrfs/disk-io.h, btrfs_sb_offset).
func btrfsBackups(v *view) (out []drivebay.Signature) {
	for _, at := range []uint64{64 << 20, 256 << 30} {
		if sb := v.middle(at, 1024); sb != nil && string(sb[0x40:0x48]) == "_BHRfS_M" && binary.LittleEndian.Uint64(sb[0x30:]) == at {
			out = append(out, drivebay.Signature{Format: "btrfs", Label: text(sb[0x12b:0x22b]), UUID: uuid(sb[0x20:0x30]), Offset: at})
		}
	}
	return out
}

// middle returns n bytes at an offset, nil if the view does not reach that far.
func (v *view) middle(at, n uint64) []byte {
	if at >= v.size || n > v.size-at {
		return nil
	}
	return v.at(int64(at), int(n))
}
