package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestForgetDrive: a drive is forgotten when it is OFFLINE and no record names it. Then
// it is in no list, also after a restart, and is new when it comes back.
func TestForgetDrive(t *testing.T) {
	t.Parallel()
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: "ext4"}})
		snap, err := s.e.CreateSnapshot(s.Context(), "s", v.ID)
		s.must(err)
		d := *s.drive(v)
		refused := func(why string) {
			s.Helper()
			if err := s.e.ForgetDrive(s.Context(), d.ID, ""); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), why) {
				s.Errorf("forget it: %v, want %q", err, why)
			}
			if _, ok := s.mgr.Snapshot().Find(d.ID); !ok {
				s.Fatal("it is forgotten")
			}
		}
		refused("volume " + v.ID)
		s.must(s.sim.Inject(hostsim.Fault{Bay: d.Slot.Bay, Fault: "vanish"}))
		time.Sleep(time.Minute)
		refused("`drivebay volume forget " + v.ID + "`")
		s.must(s.e.ForgetVolume(s.Context(), v.ID))
		if _, ok := s.e.Volumes().GetSnapshot(snap.ID); ok {
			s.Error("its snapshot is not forgotten with the volume")
		}
		s.must(s.sim.Inject(hostsim.Fault{Bay: d.Slot.Bay, Fault: "return"}))
		time.Sleep(time.Minute)
		for _, w := range s.e.Volumes().Volumes { // it is found again with the drive
			s.must(s.e.DeleteVolume(s.Context(), w.ID))
		}
		for _, w := range s.e.Volumes().Snapshots {
			s.must(s.e.DeleteSnapshot(s.Context(), w.ID))
		}
		refused("only the record of a drive that is OFFLINE")
		s.must(s.sim.Inject(hostsim.Fault{Bay: d.Slot.Bay, Fault: "vanish"}))
		time.Sleep(time.Minute)
		s.must(s.e.ForgetDrive(s.Context(), d.ID, "it went back to its maker"))
		if _, ok := s.mgr.Snapshot().Find(d.ID); ok {
			s.Error("it is still listed")
		}
		if err := s.e.ForgetDrive(s.Context(), d.ID, ""); !errors.Is(err, drivebay.ErrNotFound) {
			s.Errorf("forgotten twice: %v", err)
		}
		s.restart(func() {})
		if _, ok := s.mgr.Snapshot().Find(d.ID); ok {
			s.Error("it is listed after a restart")
		}
		s.must(s.sim.Inject(hostsim.Fault{Bay: d.Slot.Bay, Fault: "return"}))
		time.Sleep(time.Minute)
		if is := s.inBay(d.Slot.Bay); is.ID != d.ID || !is.FirstSeen.After(d.FirstSeen) {
			s.Errorf("back, it is %s, first seen %v", is.ID, is.FirstSeen)
		}
	})
}

// TestForgetAfterKeepsDrivesOfVolumes: a drive that is missing for long is not forgotten while a
// record names it, also without a claim.
func TestForgetAfterKeepsDrivesOfVolumes(t *testing.T) {
	t.Parallel()
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: "ext4"}})
		d := *s.drive(v)
		s.must(s.mgr.Configure(s.Context(), drivemgr.Options{ForgetAfter: time.Hour, Loop: true}), s.mgr.Claim(s.Context(), d.ID, false))
		s.must(s.sim.Inject(hostsim.Fault{Bay: d.Slot.Bay, Fault: "vanish"}))
		time.Sleep(2 * time.Hour)
		if _, ok := s.mgr.Snapshot().Find(d.ID); !ok {
			s.Fatal("the drive of a volume is forgotten")
		}
		s.must(s.e.ForgetVolume(s.Context(), v.ID))
		time.Sleep(10 * time.Minute)
		if _, ok := s.mgr.Snapshot().Find(d.ID); ok {
			s.Error("the drive that no record names is not forgotten")
		}
	})
}
