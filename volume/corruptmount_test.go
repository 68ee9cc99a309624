package volume_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// corruptions are lines of the kernel's log by which a filesystem says that it found corruption.
var corruptions = map[string]string{
	"xfs":   "XFS (%s): Metadata corruption detected at xfs_agi_verify+0x10b/0x1c0 [xfs], xfs_agi block 0x2 ",
	"btrfs": "BTRFS critical (device %s): corrupt leaf: root=5 block=30490624 slot=3 ino=257 file_offset=0, invalid type for file extent",
}

// TestCorruptionBeforeRemount: what the kernel has logged of a filesystem stays a finding, however soon after that it is mounted again.
func TestCorruptionBeforeRemount(t *testing.T) {
	t.Parallel()
	for fs, line := range corruptions {
		for wait := range 4 {
			onStand(t, func(s *stand) {
				v := s.make("v", ofType(fs))
				s.must(s.stage(v))
				time.Sleep(time.Minute + time.Duration(wait)*500*time.Millisecond)
				s.sim.WriteKernelLog(fmt.Sprintf(line, s.device(v)))
				time.Sleep(10 * time.Millisecond)
				s.must(s.unstage(v), s.stage(v))
				time.Sleep(2 * time.Minute)
				if got := s.of(v).Condition; !strings.Contains(reasons(got), "FilesystemCorruption") {
					s.Errorf("%s, mounted again after the line: %q", fs, got.Message())
				}
			})
		}
	}
}

// sayingMount is a machine whose kernel logs a line while it mounts.
type sayingMount struct {
	*hostsim.Machine
	line atomic.Pointer[string]
}

func (m *sayingMount) Mount(ctx context.Context, n host.NewMount) error {
	err := m.Machine.Mount(ctx, n)
	if line := m.line.Load(); line != nil {
		m.WriteKernelLog(*line)
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// TestSaidWhileMounting: what the kernel says of a filesystem while it mounts it is a finding, as what it says later is: it says so once.
func TestSaidWhileMounting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fs, line, reason string }{
		{"xfs", corruptions["xfs"], "FilesystemCorruption"},
		{"btrfs", corruptions["btrfs"], "FilesystemCorruption"},
		{"xfs", "XFS (%s): Filesystem has been shut down due to log error (0x2).", "FilesystemShutdown"},
		{"ext4", "EXT4-fs (%s): Remounting filesystem read-only", "ReadOnlyFilesystem"},
	} {
		for _, again := range []bool{false, true} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				m := &sayingMount{Machine: s.sim}
				s.machine = m
				s.start()
				v := s.make("v", ofType(c.fs))
				if again {
					s.must(s.stage(v), s.unstage(v))
				}
				m.line.Store(new(fmt.Sprintf(c.line, s.device(v))))
				s.must(s.stage(v))
				m.line.Store(nil)
				time.Sleep(time.Minute)
				if got := s.of(v).Condition; !strings.Contains(reasons(got), c.reason) {
					s.Errorf("%s, mounted before %v: %q", c.reason, again, got.Message())
				}
				s.must(s.unstage(v), s.stage(v))
				time.Sleep(time.Minute)
				if got := s.of(v).Condition; strings.Contains(reasons(got), c.reason) != (c.reason == "FilesystemCorruption") {
					s.Errorf("%s, mounted again: %q", c.reason, got.Message())
				}
			})
		}
	}
}
