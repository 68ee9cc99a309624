package volume_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestMirrorOnAnotherPair: one of three drives turns out to be unfit when a mirror is made. The mirror is made on the other two, unless the other
// drive of the first pair has been written to: then the request is retried there.
func TestMirrorOnAnotherPair(t *testing.T) {
	t.Parallel()
	for unfit := range 3 {
		onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
			id := s.mgr.Snapshot().Drives[unfit].ID
			s.inject(id, "permission")
			r := requests()["a mirror"]
			r.Name, r.Size.Required = "v", 1<<30
			v, err := s.e.CreateVolume(s.Context(), r)
			if errors.Is(err, drivebay.ErrUnavailable) {
				s.inject(id, "heal")
				time.Sleep(time.Minute)
				s.make("v", requests()["a mirror"])
				return
			}
			s.must(err)
			if len(v.Location.Drives) != 2 || slices.Contains(v.Location.Drives, id) {
				t.Errorf("it is on %v, and %s is unfit", v.Location.Drives, id)
			}
			s.inject(id, "heal")
			time.Sleep(time.Minute)
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
		})
	}
}
