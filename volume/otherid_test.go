package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestGrowthOfWhatIsRemoved: a volume whose removal has begun does not grow, nor is a growth to the size that it has acknowledged.
func TestGrowthOfWhatIsRemoved(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "ext4 on thin"} {
		onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()[name])
			d := v.Location.Drives[0]
			s.inject(d, "read-only")
			if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrUnavailable) {
				s.Fatal(err)
			}
			s.inject(d, "heal")
			for _, size := range []uint64{v.Size, v.Size + 64<<20} {
				if is, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: size}); !errors.Is(err, drivebay.ErrPending) {
					s.Errorf("%s: grown to %d: %+v, %v", name, size, is, err)
				}
			}
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		})
	}
}
