package volume_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestOverwrittenIsFound: another program wipes the filesystem, or the header, of a volume that is in no use. Nothing tells the daemon but the
// content of the drive. It has the finding without a call for the volume, and loses it when the bytes are back.
func TestOverwrittenIsFound(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{
		"ext4": ofType("ext4"), "xfs": ofType("xfs"), "btrfs": ofType("btrfs"),
		"encrypted": {Class: drivebay.Class{Encryption: "luks2"}, Secrets: drivebay.Secrets{drivebay.SecretPassphrase: "p"}},
	} {
		onStand(t, func(s *stand) {
			v := s.make("v", r)
			s.make("w", drivebay.VolumeRequest{Block: true})
			time.Sleep(time.Hour)
			if c := s.of(v).Condition; len(c) > 0 {
				s.Fatalf("%s: a new volume: %q", name, c.Message())
			}
			disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+s.device(v), false)
			s.must(err)
			head := make([]byte, 1<<20)
			_, err = disk.ReadAt(head, 0)
			s.must(err, disk.Zero(context.Background(), 0, 1<<20), disk.Sync())
			s.hours(name+" wiped", func() bool { return strings.Contains(reasons(s.of(v).Condition), "ContentOverwritten") })
			if got := s.of(v).Condition; got[0].Severity != drivebay.SeverityInaccessible || !strings.Contains(got.Message(), "the partition has nothing") {
				s.Errorf("%s: %q", name, got.Message())
			}
			s.start()
			s.hours(name+" after a restart", func() bool { return strings.Contains(reasons(s.of(v).Condition), "ContentOverwritten") })
			_, err = disk.WriteAt(head, 0)
			s.must(err, disk.Sync(), disk.Close())
			s.hours(name+" written back", func() bool { return len(s.of(v).Condition) == 0 })
		})
	}
}
