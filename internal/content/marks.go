package content

// mark is the signature that one format leaves: bytes at an offset (from the end where it is
// negative), and where the format keeps its label and its ID.
type mark struct {
	format string
	at     int64
	magic  string
	label  field
	id     field
	check  func(v *view) bool // for a magic that is too short to be proof alone
}

// field is bytes of a header and the function that formats them for display.
type field struct {
	at int64
	n  int
	as func([]byte) string
}

// marks lists the formats under the names that blkid uses. The source of the offsets is each format's
// on-disk documentation or header.
var marks = []mark{
	// Filesystems of Linux.
	{format: "ext2", at: 0x438, magic: "\x53\xef", label: field{0x478, 16, text}, id: field{0x468, 16, uuid}, check: isExt("ext2")},
	{format: "ext3", at: 0x438, magic: "\x53\xef", label: field{0x478, 16, text}, id: field{0x468, 16, uuid}, check: isExt("ext3")},
	{format: "ext4", at: 0x438, magic: "\x53\xef", label: field{0x478, 16, text}, id: field{0x468, 16, uuid}, check: isExt("ext4")},
	{format: "jbd", at: 0x438, magic: "\x53\xef", label: field{0x478, 16, text}, id: field{0x468, 16, uuid}, check: isExt("jbd")},
	{format: "xfs", at: 0, magic: "XFSB", label: field{108, 12, text}, id: field{32, 16, uuid}},
	{format: "xfs_external_log", at: 0, magic: "\xfe\xed\xba\xbe"},
	{format: "btrfs", at: 0x10040, magic: "_BHRfS_M", label: field{0x1012b, 256, text}, id: field{0x10020, 16, uuid}},
	{format: "bcachefs", at: 4096 + 24, magic: "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", label: field{4096 + 72, 32, text}, id: field{4096 + 56, 16, uuid}},
	{format: "f2fs", at: 1024, magic: "\x10\x20\xf5\xf2", label: field{1024 + 124, 512, utf16Text}, id: field{1024 + 108, 16, uuid}},
	{format: "jfs", at: 0x8000, magic: "JFS1", label: field{0x8098, 16, text}, id: field{0x8088, 16, uuid}},
	{format: "reiserfs", at: 0x2034, magic: "ReIsErFs"},
	{format: "reiserfs", at: 0x10034, magic: "ReIsErFs"},
	{format: "reiserfs", at: 0x10034, magic: "ReIsEr2Fs", label: field{0x10064, 16, text}, id: field{0x10054, 16, uuid}},
	{format: "reiserfs", at: 0x10034, magic: "ReIsEr3Fs", label: field{0x10064, 16, text}, id: field{0x10054, 16, uuid}},
	{format: "reiser4", at: 0x10000, magic: "ReIsEr4"},
	{format: "nilfs2", at: 0x400, magic: "\x02\x00\x00\x00\x00\x00\x34\x34", label: field{0x400 + 168, 80, text}, id: field{0x400 + 152, 16, uuid}},
	{format: "gfs2", at: 0x10000, magic: "\x01\x16\x19\x70\x00\x00\x00\x01"},
	{format: "ocfs2", at: 0x400, magic: "OCFSV2", label: field{0x510, 64, text}, id: field{0x550, 16, uuid}},
	{format: "ocfs2", at: 0x800, magic: "OCFSV2", label: field{0x910, 64, text}, id: field{0x950, 16, uuid}},
	{format: "ocfs2", at: 0x1000, magic: "OCFSV2", label: field{0x1110, 64, text}, id: field{0x1150, 16, uuid}},
	{format: "ocfs2", at: 0x2000, magic: "OCFSV2", label: field{0x2110, 64, text}, id: field{0x2150, 16, uuid}},
	{format: "squashfs", at: 0, magic: "hsqs"},
	{format: "squashfs3", at: 0, magic: "sqsh"},
	{format: "erofs", at: 1024, magic: "\xe2\xe1\xf5\xe0", label: field{1024 + 64, 16, text}, id: field{1024 + 48, 16, uuid}},
	{format: "cramfs", at: 0, magic: "\x45\x3d\xcd\x28", label: field{48, 16, text}},
	{format: "romfs", at: 0, magic: "-rom1fs-"},
	{format: "zonefs", at: 0, magic: "SFOZ"},
	{format: "minix", at: 0x410, magic: "\x7f\x13", check: isMinix(4)},
	{format: "minix", at: 0x410, magic: "\x8f\x13", check: isMinix(4)},
	{format: "minix", at: 0x410, magic: "\x68\x24", check: isMinix(4)},
	{format: "minix", at: 0x410, magic: "\x78\x24", check: isMinix(4)},
	{format: "minix", at: 0x418, magic: "\x5a\x4d", check: isMinix(6)},

	// Swap: the signature ends the first page, whose size varies.
	{format: "swap", at: 4086, magic: "SWAPSPACE2", label: field{1052, 16, text}, id: field{1036, 16, uuid}},
	{format: "swap", at: 8182, magic: "SWAPSPACE2", label: field{1052, 16, text}, id: field{1036, 16, uuid}},
	{format: "swap", at: 16374, magic: "SWAPSPACE2", label: field{1052, 16, text}, id: field{1036, 16, uuid}},
	{format: "swap", at: 32758, magic: "SWAPSPACE2", label: field{1052, 16, text}, id: field{1036, 16, uuid}},
	{format: "swap", at: 65526, magic: "SWAPSPACE2", label: field{1052, 16, text}, id: field{1036, 16, uuid}},
	{format: "swap", at: 4086, magic: "SWAP-SPACE"},
	{format: "swsuspend", at: 4086, magic: "S1SUSPEND"},
	{format: "swsuspend", at: 4086, magic: "S2SUSPEND"},
	{format: "swsuspend", at: 4086, magic: "ULSUSPEND"},
	{format: "swsuspend", at: 4086, magic: "LINHIB0001"},

	// Members of LVM, RAID, pools and other layers.
	{format: "LVM2_member", at: 0x018, magic: "LVM2 001", id: field{0x020, 32, lvmID}, check: hasLabelOne(0)},
	{format: "LVM2_member", at: 0x218, magic: "LVM2 001", id: field{0x220, 32, lvmID}, check: hasLabelOne(0x200)},
	{format: "LVM2_member", at: 0x418, magic: "LVM2 001", id: field{0x420, 32, lvmID}, check: hasLabelOne(0x400)},
	{format: "LVM2_member", at: 0x618, magic: "LVM2 001", id: field{0x620, 32, lvmID}, check: hasLabelOne(0x600)},
	{format: "LVM1_member", at: 0, magic: "HM\x01\x00"},
	{format: "LVM1_member", at: 0, magic: "HM\x02\x00"},
	{format: "DM_snapshot_cow", at: 0, magic: "SnAp"},
	{format: "DM_verity_hash", at: 0, magic: "verity\x00\x00", id: field{16, 16, uuid}},
	{format: "DM_integrity", at: 0, magic: "integrt\x00"},
	{format: "crypto_LUKS", at: 0, magic: "LUKS\xba\xbe\x00\x01", id: field{168, 40, text}},
	{format: "crypto_LUKS", at: 0, magic: "LUKS\xba\xbe\x00\x02", label: field{24, 48, text}, id: field{168, 40, text}},
	{format: "linux_raid_member", at: 0, magic: "\xfc\x4e\x2b\xa9", label: field{32, 32, text}, id: field{16, 16, uuid}},
	{format: "linux_raid_member", at: 4096, magic: "\xfc\x4e\x2b\xa9", label: field{4096 + 32, 32, text}, id: field{4096 + 16, 16, uuid}},
	{format: "bcache", at: 4096 + 24, magic: "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", label: field{4096 + 72, 32, text}, id: field{4096 + 40, 16, uuid}},
	{format: "ceph_bluestore", at: 0, magic: "bluestore block device"},
	{format: "stratis", at: 512 + 4, magic: "!Stra0tis\x86\xff\x02^\x41rh", id: field{512 + 64, 32, text}},
	{format: "stratis", at: 9*512 + 4, magic: "!Stra0tis\x86\xff\x02^\x41rh", id: field{9*512 + 64, 32, text}},
	{format: "vdo", at: 0, magic: "dmvdo001"},
	{format: "drbd", at: -4096 + 0x3c, magic: "\x83\x74\x02\x6b"},
	{format: "drbd", at: -4096 + 0x3c, magic: "\x83\x74\x02\x6c"},
	{format: "drbd", at: -4096 + 0x3c, magic: "\x83\x74\x02\x6d"},
	{format: "ubi", at: 0, magic: "UBI#"},
	{format: "oracleasm", at: 32, magic: "ORCLDISK", label: field{40, 24, text}},
	{format: "VMFS_volume_member", at: 1 << 20, magic: "\x0d\xd0\x01\xc0"},

	// Metadata that RAID controllers leave at the end.
	{format: "ddf_raid_member", at: -512, magic: "\xde\x11\xde\x11"},
	{format: "ddf_raid_member", at: -512, magic: "\x11\xde\x11\xde"},
	{format: "isw_raid_member", at: -1024, magic: "Intel Raid ISM Cfg Sig. "},
	{format: "isw_raid_member", at: -8192, magic: "Intel Raid ISM Cfg Sig. "},
	{format: "lsi_mega_raid_member", at: -512, magic: "$XIDE$"},
	{format: "adaptec_raid_member", at: -512, magic: "\x37\xfc\x4d\x1e"},
	{format: "promise_fasttrack_raid_member", at: -63 * 512, magic: "Promise Technology, Inc."},
	{format: "nvidia_raid_member", at: -1024, magic: "NVIDIA"},

	// Filesystems of other systems.
	{format: "vfat", at: 82, magic: "FAT32   ", label: field{71, 11, fatLabel}, id: field{67, 4, fatID}},
	{format: "vfat", at: 54, magic: "FAT16   ", label: field{43, 11, fatLabel}, id: field{39, 4, fatID}},
	{format: "vfat", at: 54, magic: "FAT12   ", label: field{43, 11, fatLabel}, id: field{39, 4, fatID}},
	{format: "exfat", at: 3, magic: "EXFAT   ", id: field{100, 4, fatID}},
	{format: "ntfs", at: 3, magic: "NTFS    ", id: field{72, 8, reversedHex}},
	{format: "BitLocker", at: 3, magic: "-FVE-FS-"},
	{format: "ReFS", at: 0, magic: "\x00\x00\x00ReFS\x00"},
	{format: "iso9660", at: 0x8001, magic: "CD001", label: field{0x8028, 32, text}},
	{format: "udf", at: 0x8001, magic: "BEA01"},
	{format: "udf", at: 0x8801, magic: "NSR02"},
	{format: "udf", at: 0x8801, magic: "NSR03"},
	{format: "udf", at: 0x9001, magic: "NSR02"},
	{format: "udf", at: 0x9001, magic: "NSR03"},
	{format: "hfsplus", at: 1024, magic: "H+\x00\x04"},
	{format: "hfsplus", at: 1024, magic: "HX\x00\x05"},
	{format: "apfs", at: 32, magic: "NXSB", id: field{72, 16, uuid}},
	{format: "ufs", at: 8192 + 1372, magic: "\x54\x19\x01\x00"},
	{format: "ufs", at: 65536 + 1372, magic: "\x19\x01\x54\x19"},

	// Partition tables other than those that table.go reads.
	{format: "bsd", at: 512, magic: "\x57\x45\x56\x82"},
	{format: "sun", at: 508, magic: "\xda\xbe", check: func(v *view) bool { return xor16(v.at(0, 512)) == 0 }},
	{format: "sgi", at: 0, magic: "\x0b\xe5\xa9\x41"},
	{format: "mac", at: 512, magic: "PM\x00\x00"},
	{format: "amiga", at: 0, magic: "RDSK"},
	{format: "aix", at: 0, magic: "\xc9\xc2\xd4\xc1"},
}
