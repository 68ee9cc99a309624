package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestFilesystemErrorsStay: that a filesystem has counted errors, or that the kernel has logged its corruption, stays a finding while it is not mounted and
// after a restart, until it was repaired.
func TestFilesystemErrorsStay(t *testing.T) {
	t.Parallel()
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		onStand(t, func(s *stand) {
			v := s.make("v", ofType(fs))
			s.must(s.stage(v))
			expect := func(when string, found bool) {
				s.Helper()
				time.Sleep(2 * time.Minute)
				if got := s.of(v).Condition; strings.Contains(reasons(got), "FilesystemCorruption") != found {
					s.Errorf("%s: %q", when, got.Message())
				}
			}
			expect("sound", false)
			s.inject(staging(v), "fs-errors")
			expect("mounted", true)
			s.must(s.unstage(v))
			expect("unmounted", true)
			s.restart(func() {})
			expect("unmounted, after a restart", true)
			s.must(s.stage(v))
			expect("mounted again", true)
			s.must(s.unstage(v))
			if fs == "btrfs" { // never repaired
				s.must(s.e.ScrubVolume(s.Context(), v.ID))
			} else {
				_, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Fsck: true})
				s.must(err)
			}
			expect("repaired", false)
			s.must(s.stage(v))
			expect("repaired and mounted", false)
		})
	}
}

// ofType asks for a volume with a filesystem.
func ofType(fs string) drivebay.VolumeRequest {
	return drivebay.VolumeRequest{FSType: fs, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: fs}}
}

// TestCorruptionIsLogged: XFS and btrfs count no errors; the kernel's log says what they found.
func TestCorruptionIsLogged(t *testing.T) {
	t.Parallel()
	for fs, lines := range map[string]map[string]bool{
		"xfs": {
			"XFS (%s): Metadata corruption detected at xfs_agi_verify+0x10b/0x1c0 [xfs], xfs_agi block 0x2 ":    true,
			"XFS (%s): Metadata CRC error detected at xfs_agf_read_verify+0xd3/0x100 [xfs], xfs_agf block 0x1 ": true,
			"XFS (%s): Corruption detected. Unmount and run xfs_repair":                                         true,
			"XFS (%s): Ending clean mount":                                false,
			"XFS (sdz9): Corruption detected. Unmount and run xfs_repair": false,
		},
		"btrfs": {
			"BTRFS warning (device %s): csum failed root 5 ino 257 off 0 csum 0x98f94189 expected csum 0x94e2a5fc mirror 1":                       true,
			"BTRFS error (device %s: state EA): parent transid verify failed on logical 30556160 mirror 1 wanted 7 found 5":                       true,
			"BTRFS warning (device %s): checksum verify failed on logical 30408704 mirror 1 wanted 0x0f1f2e3d found 0x4c5b6a79 level 0":           true,
			"BTRFS critical (device %s: state E): corrupt leaf: root=5 block=30490624 slot=3 ino=257 file_offset=0, invalid type for file extent": true,
			"BTRFS error (device %s): bad tree block start, mirror 1 want 30539776 have 0":                                                        true, // the block was never written: it has no checksum
			"BTRFS error (device %s): bad tree block start, want 30539776 have 0":                                                                 true, // before Linux 6.1
			"BTRFS error (device %s state E): bad tree block level, mirror 1 level 9 on logical 30539776":                                         true,
			"BTRFS error (device %s): bad fsid on logical 30539776 mirror 1":                                                                      true,
			"BTRFS error (device %s): level verify failed on logical 5446121209856 mirror 1 wanted 0 found 1":                                     true,
			"BTRFS error (device %s): unable to fixup (regular) error at logical 298844160 on dev /dev/sda1 physical 298844160":                   true, // found by `btrfs scrub`
			"BTRFS error (device %s): fixed up error at logical 298844160 on dev /dev/sda1 physical 298844160":                                    false,
			"BTRFS info (device %s): bdev /dev/sda1 errs: wr 0, rd 0, flush 0, corrupt 5, gen 0":                                                  false, // at a mount: of earlier ones
			"BTRFS info (device %s): using crc32c (crc32c-intel) checksum algorithm":                                                              false,
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
				time.Sleep(time.Minute)
				if got := s.of(v).Condition; strings.Contains(reasons(got), "FilesystemCorruption") != found {
					s.Errorf("%s: %q", line, got.Message())
				}
			})
		}
	}
}

// TestRepairedCountIsGone: a filesystem that was repaired does not get the count of its last mount, which is read
// some seconds later.
func TestRepairedCountIsGone(t *testing.T) {
	t.Parallel()
	for wait := range 16 {
		onStand(t, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{})
			s.must(s.stage(v))
			s.inject(staging(v), "fs-errors")
			time.Sleep(2 * time.Minute)
			s.must(s.unstage(v))
			_, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Fsck: true})
			s.must(err, s.stage(v))
			time.Sleep(time.Duration(wait) * time.Second)
			s.must(s.unstage(v))
			time.Sleep(30 * time.Minute)
			if got := s.of(v).Condition; strings.Contains(reasons(got), "FilesystemCorruption") {
				s.Errorf("mounted for %d s: %q", wait, got.Message())
			}
		})
	}
}

// TestGivenUpStays: what the kernel says once of a mounted filesystem is known after a restart of the daemon, until
// the filesystem is mounted again.
func TestGivenUpStays(t *testing.T) {
	t.Parallel()
	for fs, line := range map[string][2]string{
		"xfs":  {"XFS (%s): Filesystem has been shut down due to log error (0x2).", "FilesystemShutdown"},
		"ext4": {"EXT4-fs (%s): Remounting filesystem read-only", "ReadOnlyFilesystem"}, // the mount table shows rw
	} {
		onStand(t, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{FSType: fs, Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeNone, FSType: fs}})
			s.must(s.stage(v))
			expect := func(when string, found bool) {
				s.Helper()
				time.Sleep(time.Minute)
				if got := s.of(v).Condition; strings.Contains(reasons(got), line[1]) != found {
					s.Errorf("%s, %s: %q", fs, when, got.Message())
				}
			}
			expect("sound", false)
			s.sim.WriteKernelLog(fmt.Sprintf(line[0], s.device(v)))
			expect("given up", true)
			s.restart(func() {})
			expect("after a restart", true)
			s.restart(func() {})
			expect("after two", true)
			s.must(s.unstage(v), s.stage(v))
			expect("mounted again", false)
			s.restart(func() {})
			expect("mounted again, after a restart", false)
		})
	}
}
