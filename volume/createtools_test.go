package volume_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// noExt4 is a machine on which mkfs.ext4 is not installed any more.
type noExt4 struct{ *hostsim.Machine }

func (m noExt4) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if argv[0] == "mkfs.ext4" {
		return nil, fs.ErrNotExist
	}
	return m.Machine.Run(ctx, argv...)
}

// TestCreatedAnewWithoutTools: a volume is made anew in the place of one that was forgotten, or whose removal was cut short, and its filesystem
// cannot be made: the call is refused as for any other volume, and nothing is half made.
func TestCreatedAnewWithoutTools(t *testing.T) {
	t.Parallel()
	refuse := func(s *stand, v drivebay.Volume, r drivebay.VolumeRequest) {
		s.Helper()
		s.machine = noExt4{s.sim}
		s.start()
		r.Name = v.Name
		_, err := s.e.CreateVolume(s.Context(), r)
		if !errors.Is(err, drivebay.ErrNoSupport) {
			s.Errorf("made anew: %v", err)
		}
		if is, ok := s.e.Volumes().Find(v.ID); ok {
			s.Errorf("it is recorded as %v", is.CSIStatus)
		}
	}
	r := requests()["ext4 on a partition"]
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		v := s.make("v", r)
		id := v.Location.Drives[0]
		serial := s.serialOf(id)
		s.inject(id, "vanish")
		time.Sleep(time.Minute)
		s.must(s.e.ForgetVolume(s.Context(), v.ID), s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
		time.Sleep(2 * time.Minute)
		refuse(s, v, r)
	})
	halfRemoved(t, map[string]drivebay.VolumeRequest{"ext4 on a partition": r}, func(s *stand, v drivebay.Volume, r drivebay.VolumeRequest, _ drivebay.VolumeRecord) {
		if _, found := s.e.Volumes().Find(v.ID); found {
			refuse(s, v, r)
		}
	})
}
