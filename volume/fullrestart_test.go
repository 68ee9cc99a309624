package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestUnpublishedOnAFullDisk: that a block volume was unpublished and unstaged could not be stored, and the daemon is restarted. Nothing shows who
// has it open: it is not deleted before both calls are repeated.
func TestUnpublishedOnAFullDisk(t *testing.T) {
	t.Parallel()
	onFull(t, func(s *stand, f *fullStore) {
		v := s.make("v", requests()["a partition"])
		s.must(s.stage(v), s.publish(v, "pod"))
		f.fill(true)
		s.must(s.unpublish(v, "pod"), s.unstage(v))
		s.start()
		f.fill(false)
		time.Sleep(20 * time.Minute)
		if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
			t.Errorf("deleted although it is published as its record has it: %v", err)
		}
		s.must(s.unpublish(v, "pod"), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
	})
}
