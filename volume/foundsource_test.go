package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestFoundIsNoCopy: a partition that was found without its name is not the answer to a request for a copy, for a mirror or
// for another backing: it has neither the data of the source nor what the class promises.
func TestFoundIsNoCopy(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]bool{"whole": false, "half made": true} {
		k := &killer{}
		onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
			source := s.make("source", requests()["ext4 on thin"])
			r := requests()["ext4 on a partition"]
			r.Name, r.Size.Required = "v", source.Size
			if half {
				k.anew(3)
			}
			_, err := s.e.CreateVolume(s.Context(), r)
			if (err != nil) != half {
				s.Fatalf("%s: %v", name, err)
			}
			s.forget()
			if is, ok := s.e.Volumes().Get(drivebay.VolumeID("v")); !ok || is.Name != "" {
				s.Fatalf("%s: found %+v", name, is)
			}
			thin := requests()["ext4 on thin"]
			thin.Name, thin.Size.Required, thin.Source.Volume = "v", source.Size, source.ID
			mirror := requests()["a mirror"]
			mirror.Block = false
			mirror.Name, mirror.Size.Required = "v", source.Size
			for what, r := range map[string]drivebay.VolumeRequest{"a copy": thin, "a mirror": mirror} {
				if v, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrExists) {
					s.Errorf("%s, a request for %s: %+v, %v", name, what, v, err)
				}
			}
			if v, err := s.e.CreateVolume(s.Context(), r); err != nil || v.Name != "v" {
				s.Errorf("%s, the request of it: %+v, %v", name, v, err)
			}
		})
	}
}
