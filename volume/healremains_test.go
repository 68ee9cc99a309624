package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestHealSaysWhatRemains: the report of a healing has the findings that no repair ends,
// and none where all is repaired.
func TestHealSaysWhatRemains(t *testing.T) {
	t.Parallel()
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		heal := func(dry bool) (steps int, remaining string) {
			s.Helper()
			r, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID, DryRun: dry})
			s.must(err)
			return len(r.Steps), reasons(r.Remaining)
		}
		for _, c := range []struct {
			name      string
			happens   func()
			dry       bool
			steps     bool
			remaining string
		}{
			{"all is well", func() {}, false, false, ""},
			{"what would be repaired", func() { s.must(s.sim.UnmountBehind(target(v, "pod"))) }, true, true, ""},
			{"repaired", func() {}, false, true, ""},
			{"its drive is pulled", func() {
				s.must(s.unpublish(v, "pod"), s.unstage(v), s.sim.Inject(hostsim.Fault{Bay: s.drive(v).Slot.Bay, Fault: "vanish"}))
				time.Sleep(time.Minute)
			}, false, false, "DiskRemoved"},
			{"would anything be repaired", func() {}, true, false, "DiskRemoved"},
		} {
			c.happens()
			if steps, remaining := heal(c.dry); (steps > 0) != c.steps || remaining != c.remaining {
				s.Errorf("%s: %d steps, %q remains, want %q", c.name, steps, remaining, c.remaining)
			}
		}
	})
}
