package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// withoutDriveRecord restarts the daemon without the record of a drive, which is away.
func (s *stand) withoutDriveRecord(drive string) {
	s.Helper()
	s.inject(drive, "vanish")
	time.Sleep(10 * time.Second)
	s.restart(func() { s.must(s.st.DeleteRecords([]string{drive})) })
	s.must(s.mgr.Refresh(s.Context()))
	time.Sleep(2 * time.Minute)
	if d, known := s.mgr.Snapshot().Find(drive); !known || d.Status != drivebay.StatusOffline || d.Usage != drivebay.UsageInUse || d.Claim != nil || d.Health != drivebay.HealthUnknown {
		s.Errorf("a drive in no record that a volume is on is known %v: %+v", known, d)
	}
}

// TestDriveWithoutRecord: a drive that the record of a volume names, and that is in no record of a drive, may come back:
// the volume is not deleted without it, and is deleted and wiped when it is back. Or an operator gives it up.
func TestDriveWithoutRecord(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		for name, r := range some(requests()) {
			onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
				r.Class.Wipe = drivebay.WipeZero
				v := s.make("v", r)
				var serials []string
				for _, drive := range v.Location.Drives {
					serials = append(serials, s.serialOf(drive))
					s.withoutDriveRecord(drive)
				}
				for range 2 {
					if err := s.e.DeleteVolume(s.Context(), v.ID); !askedAgain(err) {
						s.Fatalf("%s: deleted without its drive: %v", name, err)
					}
					time.Sleep(time.Minute)
				}
				drive := v.Location.Drives[0]
				if err := s.e.ForgetDrive(s.Context(), drive, ""); !errors.Is(err, drivebay.ErrRefused) {
					s.Errorf("%s: forget: %v", name, err)
				}
				if !back {
					for _, drive := range v.Location.Drives {
						s.giveUp(drive)
					}
					s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }), s.e.ForgetDrive(s.Context(), drive, ""))
					time.Sleep(20 * time.Minute)
					if d, known := s.mgr.Snapshot().Find(drive); known {
						s.Errorf("%s: it is forgotten, and back: %+v", name, d)
					}
					return
				}
				for _, serial := range serials {
					s.comesBack(serial)
				}
				time.Sleep(11 * time.Minute)
				s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
				time.Sleep(11 * time.Minute)
				s.blankDrive(drive)
			})
		}
	}
}

// TestMirrorWithoutDriveRecord: the leg of a mirror on a drive that is away and in no record stays there, while a spare
// is there, until an operator gives the drive up.
func TestMirrorWithoutDriveRecord(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(3), volume.Options{Heal: true}, func(s *stand) {
		v := s.make("v", requests()["a mirror"])
		drive := v.Location.Drives[1]
		s.withoutDriveRecord(drive)
		time.Sleep(20 * time.Minute)
		if is := s.of(v); is.Location.Drives[1] != drive || !is.Condition.Abnormal() || strings.Contains(reasons(is.Condition), "Unknown") {
			t.Errorf("it is on %v: %s", is.Location.Drives, is.Condition.Message())
		}
		s.giveUp(drive)
		time.Sleep(20 * time.Minute)
		if is := s.of(v); is.Location.Drives[1] == drive || is.Condition.Abnormal() {
			t.Errorf("given up, it is on %v: %s", is.Location.Drives, is.Condition.Message())
		}
	})
}
