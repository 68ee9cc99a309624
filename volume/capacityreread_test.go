package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestCapacityAfterDeletion: the drives of a deleted volume count as free in the first answer after
// the deletion, although the manager reads them again beside it.
func TestCapacityAfterDeletion(t *testing.T) {
	t.Parallel()
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Size: "20GB"}}}, volume.Options{}, func(s *stand) {
		mirror := requests()["a mirror"]
		whole, err := s.e.Capacity(s.Context(), mirror.Class)
		s.must(err)
		for _, d := range s.mgr.Snapshot().Drives {
			s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "slow", Args: hostsim.Args{"delay": "20ms"}}))
		}
		defer func() {
			for _, d := range s.mgr.Snapshot().Drives {
				s.inject(d.ID, "heal")
			}
			time.Sleep(time.Minute) // the last look ends
		}()
		for i := range 2 {
			for _, name := range []string{"a partition", "a drive", "a mirror"} {
				v := s.make("v", requests()[name])
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
				if i == 0 {
					if c, err := s.e.Capacity(s.Context(), mirror.Class); err != nil || c != whole {
						s.Fatalf("after %s: %+v instead of %+v, %v", name, c, whole, err)
					}
				} else {
					mirror.Name, mirror.Size.Required = "m", whole.Largest
					m, err := s.e.CreateVolume(s.Context(), mirror)
					s.must(err)
					s.must(s.e.DeleteVolume(s.Context(), m.ID))
				}
			}
		}
	})
}

// TestGrowthAfterDeletion: so does the room for a volume that moves to grow.
func TestGrowthAfterDeletion(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(s *stand, a drivebay.Volume) error{
		"the growth": (*stand).askRoom300,
		"a dry run": func(s *stand, a drivebay.Volume) error {
			r, err := s.e.Room(s.Context(), a.ID, drivebay.RoomQuery{Size: 300 << 20})
			if err == nil && r.Against != "" {
				err = errors.New(r.Against)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, nvme(2, "400MB"), volume.Options{}, func(s *stand) {
				for _, d := range s.mgr.Snapshot().Drives {
					s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "slow", Args: hostsim.Args{"delay": "20ms"}}))
				}
				a, _ := s.besides(requests()["a partition"], 260<<20)
				if err := ask(s, a); err != nil && !errors.Is(err, drivebay.ErrPending) {
					s.Error(err)
				}
				for _, d := range s.mgr.Snapshot().Drives {
					s.inject(d.ID, "heal")
				}
				s.until("at rest", s.allRest)
				time.Sleep(time.Minute) // the last look ends
			})
		})
	}
}

func (s *stand) askRoom300(v drivebay.Volume) error {
	_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 300 << 20})
	return err
}
