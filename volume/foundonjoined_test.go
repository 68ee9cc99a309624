package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestFoundOnJoinedDrive: a mirror is about to move to a third drive, and is found on that one alone, while its legs are away and the records
// are lost. Once they are back it can be used.
func TestFoundOnJoinedDrive(t *testing.T) {
	t.Parallel()
	k := &killer{}
	onMachine(t, nvmeDrives(3), volume.Options{After: k.step, Tick: 10 * time.Second}, func(s *stand) {
		r := rawVolume(drivebay.BackingMirror)
		v := s.make("v", r)
		s.must(s.stage(v))
		s.word(v, "first")
		s.must(s.unstage(v))
		legs := v.Location.Drives
		k.anew(4) // the third drive has joined
		s.lead(v, drivebay.LeaveRelease)
		s.until("killed", k.dead)
		k.arm(0)
		var serials []string
		for _, id := range legs {
			serials = append(serials, s.serialOf(id))
			s.inject(id, "vanish")
		}
		time.Sleep(time.Minute)
		s.forget()
		time.Sleep(11 * time.Minute)

		for _, serial := range serials {
			s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
		}
		time.Sleep(11 * time.Minute)
		v = s.of(v).Volume
		s.must(s.stage(v))
		if s.word(v, "") != "first" || len(v.Location.Drives) != 2 {
			s.Errorf("it is on %v, and has other data", v.Location.Drives)
		}
		s.must(s.unstage(v))
	})
}
