package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestSpareChosen: what moves goes to a drive like the one that it comes from, and of
// those to the smallest that has as much room.
func TestSpareChosen(t *testing.T) {
	t.Parallel()
	group := func(kind hostsim.Kind, serial, size string) hostsim.Group {
		return hostsim.Group{Count: 1, Kind: kind, Serial: serial, Size: size}
	}
	for want, others := range map[string][]hostsim.Group{
		"ALIKE":  {group(hostsim.KindSATAHDD, "DISK", "10GB"), group(hostsim.KindNVMe, "ALIKE", "40GB")},
		"NEAR":   {group(hostsim.KindNVMe, "FAR", "80GB"), group(hostsim.KindNVMe, "NEAR", "20GB"), group(hostsim.KindNVMe, "LESS", "5GB")},
		"ENOUGH": {group(hostsim.KindNVMe, "ENOUGH", "5GB"), group(hostsim.KindNVMe, "TINY", "1GB"), group(hostsim.KindSATAHDD, "DISK", "10GB")},
	} {
		spec := hostsim.Spec{Drives: append([]hostsim.Group{group(hostsim.KindNVMe, "OLD", "10GB")}, others...)}
		onMachine(t, spec, volume.Options{}, func(s *stand) {
			cordon := func(on bool) {
				for _, d := range s.mgr.Snapshot().Drives {
					s.must(s.mgr.Cordon(s.Context(), d.ID, on && d.Serial != "OLD"))
				}
			}
			cordon(true)
			v := s.make("v", requests()["a linear volume"])
			cordon(false)
			s.must(s.mgr.Operate(s.Context(), "OLD", drivebay.LeaveRelease, ""))
			s.usage(v.Location.Drives[0], drivebay.UsageReleased, 5*time.Minute)
			if got := s.serialOf(s.of(v).Location.Drives[0]); got != want {
				t.Errorf("it moved to %s, not to %s", got, want)
			}
		})
	}
}

// TestEvacuationTorn cuts the power while the first table of the spare is written: it
// is known again.
func TestEvacuationTorn(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onMachine(t, sameDrives(2), volume.Options{After: k.step}, func(s *stand) {
		v := s.make("v", requests()["a linear volume"])
		old := v.Location.Drives[0]
		_, spare := s.idle(old)
		k.anew(2) // the table
		s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
		for len(k.steps()) < 2 {
			time.Sleep(time.Second)
		}
		s.stop()
		s.stop = nil
		d, _ := s.mgr.Snapshot().Find(spare)
		disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
		s.must(err)
		s.must(disk.Zero(s.Context(), 512, 512), disk.Zero(s.Context(), d.Size-40960, 40960), disk.Close())
		s.start()
		s.usage(old, drivebay.UsageReleased, 5*time.Minute)
	})
}

// TestReleasedAwayTakesNoSpare: a drive is released while it is not there. Its group begins nothing: no
// spare is taken before the drive is back.
func TestReleasedAwayTakesNoSpare(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a thin volume"} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()[name])
			old := v.Location.Drives[0]
			serial := s.serialOf(old)
			_, spare := s.idle(old)
			s.inject(old, "vanish")
			time.Sleep(10 * time.Second)
			s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
			time.Sleep(10 * time.Minute)
			if d, _ := s.mgr.Snapshot().Find(old); len(s.of(v).Location.Drives) != 1 || d.Leaving == nil || !strings.Contains(d.Leaving.Cause, "is not there: put it back") {
				t.Errorf("%s: on %v while its drive is away: %+v", name, s.of(v).Location.Drives, d.Leaving)
			}
			s.blankDrive(spare)
			s.comesBack(serial)
			s.usage(old, drivebay.UsageReleased, 10*time.Minute)
			if on := s.of(v).Location.Drives; len(on) != 1 || on[0] != spare {
				t.Errorf("%s: on %v after its drive was back", name, on)
			}
		})
	}
}

// TestSpareForUnseenLeg: LVM does not see a leg of a mirror: its label was erased, or its drive is away. The spare for it has room for the leg.
func TestSpareForUnseenLeg(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"erased label", "away"} {
		t.Run(way, func(t *testing.T) {
			spec := hostsim.Spec{Drives: []hostsim.Group{
				{Count: 2, Kind: hostsim.KindNVMe, Serial: "OLD{n}", Size: "4GB"}, {Count: 1, Kind: hostsim.KindNVMe, Serial: "TINY", Size: "1GB"}, {Count: 1, Kind: hostsim.KindNVMe, Serial: "NEXT", Size: "5GB"}}}
			onMachine(t, spec, volume.Options{}, func(s *stand) {
				cordon := func(on bool) {
					for _, d := range s.mgr.Snapshot().Drives {
						s.must(s.mgr.Cordon(s.Context(), d.ID, on && !strings.HasPrefix(d.Serial, "OLD")))
					}
				}
				cordon(true)
				r := requests()["a mirror"]
				r.Size.Required = 2 << 30
				v := s.make("v", r)
				cordon(false)
				old := v.Location.Drives[0]
				d, _ := s.mgr.Snapshot().Find(old)
				if way == "away" {
					s.inject(old, "vanish")
				} else {
					s.eraseFront(d.Name + "p1")
				}
				time.Sleep(3 * time.Minute)
				room, err := s.e.Room(s.Context(), v.ID, drivebay.RoomQuery{Leave: old})
				s.must(err)
				if room.Against != "" || s.serialOf(room.Target) != "NEXT" {
					t.Errorf("room to leave: %+v", room)
				}
				s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
				time.Sleep(10 * time.Minute)
				if way != "away" {
					s.inject(old, "vanish")
				}
				s.usage(old, drivebay.UsageReleased, 30*time.Minute)
				if is := s.of(v); is.Condition.Abnormal() || !strings.HasPrefix(s.serialOf(is.Location.Drives[0])+s.serialOf(is.Location.Drives[1]), "NEXT") {
					t.Errorf("it is on %v: %v", is.Location.Drives, is.Condition)
				}
			})
		})
	}
}
