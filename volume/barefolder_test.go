package volume_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// TestNeverABareFolder: a pod is never shown the folder at which a filesystem should be
// mounted and is not: what it wrote would be on the disk of the system.
func TestNeverABareFolder(t *testing.T) {
	t.Parallel()
	ownOptions := func(r *drivebay.StageRequest) { r.Options = []string{"noatime"} } // nothing keeps them
	bare := func(s *stand, v drivebay.Volume) {
		s.Helper()
		for _, m := range s.mounts(target(v, "pod")) {
			if m.FS != "ext4" {
				s.Errorf("the pod sees %+v", m)
			}
		}
	}
	for name, do := range map[string]func(s *stand, v drivebay.Volume){
		"the daemon heals it by itself": func(s *stand, _ drivebay.Volume) { time.Sleep(20 * time.Minute) },
		"the daemon starts anew":        func(s *stand, _ drivebay.Volume) { s.reborn(); time.Sleep(20 * time.Minute) },
		"an operator heals it": func(s *stand, v drivebay.Volume) {
			if _, err := s.e.Heal(s.Context(), drivebay.HealRequest{Volume: v.ID}); err != nil && !errors.Is(err, drivebay.ErrRefused) {
				s.Error(err)
			}
		},
		"it is published again": func(s *stand, v drivebay.Volume) {
			if err := s.publish(v, "pod"); err == nil {
				s.Error("published")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, fourDrives, volume.Options{Heal: true}, func(s *stand) {
				v := s.make("v", drivebay.VolumeRequest{})
				s.must(s.stage(v, ownOptions), s.publish(v, "pod"))
				s.must(s.sim.UnmountBehind(target(v, "pod")), s.sim.UnmountBehind(staging(v)))
				do(s, v)
				bare(s, v)
				s.must(s.unpublish(v, "pod"), s.unstage(v), s.stage(v, ownOptions), s.publish(v, "pod"))
				if bare(s, v); len(s.mounts(target(v, "pod"))) != 1 {
					s.Error("it is not published in the end")
				}
			})
		})
	}
}

// unmounting is a machine on which a filesystem is unmounted right before it is bound.
type unmounting struct {
	host.Worker
	before func()
}

func (m *unmounting) Bind(ctx context.Context, from, to host.Place, readOnly bool) error {
	if m.before != nil {
		m.before()
	}
	return m.Worker.Bind(ctx, from, to, readOnly)
}

// TestUnmountedAtThatMoment: a filesystem is unmounted between the question and the bind.
func TestUnmountedAtThatMoment(t *testing.T) {
	onStand(t, func(s *stand) {
		m := &unmounting{Worker: s.sim}
		s.machine = m
		s.start()
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v))
		m.before = func() { s.must(s.sim.UnmountBehind(staging(v))) }
		if err := s.publish(v, "pod"); !errors.Is(err, drivebay.ErrBusy) {
			s.Errorf("published: %v", err)
		}
		if m.before = nil; len(s.mounts(target(v, "pod"))) > 0 {
			s.Errorf("the pod sees %+v", s.mounts(target(v, "pod")))
		}
		s.must(s.stage(v), s.publish(v, "pod"))
	})
}

// TestStaleNode: the node that a pod's path shows has the name of the volume's device and
// another number, as after its drive left and came back. It is published anew.
func TestStaleNode(t *testing.T) {
	t.Parallel()
	onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
		v := s.onAPartition(requests()["a partition"])
		s.must(s.stage(v), s.publish(v, "pod"))
		before := s.mounts(target(v, "pod"))
		s.stop()
		s.stop = nil
		r := s.record(v)
		for i := range r.Volume.Publications {
			p := &r.Volume.Publications[i]
			_, name, _ := strings.Cut(p.Device, " ")
			p.Device = "259:777 " + name
		}
		s.must(s.st.PutVolume(r))
		s.start()
		time.Sleep(time.Minute)
		s.must(s.publish(v, "pod"))
		if after := s.mounts(target(v, "pod")); len(after) != 1 || after[0].ID == before[0].ID {
			t.Errorf("the path showed %+v, and shows %+v", before, after)
		}
	})
}
