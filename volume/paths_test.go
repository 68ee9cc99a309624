package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// TestPathsWithContent: a file with content at a target was not made by a publish. It is
// neither bound over nor removed, and the volume is as it was.
func TestPathsWithContent(t *testing.T) {
	onStand(t, func(s *stand) {
		b := s.make("b", drivebay.VolumeRequest{Block: true})
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(b), s.stage(v))
		for _, v := range []drivebay.Volume{b, v} {
			s.sim.PutFile(target(v, "pod"))
			if err := s.publish(v, "pod"); !errors.Is(err, drivebay.ErrBusy) || s.of(v).CSIStatus != drivebay.CSIVolumeReady {
				s.Errorf("published over a file, block %v: %v, %v", v.Mode != drivebay.ModeFS, err, s.of(v).CSIStatus)
			}
			if err := s.unpublish(v, "pod"); !errors.Is(err, drivebay.ErrBusy) || s.look(target(v, "pod")) != host.PlaceFile {
				s.Errorf("unpublished where a file is, block %v: %v", v.Mode != drivebay.ModeFS, err)
			}
			s.must(s.publish(v, "other"), s.unpublish(v, "other"), s.unpublish(v, "other"))
			if s.look(target(v, "other")) != host.PlaceNothing {
				s.Error("what a publish made was left")
			}
		}
	})
}
