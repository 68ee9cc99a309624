package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
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

// TestHiddenIsNotOK: a repeated stage or publish is refused while a later mount hides the path, and changes
// nothing there. It succeeds when the path is visible again.
func TestHiddenIsNotOK(t *testing.T) {
	onStand(t, func(s *stand) {
		v, above := s.make("v", drivebay.VolumeRequest{}), s.make("above", drivebay.VolumeRequest{})
		staged, published := staging(above)+"/staged", staging(above)+"/published"
		again := map[string]func() error{
			"stage": func() error { return s.stage(v, func(r *drivebay.StageRequest) { r.Path = staged }) },
			"publish": func() error {
				return s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.Staging, r.Target = staged, published })
			},
			"publish elsewhere": func() error {
				return s.publish(v, "pod", func(r *drivebay.PublishRequest) { r.Staging = staged })
			},
		}
		s.must(again["stage"](), again["publish"](), s.stage(above))
		for what, f := range again {
			if err := f(); !errors.Is(err, drivebay.ErrRefused) {
				s.Errorf("%s: %v", what, err)
			}
		}
		if a, b := len(s.mounts(staged)), len(s.mounts(published)); a != 1 || b != 1 || s.look(staged) != host.PlaceNothing {
			s.Errorf("%d and %d mounts, and the hiding volume has a folder: %v", a, b, s.look(staged))
		}
		s.must(s.unstage(above), again["stage"](), again["publish"]())
	})
}
