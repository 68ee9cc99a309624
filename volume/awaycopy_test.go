package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestCopyOfAnAbsentDrive: a copy of a volume or a snapshot whose drive does not answer now can be made when it answers again:
// that is not a lack of space.
func TestCopyOfAnAbsentDrive(t *testing.T) {
	thin := drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: "ext4"}
	for _, fault := range []string{"vanish", "offline", "eio", "hang"} {
		t.Run(fault, func(t *testing.T) {
			onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "40GB"}}}, volume.Options{}, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{Class: thin})
				snap, err := s.e.CreateSnapshot(s.Context(), "s", v.ID)
				s.must(err)
				time.Sleep(time.Minute)
				s.inject(v.Location.Drives[0], fault)
				time.Sleep(5 * time.Minute)
				copied := func(what string, source drivebay.Source) error {
					_, err := s.e.CreateVolume(s.Context(), drivebay.VolumeRequest{Name: what, Size: drivebay.SizeRange{Required: 1 << 30}, Class: thin, Source: source})
					return err
				}
				_, another := s.e.CreateSnapshot(s.Context(), "t", v.ID)
				for what, err := range map[string]error{"clone": copied("clone", drivebay.Source{Volume: v.ID}), "volume of the snapshot": copied("restored", drivebay.Source{Snapshot: snap.ID}), "another snapshot": another} {
					if !errors.Is(err, drivebay.ErrUnavailable) && !errors.Is(err, drivebay.ErrTimeout) {
						s.Errorf("%s: %v", what, err)
					}
				}
				if fault == "hang" { // else the call that hangs outlives the test
					s.inject(v.Location.Drives[0], "heal")
					time.Sleep(time.Minute)
				}
			})
		})
	}
}
