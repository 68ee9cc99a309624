package volume_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestCallsDuringTicks: calls that change what volumes show, at the moments at which the engine looks at all
// volumes. The race detector finds a look that does not keep the calls out.
func TestCallsDuringTicks(t *testing.T) {
	tick := time.Second
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 4, Kind: hostsim.KindNVMe, Serial: "DISK{n}", Size: "40GB"}}}, volume.Options{Tick: tick}, func(s *stand) {
		var calls sync.WaitGroup
		for i := range 6 {
			v := s.make(fmt.Sprintf("v%d", i), drivebay.VolumeRequest{})
			s.must(s.stage(v))
			calls.Go(func() {
				for range 30 {
					err := s.publish(v, "pod")
					time.Sleep(tick)
					if err := errors.Join(err, s.unpublish(v, "pod")); err != nil {
						s.Error(err)
					}
					time.Sleep(tick)
				}
			})
		}
		calls.Wait()
	})
}
