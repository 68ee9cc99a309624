package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLostWritesOfAPulledDrive: a filesystem whose drive was pulled loses writes and gives up. Mounted again it is sound.
func TestLostWritesOfAPulledDrive(t *testing.T) {
	t.Parallel()
	for fs, lines := range map[string][]string{
		"ext4": {"EXT4-fs warning (device %[1]s): ext4_end_bio:343: I/O error 10 writing to inode 131 starting block 34816)", "Aborting journal on device %[1]s-8."},
		"xfs": {"%[1]s: writeback error on inode 16708, offset 414887936, sector 949864",
			"XFS (%[1]s): Log I/O Error (0x2) detected at xlog_ioend_work+0x6e/0x70 [xfs] (fs/xfs/xfs_log.c:1377).  Shutting down filesystem."},
	} {
		onStand(t, func(s *stand) {
			v := s.make("v", ofType(fs))
			s.must(s.stage(v))
			for _, line := range lines {
				s.sim.WriteKernelLog(fmt.Sprintf(line, s.device(v)))
			}
			s.inject(v.Location.Drives[0], "vanish")
			time.Sleep(time.Minute)
			s.inject(v.Location.Drives[0], "return")
			time.Sleep(time.Minute)
			s.must(s.unstage(v), s.stage(v))
			for _, when := range []string{"mounted again", "after a restart"} {
				time.Sleep(5 * time.Minute)
				if got := s.of(v).Condition; got.Abnormal() {
					s.Errorf("%s: %s: %q", fs, when, got.Message())
				}
				s.restart(func() {})
			}
		})
	}
}

// TestLostWritesAreLogged: a write that fails above the drive, as on a thin pool without space, is in no line about the drive. The filesystem
// logs that it has lost the write, counts no error, and goes on.
func TestLostWritesAreLogged(t *testing.T) {
	t.Parallel()
	for fs, lines := range map[string]map[string]bool{
		"ext4": {
			"EXT4-fs warning (device %s): ext4_end_bio:343: I/O error 3 writing to inode 131 starting block 34816)":                    true,
			"EXT4-fs (%s): Delayed block allocation failed for inode 206 at logical offset 0 with max blocks 1 with error 28":          true,
			"JBD2: Detected IO errors while flushing file data on %s-8":                                                                true,
			"EXT4-fs warning (device sdz9): ext4_end_bio:343: I/O error 3 writing to inode 131 starting block 34816)":                  false,
			"EXT4-fs (%s): mounted filesystem 5f8b7c5e-0d5c-4b5e-9d4e-6f0b3c1d2e3f r/w with ordered data mode. Quota mode: none.":      false,
			"EXT4-fs warning (device %s): ext4_multi_mount_protect:324: MMP interval 42 higher than expected, please wait.":            false,
			"EXT4-fs (%s): unmounting filesystem 5f8b7c5e-0d5c-4b5e-9d4e-6f0b3c1d2e3f.":                                                false,
			"EXT4-fs (%s): error count since last fsck: 0":                                                                             false,
			"EXT4-fs warning (device %s): ext4_resize_begin:78: There are errors in the filesystem, so online resizing is not allowed": false,
			"JBD2: Clearing recovery information on journal %s-8":                                                                      false,
			"EXT4-fs (%s): Delayed block allocation failed for inode 1940 at logical offset 1516 with max blocks 20 with error 117":    true,
		},
		"xfs": {
			"%s: writeback error on inode 16708, offset 414887936, sector 949864":    true,
			"XFS (%s): page discard on page 00000000d2a3d3a5, inode 0x83, pos 4096.": true,
			"XFS (%s): Unmounting Filesystem 5f8b7c5e-0d5c-4b5e-9d4e-6f0b3c1d2e3f":   false,
			"sdz9: writeback error on inode 16708, offset 414887936, sector 949864":  false,
		},
	} {
		for line, found := range lines {
			onStand(t, func(s *stand) {
				v := s.make("v", ofType(fs))
				s.must(s.stage(v))
				if strings.Contains(line, "%s") {
					line = fmt.Sprintf(line, s.device(v))
				}
				s.sim.WriteKernelLog(line)
				expect := func(when string, found bool) {
					s.Helper()
					if got := s.of(v).Condition; strings.Contains(reasons(got), "RWIOError") != found {
						s.Errorf("%s: %s: %q", line, when, got.Message())
					}
				}
				time.Sleep(time.Minute)
				expect("after a minute", found)
				if !found || !strings.Contains(line, "inode 16708") {
					return
				}
				s.must(s.unstage(v), s.stage(v)) // which does not bring the data back
				time.Sleep(20 * time.Hour)
				expect("mounted again", found)
				time.Sleep(5 * time.Hour)
				expect("a day later", false)
			})
		}
	}
}
