package volume_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestCallsForAVolumeOfAnAbsentDrive: no call says of a volume whose drive was pulled, or cannot be read, that it does not exist, that
// its state forbids the call, or nothing that a caller knows: it is unavailable.
func TestCallsForAVolumeOfAnAbsentDrive(t *testing.T) {
	plain := []error{drivebay.ErrUnavailable, drivebay.ErrInvalid, drivebay.ErrNoSupport, drivebay.ErrRange, drivebay.ErrTimeout}
	for _, fault := range []string{"vanish", "offline", "eio", "hang"} {
		for name, r := range some(requests()) {
			t.Run(fault+" "+name, func(t *testing.T) {
				onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 3, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "40GB"}}}, volume.Options{}, func(s *stand) {
					v := s.make("v", r)
					used := s.make("used", r)
					s.must(s.stage(used))
					time.Sleep(time.Minute)
					drives := slices.Concat(v.Location.Drives, used.Location.Drives)
					slices.Sort(drives)
					drives = slices.Compact(drives)
					for _, id := range drives {
						s.inject(id, fault)
					}
					time.Sleep(5 * time.Minute)
					ctx := s.Context()
					_, _, grown := s.e.ExpandVolume(ctx, v.ID, drivebay.SizeRange{Required: v.Size + 1<<30})
					_, reclaimed := s.e.Reclaim(ctx, drivebay.ReclaimRequest{Volume: v.ID})
					_, grownInUse := s.e.ExpandNode(ctx, used.ID, staging(used), drivebay.SizeRange{}, nil)
					for what, err := range map[string]error{"expand": grown, "reclaim": reclaimed, "stage": s.stage(v), "publish": s.publish(used, "pod"), "expand in use": grownInUse} {
						if err != nil && !slices.ContainsFunc(plain, func(p error) bool { return errors.Is(err, p) }) {
							s.Errorf("%s: %v", what, err)
						}
					}
					if fault == "hang" { // else the call that hangs outlives the test
						for _, id := range drives {
							s.inject(id, "heal")
						}
						time.Sleep(time.Minute)
					}
				})
			})
		}
	}
}
