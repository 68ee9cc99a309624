package volume_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestMarksAreReadFirst: the store is older than a removal that was cut short, or than a move to a drive which is away. Only the partition table
// says so, and it cannot be read when the daemon starts. The kernel shows the partition; the volume is not used, and not deleted, before the
// table was read.
func TestMarksAreReadFirst(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"permission", "eio", "hang"} {
		for _, moved := range []bool{false, true} {
			var s *stand
			var dies, dead atomic.Bool
			opt := volume.Options{After: func(id, step string) error {
				if dead.Load() || dies.Load() && (step == "settled" || step == "mark" && !moved) {
					dead.Store(true)
					return errKilled
				}
				return nil
			}}
			onMachine(t, sameDrives(3), opt, func(st *stand) {
				s = st
				r := requests()["a partition"]
				r.Class.Wipe = drivebay.WipeZero
				v := s.onAPartition(r)
				before, old := s.record(v), *s.drive(v)
				dies.Store(true)
				if moved {
					s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveRelease, ""))
					s.until("settled", dead.Load)
				} else if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil || !dead.Load() {
					s.Fatalf("the removal was not cut short: %v", err)
				}
				is := s.record(v).Volume
				s.stop()
				s.stop = nil
				if moved {
					s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveCancel, ""))
					s.inject(is.Location.Drives[0], "vanish")
					time.Sleep(10 * time.Second)
				}
				s.must(s.st.PutVolume(before))
				dies.Store(false)
				dead.Store(false)
				s.inject(old.ID, fault)
				s.begin()
				time.Sleep(10 * time.Second)
				s.inject(old.ID, "heal")
				for range 120 {
					if err := s.stage(v); err == nil {
						s.Fatalf("%s, moved %v: it is used", fault, moved)
					}
					if moved {
						s.notYet("deleted", s.e.DeleteVolume(s.Context(), v.ID))
					}
					time.Sleep(500 * time.Millisecond)
				}
				if moved && s.allZero(old) {
					t.Errorf("%s: the only copy that is here is wiped", fault)
				}
				if !s.of(v).Condition.Abnormal() {
					t.Errorf("%s, moved %v: no fault is shown", fault, moved)
				}
			})
		}
	}
}
