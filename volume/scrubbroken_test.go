package volume_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestScrubWithoutSuperblock: a filesystem that its program cannot even open, because its superblock is gone, is corrupted.
func TestScrubWithoutSuperblock(t *testing.T) {
	t.Parallel()
	for _, fs := range drivebay.FSTypes {
		for _, mounted := range []bool{true, false} {
			onStand(t, func(s *stand) {
				v := s.make("v", ofType(fs))
				if mounted {
					s.must(s.stage(v))
				}
				disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+s.device(v), false)
				s.must(err)
				s.must(disk.Zero(context.Background(), 0, 1<<20), disk.Sync(), disk.Close(), s.e.ScrubVolume(s.Context(), v.ID))
				time.Sleep(5 * time.Minute)
				if got := s.of(v).Condition; !strings.Contains(reasons(got), "FilesystemCorruption") {
					s.Errorf("%s, mounted %v: %q", fs, mounted, got.Message())
				}
			})
		}
	}
}
