package volume_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestShutdownOfExt4: an ext4 is shut down by a program (FS_IOC_SHUTDOWN), and by the kernel when its device goes. The mount table
// does not show it, and reading a folder that is in memory works.
func TestShutdownOfExt4(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		v := s.make("v", ofType("ext4"))
		s.must(s.stage(v))
		expect := func(when, want string) {
			s.Helper()
			time.Sleep(time.Minute)
			if got := s.of(v).Condition; reasons(got) != want || want != "" && got.Severity() != drivebay.SeverityInaccessible {
				s.Errorf("%s: %q", when, got.Message())
			}
		}
		s.sim.WriteKernelLog(fmt.Sprintf("EXT4-fs (%s): shut down requested (2)", s.device(v)))
		s.sim.WriteKernelLog(fmt.Sprintf("Aborting journal on device %s-8.", s.device(v)))
		expect("shut down", "FilesystemShutdown")
		s.restart(func() {})
		expect("after a restart", "FilesystemShutdown")
		s.must(s.unstage(v), s.stage(v))
		expect("mounted again", "")
	})
}

// TestAbortedJournal: an ext4 whose journal cannot be written takes no change any more. It says "Remounting filesystem read-only" only when
// a program tries to change something.
func TestAbortedJournal(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		v := s.make("v", ofType("ext4"))
		s.must(s.stage(v))
		s.sim.WriteKernelLog(fmt.Sprintf("Aborting journal on device %s-8.", s.device(v)))
		time.Sleep(time.Minute)
		if got := s.of(v).Condition; reasons(got) != "ReadOnlyFilesystem" {
			s.Errorf("%q", got.Message())
		}
		s.must(s.unstage(v), s.stage(v))
		time.Sleep(time.Minute)
		if got := s.of(v).Condition; got.Abnormal() {
			s.Errorf("mounted again: %q", got.Message())
		}
	})
}
