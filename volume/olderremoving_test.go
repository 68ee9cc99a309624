package volume_test

import (
	"context"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestOlderStoreRemoving: a store from the moment when the kernel was to remove a drive says nothing about the volumes that were made
// on it since the removal was canceled. The drive is not removed with them.
func TestOlderStoreRemoving(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
		var id string
		for _, d := range s.mgr.Snapshot().Drives {
			if d.Claim != nil {
				id = d.ID
			}
		}
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		s.usage(id, drivebay.UsageReleased, 10*time.Minute)
		time.Sleep(time.Minute)
		older, err := s.st.Records()
		s.must(err)
		r := older[id]
		r.Usage, err = r.Usage.Next(drivebay.UsageApprove)
		s.must(err)
		older[id] = r
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveCancel, ""))
		time.Sleep(time.Minute)
		v := s.make("v", partitionOf(1<<30))
		s.stop()
		s.stop = nil
		st := store.Memory()
		s.must(st.PutRecords(older))
		var claim drivebay.Selectors
		s.must(claim.UnmarshalText([]byte("all")))
		s.st, s.mgr = st, drivemgr.New(s.sim, st, drivemgr.Options{Claim: claim, Tick: s.opt.Tick})
		s.begin() // a daemon has its engine before the manager lists the drives
		ctx, cancel := context.WithCancel(s.Context())
		done := make(chan error)
		go func() { done <- s.mgr.Run(ctx) }()
		stop := s.stop
		s.stop = func() {
			stop()
			cancel()
			s.must(<-done)
		}
		time.Sleep(15 * time.Minute)
		d, _ := s.mgr.Snapshot().Find(id)
		if d.Status != drivebay.StatusOnline {
			s.Errorf("the drive is %v, %v, and volume %s is on it", d.Usage, d.Status, v.ID)
		}
	})
}
