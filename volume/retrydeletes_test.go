package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// awayUnrecorded makes volume v on a drive that is pulled, and loses the record of it.
func (s *stand) awayUnrecorded() (v drivebay.Volume, serial string) {
	s.Helper()
	v = s.make("v", requests()["a partition"])
	serial = s.serialOf(v.Location.Drives[0])
	s.inject(v.Location.Drives[0], "vanish")
	time.Sleep(time.Minute)
	s.loseRecord(v)
	return v, serial
}

// TestRetriedDeletionLasts: a deletion that failed, and that an operator retries, lasts like one that the caller repeats. An older volume
// with that id on a drive that was away is not adopted when the drive returns.
func TestRetriedDeletionLasts(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		_, serial := s.awayUnrecorded()
		v := s.make("v", requests()["a partition"])
		s.inject(v.Location.Drives[0], "read-only")
		if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil || s.of(v).CSIStatus != drivebay.CSIFailed {
			t.Fatalf("deleted on a read-only drive: %v", err)
		}
		s.inject(v.Location.Drives[0], "heal")
		time.Sleep(time.Minute)
		s.must(s.retried(func() error { return s.e.RetryVolume(s.Context(), v.ID) }))
		s.comesBack(serial)
		time.Sleep(time.Minute)
		if is, there := s.e.Volumes().Get(v.ID); there {
			t.Errorf("it was deleted, and is a volume again: %v on %v", is.CSIStatus, is.Location.Drives)
		}
		s.must(s.e.AdoptVolume(s.Context(), v.ID), s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
	})
}

// TestResumedDeletionLasts: so does one that is completed after a restart of the daemon.
func TestResumedDeletionLasts(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onMachine(t, sameDrives(2), volume.Options{After: k.step}, func(s *stand) {
		_, serial := s.awayUnrecorded()
		v := s.make("v", requests()["a partition"])
		k.anew(1)
		if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, errKilled) {
			t.Fatalf("it was not killed: %v", err)
		}
		k.anew(0)
		s.start()
		time.Sleep(time.Minute)
		if is, there := s.e.Volumes().Get(v.ID); there {
			t.Fatalf("its removal does not go on: %v, %s", is.CSIStatus, is.Condition.Message())
		}
		s.comesBack(serial)
		time.Sleep(time.Minute)
		if is, there := s.e.Volumes().Get(v.ID); there {
			t.Errorf("it was deleted, and is a volume again: %v on %v", is.CSIStatus, is.Location.Drives)
		}
	})
}

// TestAdoptedRightAfterDeletion: a volume is adopted by name as soon as the removal of another one, which was found half made under its name, has
// said that a drive has it.
func TestAdoptedRightAfterDeletion(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onMachine(t, sameDrives(2), volume.Options{After: k.step}, func(s *stand) {
		old, serial := s.awayUnrecorded()
		k.anew(3)
		r := requests()["a partition"]
		r.Name = "v"
		if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, errKilled) {
			t.Fatalf("it was not killed: %v", err)
		}
		k.anew(0)
		s.forget()
		time.Sleep(time.Minute)
		if is := s.of(old); is.CSIStatus != drivebay.CSIFailed {
			t.Fatalf("what was found half made is %v", is.CSIStatus)
		}
		s.comesBack(serial)
		time.Sleep(time.Minute)
		s.notYet("deleted beside the volume", s.e.DeleteVolume(s.Context(), old.ID))
		s.must(s.e.AdoptVolume(s.Context(), old.ID))
		if is := s.of(old); is.Location.Partition != old.Location.Partition {
			t.Errorf("adopted is %+v, want %+v", is.Location, old.Location)
		}
	})
}
