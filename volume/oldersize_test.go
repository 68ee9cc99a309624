package volume_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// promisedOf returns what the thin volumes of a pool can be written to, and what the pool has.
func (s *stand) promisedOf(v drivebay.Volume) (promised, has uint64) {
	s.Helper()
	d := s.driveOf(v)
	r, err := lvm.New(s.sim, "").Read(s.Context(), []string{"/dev/" + d.Name + "p1"})
	s.must(err)
	g := r.Group(v.Location.VG)
	for _, lv := range g.LVs {
		if lv.Pool == v.Location.Pool && lv.Pool != "" {
			promised += lv.Size
		}
		if lv.Name == v.Location.Pool {
			has = lv.Size
		}
	}
	return promised, has
}

// TestOlderSizeFillsNoPool: a store is restored from before a thin volume has grown. A snapshot or a copy of it needs as much of its pool as the
// volume has by LVM, not as the record says.
func TestOlderSizeFillsNoPool(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"snapshot", "copy"} {
		onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
			r := rawVolume(drivebay.BackingThin)
			v := s.make("v", r)
			all := s.free(r) + v.Size
			older := s.record(v)
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: all * 6 / 10})
			s.must(err)
			s.olderRecord(older)
			time.Sleep(10 * time.Minute)
			switch what {
			case "snapshot":
				_, err = s.e.CreateSnapshot(s.Context(), "snap", v.ID)
			default:
				r.Source.Volume = v.ID
				r.Name, r.Size.Required = "copy", 0
				_, err = s.e.CreateVolume(s.Context(), r)
			}
			if promised, has := s.promisedOf(v); promised > has {
				t.Errorf("%s: %v; the pool has %d bytes, and its volumes %d", what, err, has, promised)
			} else {
			}
		})
	}
}
