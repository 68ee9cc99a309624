package volume_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestGroupTargetHasToLeave: the drive that a volume group is moving to has to leave as well, before anything has arrived. Data do not move
// there.
func TestGroupTargetHasToLeave(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a thin volume", "a mirror"} {
		k := &killer{}
		var s *stand
		var v drivebay.Volume
		target, at := "", 0
		after := func(_, step string) error {
			if step == "join" && target == "" {
				all, _ := s.st.Volumes()
				target, at = all[v.ID].Volume.Location.Drives[len(v.Location.Drives)], len(k.steps())+1
				s.must(s.mgr.Operate(s.Context(), target, drivebay.LeaveRelease, ""))
			}
			return k.step("", step)
		}
		onMachine(t, sameDrives(4), volume.Options{After: after}, func(st *stand) {
			s, v = st, st.make("v", requests()[name])
			old := v.Location.Drives[0]
			s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
			time.Sleep(20 * time.Minute)
			if target == "" {
				t.Fatal("it does not move")
			}
			for _, text := range s.events(drivebay.EventVolumeMoved) {
				if strings.HasSuffix(text, "to drive "+target) {
					t.Errorf("%s: %s, which has to leave; the steps before it was released: %q, after: %q", name, text, k.steps()[:at], k.steps()[at:])
				}
			}
			if on := s.of(v).Location.Drives; slices.Contains(on, target) || slices.Contains(on, old) {
				t.Errorf("%s: it is on %v", name, on)
			}
			s.usage(target, drivebay.UsageReleased, time.Minute)
			s.usage(old, drivebay.UsageReleased, time.Minute)
		})
	}
}
