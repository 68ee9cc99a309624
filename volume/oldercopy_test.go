package volume_test

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// allZero reports whether a drive has zeros where onAPartition writes.
func (s *stand) allZero(d drivebay.Drive) (is bool) {
	s.Helper()
	is = true
	s.read(d, func(r io.ReaderAt) {
		b := make([]byte, 1<<20)
		for at := range int64(96) {
			_, err := r.ReadAt(b, (at+4)<<20)
			s.must(err)
			is = is && zero(b)
		}
	})
	return is
}

// TestOldCopyWithoutRecord: a volume was copied to another drive, and the daemon died before the old copy was wiped. The record is lost, or from
// before. The old copy is never used in place of the volume, and the volume is neither made again nor deleted while its drive is away; a deletion
// leaves nothing of either.
func TestOldCopyWithoutRecord(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"lost", "before", "copying"} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprint(from, ", its drive is away: ", away), func(t *testing.T) {
				var s *stand
				var copying atomic.Pointer[drivebay.VolumeRecord]
				var dies, dead atomic.Bool
				opt := volume.Options{After: func(id, step string) error {
					if strings.HasPrefix(step, "kernel drivebay-new") && copying.Load() == nil {
						all, _ := s.st.Volumes()
						r := all[id]
						copying.Store(&r)
					}
					if dead.Load() || dies.Load() && step == "settled" {
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
					r.Name, r.Size.Required, r.Class.Drives = "v", 64<<20, drivebay.TypeNVMe
					sum, before, old := s.sum(v), s.record(v), *s.drive(v)
					dies.Store(true)
					s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveRelease, ""))
					s.until("settled", dead.Load)
					is := s.record(v).Volume
					serial := s.serialOf(is.Location.Drives[0])
					s.stop()
					s.stop = nil
					s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveCancel, ""))
					if away {
						s.inject(is.Location.Drives[0], "vanish")
						time.Sleep(10 * time.Second)
					}
					switch from {
					case "lost":
						s.must(s.st.DeleteVolume(v.ID))
					case "before":
						s.must(s.st.PutVolume(before))
					default:
						s.must(s.st.PutVolume(*copying.Load()))
					}
					dies.Store(false)
					dead.Store(false)
					s.begin()
					time.Sleep(3 * time.Minute)
					if away {
						if from != "lost" && !s.of(v).Condition.Abnormal() {
							t.Error("no fault is shown")
						}
						if s.stage(v) == nil {
							t.Error("the old copy is used")
						}
						if _, err := s.e.CreateVolume(s.Context(), r); err == nil {
							t.Error("it is made again")
						}
						s.notYet("deleted", s.e.DeleteVolume(s.Context(), v.ID))
						if s.allZero(old) {
							t.Error("the old copy is wiped while it is the only one")
						}
						s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveRelease, ""))
						time.Sleep(3 * time.Minute)
						if d, _ := s.mgr.Snapshot().Find(old.ID); d.Usage == drivebay.UsageReleased {
							t.Error("the drive with the old copy is RELEASED")
						}
						s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveCancel, ""))
						s.comesBack(serial)
						time.Sleep(11 * time.Minute)
					}
					if now := s.of(v); now.Location.Partition != is.Location.Partition || s.sum(now.Volume) != sum || now.Condition.Abnormal() {
						t.Errorf("it is at %+v, and was moved to %+v: %s", now.Location, is.Location, now.Condition.Message())
					}
					s.must(s.retried(func() error { return s.stage(v) }), s.unstage(v))
					s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
					if !s.allZero(old) {
						t.Error("deleted, and its old copy is left")
					}
					s.blank()
				})
			})
		}
	}
}
