package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestContextOption: the label that the kubelet gives is an option of the mount; a volume has
// one label at a time, and what is no label is refused.
func TestContextOption(t *testing.T) {
	t.Parallel()
	const one, two = "system_u:object_r:container_file_t:s0:c21,c734", "system_u:object_r:container_file_t:s0:c1,c2"
	labelled := func(options ...string) (func(*drivebay.StageRequest), func(*drivebay.PublishRequest)) {
		return func(r *drivebay.StageRequest) { r.Options = options }, func(r *drivebay.PublishRequest) { r.Options = options }
	}
	for _, r := range some(requests()) {
		if r.Block {
			continue
		}
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make("v", r)
			stage, publish := labelled(`context="`+one+`"`, "noatime")
			s.must(s.stage(v, stage), s.stage(v, stage), s.publish(v, "pod", publish), s.publish(v, "pod", publish))
			for _, path := range []string{staging(v), target(v, "pod")} {
				if m := s.mounts(path); len(m) != 1 || !strings.Contains(m[0].Opts, `context="`+one+`"`) {
					s.Errorf("%s is mounted as %v", path, m)
				}
			}
			bare, _ := labelled("context="+one, "noatime")
			s.must(s.stage(v, bare)) // the quotes are no part of it
			otherStage, otherPublish := labelled(`context="`+two+`"`, "noatime")
			if err := s.stage(v, otherStage); !errors.Is(err, drivebay.ErrExists) || !strings.Contains(err.Error(), one) {
				s.Errorf("staged with another label: %v", err)
			}
			if err := s.publish(v, "second", otherPublish); !errors.Is(err, drivebay.ErrBusy) || !strings.Contains(err.Error(), two) {
				s.Errorf("published with another label: %v", err)
			}
			_, plain := labelled("noatime")
			s.must(s.publish(v, "third", plain), s.unpublish(v, "third"))

			s.start() // a new life knows the label
			if err := s.publish(v, "second", otherPublish); !errors.Is(err, drivebay.ErrBusy) {
				s.Errorf("published with another label after a restart: %v", err)
			}
			s.must(s.unpublish(v, "pod"), s.unstage(v), s.stage(v, otherStage), s.publish(v, "pod", otherPublish))
			if m := s.mounts(staging(v)); len(m) != 1 || !strings.Contains(m[0].Opts, two) {
				s.Errorf("staged anew: %v", m)
			}
			s.must(s.unpublish(v, "pod"), s.unstage(v), s.stage(v))
			if err := s.publish(v, "pod", publish); !errors.Is(err, drivebay.ErrBusy) {
				s.Errorf("published with a label, staged without: %v", err)
			}
			s.must(s.unstage(v))
			for _, bad := range []string{"context=", `context=""`, `context="a:b"`, `context="a:b:c:s0,rw,dev"x`, "context=a:b:c d", `context="a:b:c"` + "\n", "fscontext=a:b:c:s0", "context"} {
				stage, _ := labelled(bad)
				if err := s.stage(v, stage); !errors.Is(err, drivebay.ErrInvalid) {
					s.Errorf("%q: %v", bad, err)
				}
			}
			both, _ := labelled("context="+one, "context="+two)
			if err := s.stage(v, both); !errors.Is(err, drivebay.ErrInvalid) {
				s.Errorf("two labels: %v", err)
			}
		})
	}
}

// TestContextIsHealed: what was unmounted behind our back is mounted again with its label.
func TestContextIsHealed(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		const label = "system_u:object_r:container_file_t:s0:c21,c734"
		s.must(s.stage(v, func(r *drivebay.StageRequest) { r.Options = []string{`context="` + label + `"`} }))
		s.must(s.sim.UnmountBehind(staging(v)))
		time.Sleep(10 * time.Second)
		_, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID})
		s.must(err)
		if m := s.mounts(staging(v)); len(m) != 1 || !strings.Contains(m[0].Opts, label) {
			s.Errorf("healed: %v", m)
		}
	})
}
