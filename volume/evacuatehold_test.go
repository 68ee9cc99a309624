package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// table waits until that of a move has this in it.
func (s *stand) table(v drivebay.Volume, want string) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, err := s.sim.Run(s.Context(), "dmsetup", "table", lvm.MapperName(v.Location.VG, "pvmove0"))
		if err == nil && strings.Contains(string(out), want) {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("the table of its move is %q (%v), without %q", out, err, want)
		}
	}
}

// TestEvacuationHeld: a write that fails while a volume moves is kept until it is known
// where the volume will be. If one of the drives goes, all is written to the old one
// and nowhere else, and when it is back the move begins anew.
func TestEvacuationHeld(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "ext4 on thin"} {
		for _, goes := range []string{"old", "spare"} {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				used, idle := s.twoOf(name)
				s.word(used, "held")
				old := used.Location.Drives[0]
				lost, spare := old, ""
				if _, spare = s.idle(old); goes == "spare" {
					lost = spare
				}
				s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
				s.table(used, "handle_errors")
				if name != "a linear volume" { // lvm gives the move its own table again
					s.must(s.stage(idle))
					s.table(used, "handle_errors")
				}
				serial := s.serialOf(lost)
				s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}))
				s.table(used, " linear ")
				s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
				s.usage(old, drivebay.UsageReleased, 5*time.Minute)
				if got := s.word(used, ""); got != "held" {
					t.Errorf("%s, without the %s drive for a while: it reads %q", name, goes, got)
				}
			})
		}
	}
}
