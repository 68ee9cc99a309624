package volume_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestSalvaged: the drive that volumes move from dies in the middle, and is given up.
// What had moved goes on as if nothing had been; what had not is lost and can be
// forgotten; the other drive holds nothing of that. Killed after each step it ends the
// same.
func TestSalvaged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "ext4 on thin"} {
		for _, moved := range []bool{false, true} {
			if moved && name != "a linear volume" {
				continue // a pool moves as a whole
			}
			steps := 1
			for n := 1; n <= steps && !t.Failed(); n++ {
				k := &killer{}
				onMachine(t, sameDrives(2), volume.Options{After: k.step}, func(s *stand) {
					used, idle := s.twoOf(name)
					s.word(used, "used")
					old := used.Location.Drives[0]
					_, spare := s.idle(old)
					arrived := func() (id string) {
						for _, v := range []drivebay.Volume{used, idle} {
							if slices.Contains(k.steps(), "moved "+v.Location.LV) {
								id = v.ID
							}
						}
						return id
					}
					k.anew(0)
					s.must(s.mgr.Lead(s.Context(), old, drivebay.LeaveRelease, ""))
					for moved && arrived() == "" {
						time.Sleep(100 * time.Millisecond)
					}
					s.table(used, "handle_errors")
					serial := s.serialOf(old)
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}))
					s.table(used, " linear ")
					survivor := arrived()
					k.anew(n)
					s.must(s.mgr.Lead(s.Context(), old, drivebay.LeaveForce, "it is dead"))
					time.Sleep(30 * time.Second)
					if survivor != used.ID {
						if is := s.of(used); used.Mode == drivebay.ModeFS && slices.Equal(is.Location.Drives, []string{old}) {
							t.Error("it is given up while it is mounted")
						}
						s.must(s.unstage(used))
					}
					time.Sleep(time.Minute)
					s.start()
					time.Sleep(time.Minute)
					did := k.steps()
					k.anew(0)
					for _, v := range []drivebay.Volume{used, idle} {
						is := s.of(v)
						want := old
						if v.ID == survivor {
							want = spare
						}
						if !slices.Equal(is.Location.Drives, []string{want}) {
							t.Errorf("%s, %v: %s is on %v, not on %s", name, moved, v.Name, is.Location.Drives, want)
						}
						if v.ID != survivor {
							if is.OperationalStatus != drivebay.Missing {
								t.Errorf("%s is lost, and %v", v.Name, is.OperationalStatus)
							}
							s.must(s.e.ForgetVolume(s.Context(), v.ID))
							continue
						}
						if v.ID == used.ID {
							if got := s.word(v, ""); got != "used" {
								t.Errorf("it reads %q", got)
							}
							s.must(s.unstage(v))
						}
						if is.Usage != drivebay.VolumeInUse || is.OperationalStatus != drivebay.Operative {
							t.Errorf("%s has moved, and is %v, %v: %s", v.Name, is.Usage, is.OperationalStatus, is.Condition.Message())
						}
						s.must(s.stage(v), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
					}
					time.Sleep(time.Minute)
					s.blankDrive(spare)
					if steps = max(steps, len(did)); n == 1 || t.Failed() {
						t.Logf("%s, something had moved: %v; killed after step %d of %q", name, moved, n, did)
					}
				})
			}
		}
	}
}
