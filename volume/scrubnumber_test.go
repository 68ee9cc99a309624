package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// besideAway returns a blank drive, and one with a sound filesystem in its first partition, which is away: it can get the name of the other.
func (s *stand) besideAway() (d, away drivebay.Drive) {
	s.Helper()
	d, away = s.named("nvme0n1"), s.named("nvme1n1")
	s.inject(d.ID, "vanish")
	time.Sleep(time.Minute)
	s.make("sound", requests()["ext4 on a partition"])
	s.inject(away.ID, "vanish")
	s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "return"}))
	time.Sleep(time.Minute)
	return d, away
}

// takesName pulls a drive, lets the one that is away get its name and number, and puts it back.
func (s *stand) takesName(d, away drivebay.Drive) {
	for _, f := range []hostsim.Fault{{Drive: d.Serial, Fault: "vanish"}, {Drive: away.Serial, Fault: "return"}, {Drive: d.Serial, Fault: "return"}} {
		s.must(s.sim.Inject(f))
	}
	time.Sleep(3 * time.Second)
}

// TestScrubOfAnotherDrive: the check of a filesystem waits for its drive. Meanwhile that is pulled, another one gets its name and number, and it
// is put back. What is found on the other drive is no verdict on the volume.
func TestScrubOfAnotherDrive(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		m := &beforeOpen{Machine: s.sim}
		s.machine = m
		s.start()
		d, other := s.besideAway()
		v := s.make("v", requests()["ext4 on a partition"])
		dev := s.device(v)
		s.inject(dev, "fs-corrupt")
		swapped := false
		m.arm("/dev/"+dev, func() {
			swapped = true
			s.takesName(d, other)
		})
		s.must(s.e.ScrubVolume(s.Context(), v.ID))
		time.Sleep(time.Minute)
		if !swapped {
			t.Fatal("the device was not opened")
		}
		if r := s.record(v).Scrub; r != nil {
			t.Errorf("the check of another drive counts: %+v", r)
		}
	})
}
