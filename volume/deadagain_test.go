package volume_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// silentLVM is an LVM whose reports do not end.
type silentLVM struct {
	lvmRunner
	on atomic.Bool
}

func (r *silentLVM) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if r.on.Load() && slices.Contains(argv, "fullreport") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.lvmRunner.Run(ctx, argv...)
}

// TestDeadUntilProved: the drive of a volume in use was pulled and is back, while LVM makes no report. What is mounted is the device that is gone: it
// is not called sound in between.
func TestDeadUntilProved(t *testing.T) {
	t.Parallel()
	for _, r := range []drivebay.VolumeRequest{requests()["xfs on linear"], requests()["a linear volume"]} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			bad := &silentLVM{lvmRunner: s.sim}
			s.lvm = bad
			s.start()
			v := s.make("v", r)
			s.must(s.stage(v), s.publish(v, "pod"))
			serial := s.serialOf(v.Location.Drives[0])
			s.inject(v.Location.Drives[0], "vanish")
			time.Sleep(2 * time.Minute)
			bad.on.Store(true)
			time.Sleep(30 * time.Second)
			s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
			for range 180 {
				if c := s.conditions(v.ID); !strings.Contains(reasons(c), "VolumeUnmounted") {
					t.Fatalf("its device is gone: %+v", c)
				}
				time.Sleep(time.Second)
			}
			bad.on.Store(false)
			time.Sleep(2 * time.Minute)
			s.must(s.unpublish(v, "pod"), s.unstage(v))
			time.Sleep(2 * time.Minute)
			s.must(s.stage(v), s.publish(v, "pod"))
			time.Sleep(time.Minute)
			if c := s.conditions(v.ID); strings.Contains(reasons(c), "VolumeUnmounted") {
				t.Errorf("staged again: %+v", c)
			}
			s.must(s.unpublish(v, "pod"), s.unstage(v))
		})
	}
}
