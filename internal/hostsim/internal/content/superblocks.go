package content

// The superblocks, with the fields that the kernel and blkid(8) read.

// writeExt4 encodes Documentation/filesystems/ext4/super.rst.
func writeExt4(s *Super) []byte {
	b := make([]byte, 1024)
	blocks := s.Size / 4096
	free := s.Usage().Free / 4096
	le.PutUint32(b, uint32(s.Size/16384)) // inodes
	le.PutUint32(b[4:], uint32(blocks))
	le.PutUint32(b[0x8:], uint32(blocks/20)) // reserved
	le.PutUint32(b[0xC:], uint32(free))
	le.PutUint32(b[0x10:], uint32(s.Usage().FreeInodes))
	le.PutUint32(b[0x18:], 2) // blocks of 4 KiB
	le.PutUint32(b[0x1C:], 2)
	le.PutUint32(b[0x20:], 32768)
	le.PutUint32(b[0x24:], 32768)
	le.PutUint32(b[0x28:], 8192)
	le.PutUint16(b[0x36:], 0xFFFF)
	le.PutUint16(b[0x38:], 0xEF53)
	le.PutUint16(b[0x3A:], 1) // clean
	if s.Errors > 0 || s.Damaged {
		le.PutUint16(b[0x3A:], 3) // with errors
	}
	le.PutUint32(b[0x4C:], 1)
	le.PutUint32(b[0x54:], 11)
	le.PutUint16(b[0x58:], 256)
	le.PutUint32(b[0x5C:], 0x3C)  // journal, extended attributes, resize, dir index
	le.PutUint32(b[0x60:], 0x2C2) // file type, extents, 64 bits, flexible groups
	le.PutUint32(b[0x64:], 0x46B)
	copy(b[0x68:], s.UUID[:])
	copy(b[0x78:0x88], s.Label)
	le.PutUint16(b[0xFE:], 64)
	le.PutUint32(b[0x150:], uint32(blocks>>32))
	le.PutUint32(b[0x158:], uint32(free>>32))
	b[0x175] = 1 // checksums are crc32c
	le.PutUint32(b[0x194:], uint32(s.Errors))
	le.PutUint32(b[0x198:], uint32(s.First))
	le.PutUint32(b[0x1CC:], uint32(s.Last))
	le.PutUint32(b[0x3FC:], ^crc32c(b[:0x3FC]))
	return b
}

func readExt4(b []byte, s *Super) bool {
	if le.Uint16(b[0x38:]) != 0xEF53 || le.Uint32(b[0x60:])&0x40 == 0 {
		return false
	}
	s.UUID, s.Label = [16]byte(b[0x68:]), cString(b[0x78:0x88])
	s.Size = (uint64(le.Uint32(b[0x150:]))<<32 | uint64(le.Uint32(b[4:]))) * 4096
	return true
}

// writeXFS encodes xfs_dsb (fs/xfs/libxfs/xfs_format.h), big-endian except its checksum.
func writeXFS(s *Super) []byte {
	b := make([]byte, 512)
	copy(b, "XFSB")
	blocks := s.Size / 4096
	be.PutUint32(b[4:], 4096)
	be.PutUint64(b[8:], blocks)
	copy(b[32:], s.UUID[:])
	be.PutUint64(b[48:], blocks/2) // where the log begins
	be.PutUint64(b[56:], 128)      // root inode
	be.PutUint32(b[80:], 1)
	be.PutUint32(b[84:], uint32((blocks+3)/4))
	be.PutUint32(b[88:], 4) // allocation groups
	be.PutUint32(b[96:], 16384)
	be.PutUint16(b[100:], 0xB4A5)
	be.PutUint16(b[102:], 512)
	be.PutUint16(b[104:], 512) // inode
	be.PutUint16(b[106:], 8)
	copy(b[108:120], s.Label)
	copy(b[120:], []byte{12, 9, 9, 3, 22, 0, 0, 25}) // logarithms; a quarter may be inodes
	be.PutUint64(b[144:], s.Usage().Free/4096)
	be.PutUint32(b[220:], 0xFFFFFFFF)
	le.PutUint32(b[224:], 0)
	le.PutUint32(b[224:], crc32c(b))
	return b
}

func readXFS(b []byte, s *Super) bool {
	if string(b[:4]) != "XFSB" {
		return false
	}
	s.UUID, s.Label, s.Size = [16]byte(b[32:]), cString(b[108:120]), be.Uint64(b[8:])*4096
	return true
}

// writeBtrfs encodes btrfs_super_block (include/uapi/linux/btrfs_tree.h).
func writeBtrfs(s *Super) []byte {
	b := make([]byte, 4096)
	copy(b[0x20:], s.UUID[:])
	le.PutUint64(b[0x30:], 0x10000)
	le.PutUint64(b[0x38:], 1)
	copy(b[0x40:], "_BHRfS_M")
	le.PutUint64(b[0x48:], 7) // generation
	le.PutUint64(b[0x70:], s.Size)
	le.PutUint64(b[0x78:], s.Size-min(s.Size, s.Usage().Free))
	le.PutUint64(b[0x80:], 6)
	le.PutUint64(b[0x88:], 1) // devices
	le.PutUint32(b[0x90:], 4096)
	le.PutUint32(b[0x94:], 16384)
	le.PutUint32(b[0x98:], 16384)
	le.PutUint32(b[0x9C:], 4096)
	le.PutUint64(b[0xBC:], 0x341)
	copy(b[0x12B:0x22B], s.Label)
	le.PutUint32(b, crc32c(b[0x20:]))
	return b
}

func readBtrfs(b []byte, s *Super) bool {
	if string(b[0x40:0x48]) != "_BHRfS_M" {
		return false
	}
	s.UUID, s.Label, s.Size = [16]byte(b[0x20:]), cString(b[0x12B:0x22B]), le.Uint64(b[0x70:])
	return true
}
