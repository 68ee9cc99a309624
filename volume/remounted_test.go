package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestTargetRemounted: a path of a pod that an operator has remounted read-only is a finding in every answer, though the filesystem itself
// takes writes, and heal binds it again. A path that was published read-only is no finding.
func TestTargetRemounted(t *testing.T) {
	const want = "ReadOnlyFilesystem"
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		remount := func(readOnly bool) {
			s.must(s.sim.UnmountBehind(target(v, "pod")))
			s.must(s.sim.Bind(s.Context(), place(staging(v)), place(target(v, "pod")), readOnly))
			time.Sleep(5 * time.Second)
		}
		remount(true)
		got, err := s.stats(v, target(v, "pod"))
		if err != nil || !strings.Contains(reasons(got.Condition), want) || !strings.Contains(reasons(s.of(v).Condition), want) {
			t.Errorf("%s, of the set %s, %v", reasons(got.Condition), reasons(s.of(v).Condition), err)
		}
		if got := s.heal(v, dry); got != "?restore the bind mounts of pods" {
			t.Errorf("heal would do %q", got)
		}
		if got := s.heal(v); got != "restore the bind mounts of pods" {
			t.Errorf("heal did %q", got)
		}
		time.Sleep(5 * time.Second)
		if c := s.of(v).Condition; c.Abnormal() {
			t.Errorf("healed: %s", c.Message())
		}
		if m := s.mounts(target(v, "pod")); len(m) != 1 || strings.HasPrefix(m[0].Opts, "ro") {
			t.Errorf("healed: %+v", m)
		}
	})
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.ReadOnly = true }))
		time.Sleep(5 * time.Second)
		if c := s.of(v).Condition; c.Abnormal() {
			t.Errorf("published read-only because we were told to: %s", c.Message())
		}
	})
}
