package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestHiddenByAnother: a volume that is staged below another's path is not there to
// be published when the other is mounted above it. That is the caller's fault, and
// the volume is as well as before.
func TestHiddenByAnother(t *testing.T) {
	onStand(t, func(s *stand) {
		v, above := s.make("v", drivebay.VolumeRequest{}), s.make("above", drivebay.VolumeRequest{})
		inside := staging(above) + "/inside"
		s.must(s.stage(v, func(r *drivebay.StageRequest) { r.Path = inside }), s.stage(above))
		err := s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.Staging = inside })
		if !errors.Is(err, drivebay.ErrRefused) || s.of(v).Failure != nil {
			s.Errorf("published from a path that nobody can see: %v, %+v", err, s.of(v).Failure)
		}
		s.must(s.unstage(above), s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.Staging = inside }))
		s.must(s.unpublish(v, "pod"), s.e.UnstageVolume(s.Context(), v.ID, inside))
	})
}
