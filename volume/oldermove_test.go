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
			s.notYet("deleted", s.e.DeleteVolume(s.Context(), v.ID))
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

// TestOlderStoreAcceptedLoss: a store is restored from a moment when a move waited for an operator to accept what its drive cannot read, or had been
// told to go on, or from before the volume was moved once more. The move has ended since, without these data. The volume shows that they are lost,
// and the store is reported as older.
func TestOlderStoreAcceptedLoss(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"waiting", "accepted", "moved once", "waiting, moved twice"} {
		onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
			v := s.onAPartition(drivebay.VolumeRequest{})
			s.badSectors(v, 9<<20, 512)
			s.lead(v, drivebay.LeaveRelease)
			s.waits(v, "bytes")
			older := s.record(v)
			s.must(s.e.AcceptLoss(s.Context(), v.ID))
			ends := func() *drivebay.VolumeView {
				s.until("moved", func() bool { is := s.of(v); return is.Usage == drivebay.VolumeInUse && is.Work == "" })
				return s.of(v)
			}
			is := ends()
			switch from {
			case "accepted":
				mv := *older.Work.Move
				mv.Accepted = true
				older.Work.Move = &mv
				var err error
				older.Volume, err = older.Volume.UsageMoved(drivebay.VolumeUsageRetry)
				s.must(err)
			case "moved once":
				older = s.record(v)
			}
			if strings.Contains(from, "moved") {
				once := is.Location.Drives[0]
				s.lead(is.Volume, drivebay.LeaveRelease)
				s.until("moved again", func() bool { return s.of(v).Location.Drives[0] != once })
				is = ends()
				s.must(s.mgr.Operate(s.Context(), once, drivebay.LeaveCancel, ""))
			}
			s.startWith(older)
			time.Sleep(15 * time.Minute)
			now := s.of(v)
			if now.Location.Partition != is.Location.Partition || !strings.Contains(reasons(now.Condition), "DataLost") || now.Usage != drivebay.VolumeInUse {
				t.Errorf("%s: it is %v at %+v, and was moved to %+v: %s", from, now.Usage, now.Location, is.Location, now.Condition.Message())
			}
			if len(s.e.Newer()) != 1 {
				t.Errorf("%s: newer than the store: %v", from, s.e.Newer())
			}
		})
	}
}
