package volume_test

import (
	"context"
	"testing"
	"time"

	"github.com/drivebay/drivebay/volume"
)

// TestDeleteAfterCallerEnded: a caller whose time is over shares no memory with the deletion that continues.
// The race detector shows a fault.
func TestDeleteAfterCallerEnded(t *testing.T) {
	t.Parallel()
	onMachine(t, fourDrives, volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a partition"])
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		if err := s.e.DeleteVolume(ctx, v.ID); err == nil {
			t.Log("the deletion was faster than the caller")
		}
		time.Sleep(time.Minute)
		if _, ok := s.e.Volumes().Get(v.ID); ok {
			t.Error("the volume is not deleted")
		}
	})
}
