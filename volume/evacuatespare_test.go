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
