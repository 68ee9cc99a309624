package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestReadOfADeadMount: a drive that was pulled is back, and the mounts of before show the device that is gone. That they cannot be read is no
// error of the drive: the finding names the mounts, and its next step ends it.
func TestReadOfADeadMount(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "ext4 on thin"} {
		for _, published := range []bool{false, true} {
			onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
				v := s.make("v", requests()[name])
				s.must(s.stage(v))
				if published {
					s.must(s.publish(v, "pod"))
				}
				time.Sleep(2 * time.Minute)
				s.inject(v.Location.Drives[0], "vanish")
				time.Sleep(time.Minute)
				s.inject(v.Location.Drives[0], "return")
				for _, after := range []time.Duration{10 * time.Second, 2 * time.Minute, 20 * time.Minute} {
					time.Sleep(after)
					is := s.of(v)
					if !strings.Contains(reasons(is.Condition), "VolumeUnmounted") || strings.Contains(reasons(is.Condition), "RWIOError") || is.OperationalStatus != drivebay.Operative {
						s.Errorf("%s, published %v, %v after its drive is back: %v: %s", name, published, after, is.OperationalStatus, is.Condition.Message())
					}
				}
				s.heal(v)
				s.says("repaired", v, "")
			})
		}
	}
}
