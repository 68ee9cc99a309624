package volume_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestStoreOlderIsSaid: volumes were made after the backup of the store that the daemon starts
// with; they are taken in, and the store is said to be older. A store that is new says nothing
// of the kind, nor one that knows all there is, nor one that gets volumes with a claim.
func TestStoreOlderIsSaid(t *testing.T) {
	t.Parallel()
	for _, r := range some(namesakes()) {
		for _, c := range []struct {
			name  string
			newer bool
			with  func(s *stand, v drivebay.Volume)
		}{
			{"a backup", true, func(s *stand, v drivebay.Volume) { s.must(s.st.DeleteVolume(v.ID)) }},
			{"the same store", false, func(*stand, drivebay.Volume) {}},
			{"a new store", false, func(s *stand, _ drivebay.Volume) { s.st = store.Memory() }},
		} {
			t.Run(c.name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
					v := s.make("v", r)
					time.Sleep(5 * time.Minute)
					s.restart(func() { c.with(s, v) })
					time.Sleep(2 * time.Minute)
					if got := slices.Contains(s.e.Newer(), v.ID); got != c.newer || len(s.e.Newer()) > 1 {
						t.Errorf("%s: newer than the store: %v", c.name, s.e.Newer())
					}
					if s.of(v).CSIStatus != drivebay.CSICreated {
						t.Errorf("%s: it is %v", c.name, s.of(v).CSIStatus)
					}
					s.start()
					if len(s.e.Newer()) > 0 {
						t.Errorf("%s: after another start: %v", c.name, s.e.Newer())
					}
				})
			})
		}
	}
	t.Run("a claim", func(t *testing.T) {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			s.make("v", drivebay.VolumeRequest{})
			s.claimAll(false)
			s.restart(func() { s.st = store.Memory() })
			time.Sleep(10 * time.Minute)
			s.start()
			s.claimAll(true)
			if s.until("it is taken in", func() bool { return len(s.e.Volumes().Volumes) == 1 }); len(s.e.Newer()) > 0 {
				t.Errorf("newer than the store: %v", s.e.Newer())
			}
		})
	})
}
