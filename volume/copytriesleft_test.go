package volume_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestOneFailedWipeAfterFailedCopies: a volume could not be copied several times, and another drive is chosen. The first attempt to remove the unfinished copy
// fails for a passing reason. It is tried again: nothing of the volume stays on the other drive.
func TestOneFailedWipeAfterFailedCopies(t *testing.T) {
	t.Parallel()
	for _, wipe := range []drivebay.Wipe{drivebay.WipeNone, drivebay.WipeZero} {
		onMachine(t, sameDrives(2), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
			r := requests()["a partition"]
			r.Class.Wipe = wipe
			v := s.onAPartition(r)
			s.lead(v, drivebay.LeaveRelease)
			s.until("copying", func() bool { done, _, ok := s.e.CopyProgress(v.ID); return ok && done > 4<<20 })
			to := s.record(v).Work.Move.To.Drives[0]
			s.inject(to, "eio")
			s.until("taken back", func() bool { w := s.record(v).Work; return w == nil || slices.Contains(w.Made, "take back") })
			time.Sleep(20 * time.Second)
			s.inject(to, "heal")
			s.lead(v, drivebay.LeaveCancel)
			time.Sleep(15 * time.Minute)
			is := s.record(v)
			if d, _ := s.mgr.Snapshot().Find(to); d.Content.Kind != drivebay.ContentBlank || len(is.Left) > 0 || is.Work != nil {
				t.Errorf("%v: %v drive %v has %+v; the record has %+v, %+v", wipe, d.Health, d.Status, d.Content, is.Left, is.Work)
			}
		})
	}
}
