package volume_test

import (
	"fmt"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestDriveRooms: the rooms of the drives together are the capacity of the machine, whatever is on the drives. For a
// mirror each of two drives has room for a leg.
func TestDriveRooms(t *testing.T) {
	t.Parallel()
	backings := []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror}
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 4, Kind: hostsim.KindNVMe, Size: "20GB"}}}, volume.Options{}, func(s *stand) {
		compare := func(when string) {
			rooms := s.e.DriveRooms()
			for _, b := range backings {
				c, err := s.e.Capacity(s.Context(), rawVolume(b).Class)
				s.must(err)
				largest, available, second := uint64(0), uint64(0), uint64(0)
				for _, r := range rooms {
					if l := r.Backings[b].Largest; l >= largest {
						largest, second = l, largest
					} else {
						second = max(second, l)
					}
					available += r.Backings[b].Available
				}
				if b == drivebay.BackingMirror {
					if c.Largest != second {
						s.Errorf("%s: %s: the second largest leg has room for %d, a mirror for %d", when, b, second, c.Largest)
					}
				} else if c.Largest != largest || c.Available != available {
					s.Errorf("%s: %s: the rooms are %d and %d, the capacity is %d and %d", when, b, largest, available, c.Largest, c.Available)
				}
			}
		}
		compare("empty")
		for i, name := range []string{"a partition", "a drive", "a mirror"} {
			v := s.make(fmt.Sprint("v", i), requests()[name])
			compare("with " + name)
			if rooms := s.e.DriveRooms(); name == "a mirror" {
				for _, id := range v.Location.Drives {
					if r := rooms[id]; r.Group != v.Location.VG || r.Kind != drivebay.LocationMirror || len(r.Members) != 2 {
						s.Errorf("drive %s of the mirror: %+v", id, r)
					}
				}
			}
		}
	})
}
