package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestOlderStoreRemoving: a store from the moment when the kernel was to remove a drive says nothing about the volumes that were made
// on it since the removal was canceled. The drive is not removed with them.
func TestOlderStoreRemoving(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
		id, older, v := s.canceledRelease()
		r := older[id]
		var err error
		r.Usage, err = r.Usage.Next(drivebay.UsageApprove)
		s.must(err)
		older[id] = r
		st := store.Memory()
		s.must(st.PutRecords(older))
		s.newDaemon(st)
		time.Sleep(15 * time.Minute)
		d, _ := s.mgr.Snapshot().Find(id)
		if d.Status != drivebay.StatusOnline {
			s.Errorf("the drive is %v, %v, and volume %s is on it", d.Usage, d.Status, v.ID)
		}
	})
}
