package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume"
)

// TestDeletedAfterByHand: another program removed the partition or logical volume of a volume. Its data are still on the drive, and nothing
// names where: the deletion is not acknowledged before it is there again, or given up.
func TestDeletedAfterByHand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a partition", "a linear volume", "a thin volume", "a mirror", "encrypted", "an encrypted partition alone"} {
		onMachine(t, twoNVMe, volume.Options{Headers: t.TempDir()}, func(s *stand) {
			r := requests()[name]
			switch name {
			case "encrypted":
				r = encryptedRequests()["a linear volume"]
			case "an encrypted partition alone": // the table has no partition afterwards, and the drive has the header
				r = encryptedRequests()["a partition"]
			}
			v := s.make("v", r)
			other := v
			if !strings.HasSuffix(name, "alone") {
				other = s.make("other", r)
			}
			if v.Location.OnLVM() {
				_, err := s.sim.Run(s.Context(), "lvm", "lvremove", "--force", "--yes", v.Location.VG+"/"+v.Location.LV)
				s.must(err)
			} else {
				disk := s.open(s.drive(v).Name)
				table, err := gpt.Read(disk)
				s.must(err)
				p, _ := table.FindName("drivebay-" + v.ID)
				s.must(table.Remove(p.GUID), table.Write(disk), disk.RemovePartition(p.Number), disk.Close())
			}
			time.Sleep(2 * time.Minute)
			for range 2 {
				if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrUnavailable) || !strings.Contains(err.Error(), "`drivebay volume forget "+v.ID+"`") {
					s.Errorf("%s: deleted without a wipe: %v", name, err)
				}
				s.start()
			}
			s.must(s.e.ForgetVolume(s.Context(), v.ID), s.e.DeleteVolume(s.Context(), v.ID), s.e.DeleteVolume(s.Context(), other.ID))
		})
	}
}
