package watch

import (
	"slices"
	"testing"
)

// TestFaults: what real programs said of filesystems whose metadata were overwritten,
// and what of it counts while somebody has them mounted.
func TestFaults(t *testing.T) {
	const bitmap = `e2fsck 1.47.0 (5-Feb-2023)
Pass 1: Checking inodes, blocks, and sizes
Pass 5: Checking group summary information
Block bitmap differences:  +1 +5 +8
Fix? no

Free blocks count wrong for group #0 (96, counted=736).
Fix? no

Block bitmap differences: Group 0 block bitmap does not match checksum.
IGNORED.

e.img: ********** WARNING: Filesystem still has errors **********

e.img: 16/81920 files (0.0% non-contiguous), 30957/327680 blocks
`
	const header = `Phase 1 - find and verify superblock...
Phase 2 - using internal log
        - zero log...
agf has bad CRC for ag 1
bad magic # 0xf6824642 for agf 1
would reset bad agf for ag 1
bad uncorrected agheader 1, skipping ag...
sb_fdblocks 65504, counted 45030
Phase 3 - for each AG...
        - scan (but don't clear) agi unlinked lists...
        - agno = 0
No modify flag set, skipping phase 5
`
	const busy = `Phase 1 - find and verify superblock...
Phase 2 - using internal log
        - zero log...
ALERT: The filesystem has valuable metadata changes in a log which is being
ignored because the -n option was used.  Expect spurious inconsistencies
which may be resolved by first mounting the filesystem to replay the log.
        - scan filesystem freespace and inode maps...
agf_freeblks 5759502, counted 5759493 in ag 0
sb_fdblocks 1019986, counted 1052976
        - found root inode chunk
No modify flag set, skipping filesystem flush and exiting.
` // with exit code 1, also if it finds nothing else (phase2.c, zero_log: do_warn)
	spoilt := []string{"agf has bad CRC for ag 1", "bad magic # 0xf6824642 for agf 1", "bad uncorrected agheader 1, skipping ag..."}
	for _, c := range []struct {
		kind, text string
		mounted    bool
		want       []string
	}{
		{"ext4", bitmap, true, nil},
		{"ext4", bitmap, false, []string{"Block bitmap differences:  +1 +5 +8", "Free blocks count wrong for group #0 (96, counted=736).", "Block bitmap differences: Group 0 block bitmap does not match checksum."}},
		{"xfs", header, true, spoilt},
		{"xfs", busy, true, nil},
		{"xfs", header, false, append(spoilt, "sb_fdblocks 65504, counted 45030")},
	} {
		if got := checkers[c.kind].faults(c.text, c.mounted); !slices.Equal(got, c.want) {
			t.Errorf("%s, mounted %v: %q", c.kind, c.mounted, got)
		}
	}
}

// TestRuled: which ends of real programs are a verdict (e2fsck 1.47.0, xfs_repair 6.1.0, btrfs 6.2), and what of their output counts while the
// filesystem is mounted. The worst faults end a program with words and a status that it has for other failures as well.
func TestRuled(t *testing.T) {
	const (
		noJournal = `e2fsck 1.47.0 (5-Feb-2023)
Superblock has an invalid journal (inode 8).
Clear? no

e2fsck: The journal superblock is corrupt while checking journal for the device
e2fsck: Cannot proceed with file system check

the device: ********** WARNING: Filesystem still has errors **********

`
		noSuperblock = `e2fsck 1.47.0 (5-Feb-2023)
ext2fs_open2: Bad magic number in super-block
e2fsck: Superblock invalid, trying backup blocks...
e2fsck: Bad magic number in super-block while trying to open the device

The superblock could not be read or does not describe a valid ext2/ext3/ext4
filesystem.  If the device is valid and it really contains an ext2/ext3/ext4
filesystem (and not swap or ufs or something else), then the superblock
is corrupt, and you might try running e2fsck with an alternate superblock:
    e2fsck -b 8193 <device>
 or
    e2fsck -b 32768 <device>

`
		noTree = `checksum verify failed on 30408704 wanted 0x00000000 found 0xb6bde3e4
bad tree block 30408704, bytenr mismatch, want=30408704, have=0
ERROR: could not setup extent tree
ERROR: cannot open file system
Opening filesystem to check...
`
	)
	tree := []string{"checksum verify failed on 30408704 wanted 0x00000000 found 0xb6bde3e4", "bad tree block 30408704, bytenr mismatch, want=30408704, have=0"}
	for _, c := range []struct {
		kind, text string
		code       int
		mounted    bool
		want       []string // nil: no verdict
	}{
		{"ext4", noJournal, 12, false, []string{"Superblock has an invalid journal (inode 8).", "e2fsck: The journal superblock is corrupt while checking journal for the device", "e2fsck: Cannot proceed with file system check"}},
		{"ext4", noSuperblock, 8, false, []string{"ext2fs_open2: Bad magic number in super-block", "e2fsck: Superblock invalid, trying backup blocks...", "e2fsck: Bad magic number in super-block while trying to open the device"}},
		{"ext4", "e2fsck: Input/output error while trying to open the device\nBad magic number in super-block", 8, false, nil},
		{"ext4", "e2fsck: No such file or directory while trying to open the device\nPossibly non-existent device?", 8, false, nil},
		{"ext4", "the device is mounted.\ne2fsck: Cannot continue, aborting.", 8, false, nil},
		{"ext4", noJournal, -1, false, nil},
		{"btrfs", noTree, 1, false, append(tree[:2:2], "ERROR: could not setup extent tree", "ERROR: cannot open file system")},
		{"btrfs", noTree, 1, true, tree},
		{"btrfs", "No valid Btrfs found on the device\nERROR: cannot open file system\nOpening filesystem to check...", 1, true, []string{"No valid Btrfs found on the device"}},
		{"btrfs", "ERROR: cannot stat 'the device': No such file or directory\nERROR: cannot open file system", 1, false, nil},
		{"btrfs", "ERROR: unsupported option features: 10000\nERROR: cannot open file system", 1, false, nil}, // made by a newer kernel
		{"btrfs", "nice: 'btrfs': No such file or directory", 127, false, nil},
		{"xfs", "nice: 'xfs_repair': No such file or directory", 127, false, nil},
		{"xfs", "the device: No such file or directory\n\nfatal error -- couldn't initialize XFS library", 1, false, nil},
		{"xfs", "Metadata CRC error detected at 0x55d8, xfs_dinode block 0x80/0x4000\n\nfatal error -- could not iget root inode -- error - 117", 1, false,
			[]string{"Metadata CRC error detected at 0x55d8, xfs_dinode block 0x80/0x4000", "fatal error -- could not iget root inode -- error - 117"}},
	} {
		with := checkers[c.kind]
		switch ruled := with.ruled(c.code, c.text); {
		case ruled != (c.want != nil):
			t.Errorf("%s, status %d, a verdict: %v: %q", c.kind, c.code, ruled, c.text)
		case !ruled:
		case !slices.Equal(with.faults(c.text, c.mounted), c.want):
			t.Errorf("%s, status %d, mounted %v: %q", c.kind, c.code, c.mounted, with.faults(c.text, c.mounted))
		}
	}
}
