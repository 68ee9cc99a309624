package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// TestPartitionOfNoGroup: a volume group is removed and the label of its physical volume with it, but not its partition. With the records lost,
// no call waits for volumes on it.
func TestPartitionOfNoGroup(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a linear volume"])
		dev := "/dev/" + s.drive(v).Name + "p1"
		for _, c := range [][2]string{{"vgremove", v.Location.VG}, {"pvremove", dev}} {
			_, err := s.sim.Run(s.Context(), "lvm", c[0], "--devices", dev, "--force", "--yes", c[1])
			s.must(err)
		}
		s.stop()
		s.stop, s.st = nil, store.Memory()
		s.start()
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		r := requests()["a linear volume"]
		r.Name = "next"
		_, err := s.e.CreateVolume(s.Context(), r)
		s.must(err)
	})
}

// TestGroupRemovedBesideOlderRecord: a record of an older store counts on the drive of a group that is removed, so that its partition stays. It is
// blank: once that record is lost too, its space is free.
func TestGroupRemovedBesideOlderRecord(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a mirror", "ext4 on thin"} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				free := func() drivebay.Capacity {
					c, err := s.e.Capacity(s.Context(), requests()["a linear volume"].Class)
					s.must(err)
					return c
				}
				before := free()
				w := s.make("w", requests()["a linear volume"])
				older := s.copyOfStore()
				s.must(s.e.DeleteVolume(s.Context(), w.ID))
				v := s.make("v", requests()[name])
				s.stop()
				s.stop, s.st = nil, older
				s.start()
				time.Sleep(time.Minute)
				s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
				s.stop()
				s.stop, s.st = nil, store.Memory()
				s.start()
				time.Sleep(20 * time.Minute)
				if now := free(); now != before {
					s.Errorf("free is %+v, was %+v", now, before)
				}
			})
		})
	}
}
