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
	spoilt := []string{"agf has bad CRC for ag 1", "bad magic # 0xf6824642 for agf 1", "bad uncorrected agheader 1, skipping ag..."}
	for _, c := range []struct {
		kind, text string
		mounted    bool
		want       []string
	}{
		{"ext4", bitmap, true, nil},
		{"ext4", bitmap, false, []string{"Block bitmap differences:  +1 +5 +8", "Free blocks count wrong for group #0 (96, counted=736).", "Block bitmap differences: Group 0 block bitmap does not match checksum."}},
		{"xfs", header, true, spoilt},
		{"xfs", header, false, append(spoilt, "sb_fdblocks 65504, counted 45030")},
	} {
		if got := checkers[c.kind].faults(c.text, c.mounted); !slices.Equal(got, c.want) {
			t.Errorf("%s, mounted %v: %q", c.kind, c.mounted, got)
		}
	}
}
