//go:build !race

package volume_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestFullTable: a drive whose partition table has no entry left has no room, however many bytes are free.
func TestFullTable(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Size: "200GB"}}}, volume.Options{}, func(s *stand) {
		raw := rawVolume(drivebay.BackingPartition)
		raw.Size.Required = 1 << 20
		var all []drivebay.Volume
		for i := range 128 {
			all = append(all, s.make(fmt.Sprint("v", i), raw))
		}
		for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM, drivebay.BackingThin} {
			r := rawVolume(b)
			r.Name, r.Size.Required = "more-"+string(b), 4<<20
			if c, err := s.e.Capacity(s.Context(), r.Class); err != nil || c.Available != 0 || c.Largest != 0 {
				s.Errorf("%s: the capacity is %+v, %v", b, c, err)
			}
			if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrNoSpace) {
				s.Errorf("%s: %v", b, err)
			}
		}
		if _, _, err := s.e.ExpandVolume(s.Context(), all[127].ID, drivebay.SizeRange{Required: 2 << 20}); err != nil {
			s.Errorf("a growth needs no entry: %v", err)
		}
		s.must(s.e.DeleteVolume(s.Context(), all[5].ID))
		raw.Name = "one more"
		if c, err := s.e.Capacity(s.Context(), raw.Class); err != nil || c.Largest == 0 {
			s.Errorf("the capacity is %+v, %v", c, err)
		}
		s.make("one more", raw)
		time.Sleep(time.Minute)
	})
}

// TestMoveBesideFullTable: a volume that has to leave its drive moves to one whose partition table has an entry left.
func TestMoveBesideFullTable(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 3, Kind: hostsim.KindNVMe, Size: "1GB"}}}, volume.Options{}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		sum := s.sum(v)
		var others []string
		for _, d := range s.mgr.Snapshot().Drives {
			if d.ID != s.drive(v).ID {
				others = append(others, d.ID)
			}
		}
		full, free := others[0], others[1]
		raw := rawVolume(drivebay.BackingPartition)
		s.must(s.mgr.Cordon(s.Context(), s.drive(v).ID, true), s.mgr.Cordon(s.Context(), full, true))
		raw.Size.Required = 500 << 20
		s.make("large", raw)
		s.must(s.mgr.Cordon(s.Context(), free, true), s.mgr.Cordon(s.Context(), full, false))
		raw.Size.Required = 1 << 20
		for i := range 128 {
			s.make(fmt.Sprint("v", i), raw)
		}
		s.must(s.mgr.Cordon(s.Context(), free, false))
		s.lead(v, drivebay.LeaveRelease)
		if is := s.left(v, sum); is.Location.Drives[0] != free {
			s.Errorf("it is on %v", is.Location.Drives)
		}
	})
}
