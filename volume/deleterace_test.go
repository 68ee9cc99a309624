package volume_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
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

// whileMountsAreRead is a machine on which something happens once while the mount table is read.
type whileMountsAreRead struct {
	*hostsim.Machine
	do atomic.Pointer[func()]
}

func (m *whileMountsAreRead) Mounts(ctx context.Context) ([]host.Mount, error) {
	if do := m.do.Swap(nil); do != nil {
		(*do)()
	}
	return m.Machine.Mounts(ctx)
}

// TestDeleteBeforeMoveSettles: the new drive of a volume is pulled before the new partition has the name of the
// volume, and returns while the volume is being deleted. The deletion waits for the name, and both copies are wiped.
func TestDeleteBeforeMoveSettles(t *testing.T) {
	t.Parallel()
	var s *stand
	var armed atomic.Bool
	opt := volume.Options{After: func(id, step string) error {
		if step == "copy" && armed.Swap(false) {
			all, _ := s.st.Volumes()
			s.inject(all[id].Work.Move.To.Drives[0], "vanish")
		}
		return nil
	}}
	onMachine(t, sameDrives(2), opt, func(st *stand) {
		s = st
		m := &whileMountsAreRead{Machine: s.sim}
		s.machine = m
		s.start()
		r := requests()["ext4 on a partition"]
		r.Class.Wipe = drivebay.WipeZero
		v := s.make("v", r)
		armed.Store(true)
		s.lead(v, drivebay.LeaveRelease)
		time.Sleep(2 * time.Minute)
		to := s.record(v).Volume.Location.Drives[0]
		if to == v.Location.Drives[0] || s.record(v).Work == nil {
			t.Fatalf("its move is over: %+v", s.record(v))
		}
		do := func() {
			s.inject(to, "return")
			_ = s.mgr.Refresh(s.Context())
		}
		m.do.Store(&do)
		err := s.e.DeleteVolume(s.Context(), v.ID)
		if time.Sleep(2 * time.Minute); err != nil {
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
		}
		time.Sleep(time.Minute) // the drives are read again
		if m.do.Load() != nil {
			t.Error("its drive has not returned during the deletion")
		}
		for _, drive := range []string{v.Location.Drives[0], to} {
			if d, _ := s.mgr.Snapshot().Find(drive); d.Content.Kind != drivebay.ContentBlank {
				t.Errorf("it is deleted (first attempt: %v), and drive %s has %v", err, drive, d.Content)
			}
		}
	})
}
