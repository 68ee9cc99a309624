package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestFoundIsWipedAsPromised: the records are lost, before a partition is deleted or in the
// middle of that. It is wiped as its class says all the same, and a request of another class is
// told that it is of this one.
func TestFoundIsWipedAsPromised(t *testing.T) {
	t.Parallel()
	hdds := hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "2GB"}}}
	for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive} {
		for after := 0; after < 2; after++ { // steps of the deletion before the records are lost
			k := &killer{}
			onMachine(t, hdds, volume.Options{After: k.step}, func(s *stand) {
				r := rawVolume(backing)
				r.Size.Required = 64 << 20
				r.Class.Wipe, r.Class.Drives = drivebay.WipeZero, drivebay.TypeHDD
				v := s.make("v", r)
				s.must(s.stage(v))
				s.write(v, []byte("SECRET"), 32<<20)
				s.must(s.unstage(v))
				if after > 0 {
					k.arm(after)
					_ = s.e.DeleteVolume(s.Context(), v.ID)
					k.arm(0)
				}
				s.forget()
				time.Sleep(time.Minute)
				if after == 0 {
					other := r
					other.Name, other.Size.Required, other.Class.Wipe = "v", v.Size, drivebay.WipeNone
					if _, err := s.e.CreateVolume(s.Context(), other); !errors.Is(err, drivebay.ErrExists) {
						t.Errorf("%s: asked for with another wipe: %v", backing, err)
					}
					other.Class.Wipe = drivebay.WipeZero
					if _, err := s.e.CreateVolume(s.Context(), other); err != nil {
						t.Errorf("%s: asked for again: %v", backing, err)
					}
				}
				s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
				if s.anywhere(v.Location.Drives[0], "SECRET") {
					t.Errorf("%s, after %d steps: it was deleted, and its data is there", backing, after)
				}
			})
		}
	}
}
