package volume_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestRecordOfAnEarlierBoot: records from before the machine was restarted name the device that a volume had then. What is mounted now was mounted
// since: it is no stranger, and its path is missed once a hand has unmounted it, also by the next daemon.
func TestRecordOfAnEarlierBoot(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"block": requests()["a linear volume"], "xfs": requests()["xfs on linear"], "encrypted": encryptedRequests()["ext4 on a partition"]} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v, other := s.make("v", r), s.make("other", requests()["xfs on linear"])
				use := func(v drivebay.Volume) { s.must(s.stage(v, with(rightKey)), s.publish(v, "pod")) }
				use(v)
				older := s.copyOfStore()
				s.stop()
				s.stop = nil
				s.must(s.sim.UnmountBehind(target(v, "pod")))
				if !r.Block {
					s.must(s.sim.UnmountBehind(staging(v)))
				}
				if _, open := s.plain(v); open {
					_, err := s.sim.Run(s.Context(), "cryptsetup", "close", "drivebay-"+v.ID)
					s.must(err)
				}
				s.sim.PowerCut()
				s.nextBoot()
				s.start()
				s.must(s.stage(other)) // the device gets another number
				use(v)
				s.stop()
				s.stop = nil
				s.st = older
				s.start()
				time.Sleep(time.Minute)
				if c := s.conditions(v.ID); len(c) != 0 {
					t.Errorf("in use: %+v", c)
				}
				s.must(s.sim.UnmountBehind(target(v, "pod")))
				time.Sleep(time.Minute)
				s.start()
				time.Sleep(time.Minute)
				if c := s.conditions(v.ID); !slices.ContainsFunc(c, func(f drivebay.VolumeFinding) bool {
					return f.Reason == "VolumeUnmounted" && strings.Contains(f.Message, "is not mounted")
				}) {
					t.Errorf("unmounted by hand: %+v", c)
				}
				s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"), s.unpublish(v, "pod"), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
			})
		})
	}
}
