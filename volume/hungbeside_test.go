package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestHungDriveBeside: while a drive with a physical volume hangs, for however long, the logical volumes on other drives are sound.
func TestHungDriveBeside(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		hung, beside := s.make("hung", requests()["a linear volume"]), s.make("beside", requests()["ext4 on thin"])
		if hung.Location.Drives[0] == beside.Location.Drives[0] {
			t.Fatal("both are on one drive")
		}
		s.must(s.stage(hung), s.publish(hung, "pod"), s.stage(beside), s.publish(beside, "pod"))
		time.Sleep(time.Minute)
		s.inject(hung.Location.Drives[0], "hang")
		for range 60 {
			time.Sleep(time.Minute)
			if is := s.of(beside); is.Condition.Abnormal() || is.OperationalStatus != drivebay.Operative {
				s.Errorf("another drive hangs, and it is %v: %s", is.OperationalStatus, is.Condition.Message())
				break
			}
		}
		s.inject(hung.Location.Drives[0], "heal")
		time.Sleep(5 * time.Minute)
		s.must(s.unpublish(hung, "pod"), s.unstage(hung), s.unpublish(beside, "pod"), s.unstage(beside))
	})
}
