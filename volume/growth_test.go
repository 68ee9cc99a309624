package volume_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestNothingGrows: volumes come and go, and the engine keeps no more than before.
func TestNothingGrows(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		come := func(n int) map[string]int {
			for i := range n {
				for _, name := range []string{"xfs on linear", "ext4 on a partition"} {
					v := s.make(fmt.Sprint(name, i), requests()[name])
					s.must(s.stage(v), s.e.ScrubVolume(s.Context(), v.ID))
					time.Sleep(10 * time.Second)
					s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
				}
			}
			time.Sleep(10 * time.Minute)
			return s.e.Remembered()
		}
		before := come(3)
		for what, n := range come(20) {
			if n > before[what] {
				s.Errorf("%s: %d, and %d after 40 volumes more", what, before[what], n)
			}
		}
		if _, err := s.e.CreateVolume(s.Context(), drivebay.VolumeRequest{Name: "one more", Class: requests()["xfs on linear"].Class}); err != nil {
			s.Error(err)
		}
	})
}
