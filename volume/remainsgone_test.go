package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestRemainsOfAnEarlierPartition: an older record store says that volumes have left something in a partition of a physical volume that was
// wiped and removed since. It holds up neither the deletion of a volume of the next one nor what is left in that, and is said.
func TestRemainsOfAnEarlierPartition(t *testing.T) {
	t.Parallel()
	onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
		v := s.make("v", rawVolume(drivebay.BackingLVM))
		const earlier = "11111111-2222-4333-8444-555555555555"
		s.must(s.st.PutRemains(drivebay.Remains{Drive: v.Location.Drives[0], Partition: earlier,
			Ranges: []drivebay.RemainsRange{{Start: 4 << 20, Size: 4 << 20, Wipe: drivebay.WipeZero}}}))
		s.must(s.e.DeleteVolume(s.Context(), v.ID))
		time.Sleep(time.Minute) // events are stored in the background
		if said := strings.Join(s.events(drivebay.EventVolumeLeft), "\n"); !strings.Contains(said, earlier) {
			t.Errorf("said: %q", said)
		}
		if left, err := s.st.Remains(); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		s.must(s.e.DeleteVolume(s.Context(), s.make("w", rawVolume(drivebay.BackingLVM)).ID))
	})
}
