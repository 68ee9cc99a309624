package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestSnapshotNotThere: a snapshot that LVM does not show is not ready to use, whatever its record says.
func TestSnapshotNotThere(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"removed", "label"} {
		t.Run(how, func(t *testing.T) {
			onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
				v := s.make("v", rawVolume(drivebay.BackingThin))
				snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				s.must(err)
				unavailable := func() string {
					is, ok := s.e.Volumes().GetSnapshot(snap.ID)
					if !ok {
						s.Fatal("it is not listed")
					}
					return is.Unavailable
				}
				if why := unavailable(); why != "" {
					s.Errorf("it was just made: %s", why)
				}
				if how == "removed" {
					_, err = s.sim.Run(s.Context(), "lvm", "lvremove", "--yes", snap.Location.VG+"/"+snap.Location.LV)
					s.must(err, s.mgr.Refresh(s.Context()))
				} else {
					s.flip(s.driveOf(v).Name+"p1", 512+40, 1)
					s.must(s.mgr.Refresh(s.Context()))
				}
				time.Sleep(15 * time.Minute)
				if unavailable() == "" {
					_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
					s.Errorf("it is ready to use; asked for again: %v", err)
				}
			})
		})
	}
}
