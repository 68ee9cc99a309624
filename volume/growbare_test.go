package volume_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// bareGrowth is a machine whose own filesystem can be grown, through a folder at which nothing is mounted.
type bareGrowth struct {
	host.Worker
	s  *stand
	at []string
}

func (m *bareGrowth) Grow(ctx context.Context, p host.Place, fs string) error {
	if len(m.s.mounts(kubelet+"/"+p.Name)) == 0 {
		m.at = append(m.at, p.Name)
		return nil
	}
	return m.Worker.Grow(ctx, p, fs)
}

// TestBareFolderIsNotGrown: a path that was unmounted by hand is not grown: it shows the filesystem of the system. The volume is grown
// when it is mounted again.
func TestBareFolderIsNotGrown(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		m := &bareGrowth{Worker: s.sim, s: s}
		s.machine = m
		s.start()
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		for _, p := range []string{target(v, "pod"), staging(v)} {
			s.must(s.sim.Unmount(s.Context(), place(p)))
		}
		time.Sleep(time.Minute)
		_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 1<<30})
		s.must(err)
		for _, p := range []string{target(v, "pod"), staging(v)} {
			if _, err := s.e.ExpandNode(s.Context(), v.ID, p, drivebay.SizeRange{}, nil); !errors.Is(err, drivebay.ErrBusy) {
				s.Errorf("grown at %s: %v", p, err)
			}
		}
		if len(m.at) > 0 {
			s.Errorf("grown through bare folders: %q", m.at)
		}
		s.must(s.stage(v), s.publish(v, "pod"))
		if _, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), drivebay.SizeRange{}, nil); err != nil {
			s.Errorf("mounted again: %v", err)
		}
	})
}

// TestPublishOneLeg: a mirror of which a drive is away is to be staged first, as it is with both.
func TestPublishOneLeg(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a mirror"])
		s.inject(v.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		if err := s.publish(v, "pod"); !errors.Is(err, drivebay.ErrBusy) {
			s.Errorf("published: %v", err)
		}
		s.must(s.stage(v), s.publish(v, "pod"))
	})
}

// TestPublishNotOpen: a block volume whose device was closed by hand is to be staged first: its drive is here.
func TestPublishNotOpen(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a linear volume"])
		s.must(s.stage(v))
		_, err := s.sim.Run(s.Context(), "lvm", "lvchange", "-an", v.Location.VG+"/"+v.Location.LV)
		s.must(err)
		time.Sleep(11 * time.Minute)
		if err := s.publish(v, "pod"); !errors.Is(err, drivebay.ErrBusy) {
			s.Errorf("published: %v", err)
		}
		s.must(s.stage(v), s.publish(v, "pod"))
	})
}
