package volume_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestOlderStoreMidCopy: a store is restored from a moment when a volume was being copied to another drive. The copy has ended since, and
// the old one was wiped. The volume is where it was moved to, and can be used.
func TestOlderStoreMidCopy(t *testing.T) {
	t.Parallel()
	for what, since := range map[string]func(s *stand, old string){
		"the old drive is RELEASED":   func(*stand, string) {},
		"the old drive is used again": func(s *stand, old string) { s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveCancel, "")) },
		"the old drive is away":       func(s *stand, old string) { s.inject(old, "vanish") },
	} {
		var s *stand
		var older atomic.Pointer[drivebay.VolumeRecord]
		after := func(id, step string) error {
			if strings.HasPrefix(step, "kernel drivebay-new") && older.Load() == nil {
				all, _ := s.st.Volumes()
				r := all[id]
				older.Store(&r)
			}
			return nil
		}
		onMachine(t, sameDrives(3), volume.Options{After: after}, func(st *stand) {
			s = st
			v := s.onAPartition(drivebay.VolumeRequest{})
			sum, old := s.sum(v), v.Location.Drives[0]
			s.lead(v, drivebay.LeaveRelease)
			is := s.left(v, sum)
			if r := older.Load(); r == nil || r.Work == nil || r.Work.Move == nil || r.Volume.Location.Drives[0] != old {
				t.Fatalf("the older record: %+v", r)
			}
			since(s, old)
			s.olderRecord(*older.Load())
			time.Sleep(10 * time.Minute)
			now := s.of(v)
			if err := s.retried(func() error { return s.stage(v) }); err != nil || now.Location.Partition != is.Location.Partition || now.Name != "v" || now.Work != "" {
				t.Fatalf("%s: %v; it is at %+v, and was moved to %+v; %q: %s", what, err, now.Location, is.Location, now.Work, now.Condition.Message())
			}
			s.must(s.unstage(v))
			if s.sum(now.Volume) != sum {
				t.Errorf("%s: its content has changed", what)
			}
		})
	}
}

// TestOlderStoreMidCopyAway: as TestOlderStoreMidCopy, while the drive that the volume was moved to is away. The move is not taken back: once the
// drive is here again, the volume is there.
func TestOlderStoreMidCopyAway(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		var s *stand
		k := &recordAfter{step: "kernel drivebay-new-"}
		opt := volume.Options{After: func(id, step string) error {
			if strings.HasPrefix(step, k.step) {
				step = k.step
			}
			return k.after(&s, func() {})(id, step)
		}}
		onMachine(t, sameDrives(3), opt, func(st *stand) {
			s = st
			v := s.onAPartition(drivebay.VolumeRequest{})
			sum, old := s.sum(v), v.Location.Drives[0]
			k.armed.Store(true)
			s.lead(v, drivebay.LeaveRelease)
			is := s.left(v, sum)
			if r := k.is.Load(); r == nil || r.Work == nil || r.Work.Move == nil {
				t.Fatalf("the older record: %+v", r)
			}
			if !leaves {
				s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveCancel, ""))
			}
			serial := s.serialOf(is.Location.Drives[0])
			s.inject(is.Location.Drives[0], "vanish")
			time.Sleep(10 * time.Second)
			s.startWith(*k.is.Load())
			s.refuses("deleted", s.e.DeleteVolume(s.Context(), v.ID), drivebay.ErrUnavailable)
			s.comesBack(serial)
			time.Sleep(11 * time.Minute)
			if now := s.of(v); now.Location.Partition != is.Location.Partition || s.sum(now.Volume) != sum {
				t.Fatalf("the old drive leaves %v: it is at %+v, and was moved to %+v: %s", leaves, now.Location, is.Location, now.Condition.Message())
			}
			s.must(s.retried(func() error { return s.stage(v) }), s.unstage(v))
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		})
	}
}
