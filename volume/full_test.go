package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestFullVolume: a full filesystem is no fault, unless the configuration says from where on.
func TestFullVolume(t *testing.T) {
	t.Parallel()
	for percent, want := range map[int]bool{0: false, 100: true, 95: true} {
		onMachine(t, sameDrives(1), volume.Options{FullPercent: percent}, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{})
			s.must(s.stage(v), s.publish(v, "pod"))
			s.inject(staging(v), "fs-fill")
			time.Sleep(2 * time.Minute)
			got, err := s.stats(v, target(v, "pod"))
			s.must(err)
			if got.Bytes.Used*100 < got.Bytes.Total*94 {
				s.Fatalf("it is not full: %+v", got.Bytes)
			}
			for _, c := range []drivebay.Condition{got.Condition, s.of(v).Condition} {
				if has := strings.Contains(reasons(c), "OutOfCapacity"); has != want {
					s.Errorf("full from %d %% on: %v", percent, c)
				}
			}
		})
	}
}
