package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestDegradedIsProbed: a volume in use that has lost one of its two copies is asked as before how full its filesystem is and whether it can be
// read: a mirror without a drive, and a volume that works with the disk of its peer.
func TestDegradedIsProbed(t *testing.T) {
	t.Parallel()
	filled := func(s *stand, v drivebay.Volume) {
		s.Helper()
		s.inject(v.Location.Drives[0], "vanish")
		time.Sleep(3 * time.Minute)
		if c := reasons(s.of(v).Condition); !strings.Contains(c, "DiskRemoved") || strings.Contains(c, "OutOfCapacity") {
			s.Fatalf("without a drive: %s", c)
		}
		s.inject(staging(v), "fs-fill")
		time.Sleep(5 * time.Minute)
		if is := s.of(v); !strings.Contains(reasons(is.Condition), "OutOfCapacity") {
			s.Errorf("it is full: %s, %+v", reasons(is.Condition), is.Space)
		}
	}
	t.Run("a mirror", func(t *testing.T) {
		onMachine(t, sameDrives(2), volume.Options{FullPercent: 90}, func(s *stand) {
			v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingMirror, Wipe: drivebay.WipeNone, FSType: "ext4"}})
			s.must(s.stage(v), s.publish(v, "pod"))
			filled(s, v)
		})
	})
	t.Run("the disk of the peer", func(t *testing.T) {
		onTwoSites(t, volume.Options{FullPercent: 90}, func(a, b *stand, _ func(bool)) {
			v := replicated(a, b, requests()["ext4 on a partition"])
			a.must(a.stage(v), a.publish(v, "pod"))
			time.Sleep(time.Minute)
			filled(a, v)
		})
	})
	t.Run("a read error that ends", func(t *testing.T) {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			m := &unreadableFolder{Worker: s.sim}
			s.machine = m
			s.start()
			v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingMirror, Wipe: drivebay.WipeNone, FSType: "ext4"}})
			s.must(s.stage(v), s.publish(v, "pod"))
			s.inject(v.Location.Drives[0], "vanish")
			time.Sleep(3 * time.Minute)
			for _, damaged := range []bool{true, false} {
				m.damaged.Store(damaged)
				time.Sleep(5 * time.Minute)
				if c := reasons(s.of(v).Condition); strings.Contains(c, "RWIOError") != damaged {
					s.Errorf("it cannot be read: %v, and the condition is %s", damaged, c)
				}
			}
		})
	})
}
