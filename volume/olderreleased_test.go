package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestOlderStoreReleased: a store from the time when a drive was RELEASED says nothing about the volumes that were made on it since. The
// drive is not taken out with them.
func TestOlderStoreReleased(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
		id, older, v := s.canceledRelease()
		st := store.Memory()
		s.must(st.PutRecords(older))
		s.newDaemon(st)
		time.Sleep(15 * time.Minute)
		is, known := s.e.Volumes().Get(v.ID)
		if !known {
			s.Fatal("the volume is not known")
		}
		d, _ := s.mgr.Snapshot().Find(id)
		if err := s.mgr.Operate(s.Context(), id, drivebay.LeaveApprove, ""); err == nil {
			time.Sleep(10 * time.Second)
			now, _ := s.mgr.Snapshot().Find(id)
			s.Errorf("the drive was %v with volume %s (%v, drives %v); approved, it is %v, %v: %+v", d.Usage, v.ID, is.Usage, is.Location.Drives, now.Usage, now.Status, now.Leaving)
		}
	})
}

// canceledRelease makes a volume on a drive that was RELEASED before, and stops the daemon. older are the records from then.
func (s *stand) canceledRelease() (id string, older map[string]drivebay.Record, v drivebay.Volume) {
	s.Helper()
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
	if older[id].Usage != drivebay.UsageReleased {
		s.Fatal(older[id].Usage)
	}
	s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveCancel, ""))
	time.Sleep(time.Minute)
	v = s.make("v", partitionOf(1<<30))
	s.stop()
	s.stop = nil
	return id, older, v
}
