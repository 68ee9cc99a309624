package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestFilesystemErrorsStay: that a filesystem has counted errors stays a finding while it is not mounted and
// after a restart, until it was repaired.
func TestFilesystemErrorsStay(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
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
		_, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, Fsck: true})
		s.must(err)
		expect("repaired", false)
		s.must(s.stage(v))
		expect("repaired and mounted", false)
	})
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
