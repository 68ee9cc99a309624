package volume_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestDriveLeaves: volumes go with their drive, nothing new comes to it, and it is
// free to go when the last of them is gone; one that stays after all has them back.
func TestDriveLeaves(t *testing.T) {
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on thin"])
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		id := v.Location.Drives[0]
		expect := func(drive drivebay.Usage, of drivebay.VolumeUsage, waits string) {
			s.Helper()
			time.Sleep(time.Minute)
			is, vol := s.drive(v), s.of(v)
			if is.Usage != drive || vol.Usage != of || waits != "" && (is.Leaving == nil || !strings.Contains(is.Leaving.Cause, waits)) {
				s.Fatalf("the drive is %v, %+v, the volume %v", is.Usage, is.Leaving, vol.Usage)
			}
		}
		s.noSpare(v)
		s.must(err, s.stage(v), s.mgr.Lead(s.Context(), id, drivebay.LeaveRelease, ""))
		expect(drivebay.UsageReleasing, drivebay.VolumeReleasing, "no spare: ")
		if is := s.of(v); is.OperationalStatus != drivebay.Maintenance {
			s.Errorf("meanwhile it is %v", is.OperationalStatus)
		}
		r := requests()["ext4 on a partition"]
		r.Name = "other"
		if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrNoSpace) {
			s.Errorf("a new volume on a drive that has to leave: %v", err)
		}
		s.must(s.mgr.Lead(s.Context(), id, drivebay.LeaveCancel, ""))
		expect(drivebay.UsageInUse, drivebay.VolumeInUse, "")
		s.must(s.mgr.Lead(s.Context(), id, drivebay.LeaveRelease, ""))
		expect(drivebay.UsageReleasing, drivebay.VolumeReleasing, "snapshot snap")
		s.start() // and it is still leaving
		expect(drivebay.UsageReleasing, drivebay.VolumeReleasing, "volume v")
		s.must(s.unstage(v), s.e.DeleteSnapshot(s.Context(), snap.ID), s.e.DeleteVolume(s.Context(), v.ID))
		time.Sleep(time.Minute)
		if is := s.drive(v); is.Usage != drivebay.UsageReleased {
			s.Fatalf("empty, it is %v, %+v", is.Usage, is.Leaving)
		}
		s.must(s.mgr.Lead(s.Context(), id, drivebay.LeaveApprove, ""))
		time.Sleep(time.Minute)
		if is := s.drive(v); is.Usage != drivebay.UsageRemoved || is.Status != drivebay.StatusOffline {
			s.Errorf("taken out, it is %v, %v", is.Usage, is.Status)
		}
	})
}

// TestVolumeIsLetGo: a drive goes without what nobody needs any more, but not while that
// is mounted; if it stays after all, so does the volume.
func TestVolumeIsLetGo(t *testing.T) {
	for _, kind := range []string{"ext4 on a partition", "ext4 on thin"} {
		t.Run(kind, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", requests()[kind])
				id := v.Location.Drives[0]
				s.noSpare(v)
				if v.Location.Kind == drivebay.LocationThin {
					_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
					s.must(err)
				}
				if err := s.e.ReleaseVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrInvalid) {
					s.Errorf("its drive stays: %v", err)
				}
				s.must(s.stage(v), s.mgr.Lead(s.Context(), id, drivebay.LeaveRelease, ""))
				time.Sleep(time.Minute)
				if err := s.e.ReleaseVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
					s.Errorf("it is mounted: %v", err)
				}
				s.must(s.unstage(v), s.e.ReleaseVolume(s.Context(), v.ID), s.e.ReleaseVolume(s.Context(), v.ID))
				if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) {
					s.Errorf("staged again: %v", err)
				}
				time.Sleep(time.Minute)
				if is := s.drive(v); is.Usage != drivebay.UsageReleased || s.of(v).Usage != drivebay.VolumeReleased {
					s.Fatalf("the drive is %v, %+v, the volume %v", is.Usage, is.Leaving, s.of(v).Usage)
				}
				s.must(s.mgr.Lead(s.Context(), id, drivebay.LeaveCancel, ""))
				time.Sleep(time.Minute)
				if is := s.of(v); is.Usage != drivebay.VolumeInUse {
					s.Fatalf("cancelled, the volume is %v", is.Usage)
				}
				s.must(s.stage(v), s.unstage(v), s.mgr.Lead(s.Context(), id, drivebay.LeaveRelease, ""))
				time.Sleep(time.Minute)
				s.must(s.e.ReleaseVolume(s.Context(), v.ID))
				time.Sleep(time.Minute)
				s.must(s.mgr.Lead(s.Context(), id, drivebay.LeaveApprove, ""))
				time.Sleep(time.Minute)
				if is := s.drive(v); is.Usage != drivebay.UsageRemoved || is.Status != drivebay.StatusOffline {
					s.Errorf("taken out, it is %v, %v", is.Usage, is.Status)
				}
			})
		})
	}
}

// noSpare leaves a volume nowhere to go to.
func (s *stand) noSpare(v drivebay.Volume) {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		s.must(s.mgr.Cordon(s.Context(), d.ID, !slices.Contains(v.Location.Drives, d.ID)))
	}
}
