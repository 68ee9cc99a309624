package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestDeleteOnReadOnlyDrive: a drive turns read-only. A deletion of a volume on it is UNAVAILABLE, not a lack of privilege, and is completed when
// the drive takes writes again.
func TestDeleteOnReadOnlyDrive(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a partition", "ext4 on a partition", "xfs on linear", "ext4 on thin"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()[name])
			s.inject(v.Location.Drives[0], "read-only")
			if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 64<<20}); err == nil || errors.Is(err, drivebay.ErrPermission) {
				t.Errorf("%s: grown: %v", name, err)
			}
			for range 2 {
				if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrPermission) {
					t.Errorf("%s: deleted: %v", name, err)
				}
				time.Sleep(5 * time.Minute)
			}
			s.inject(v.Location.Drives[0], "heal")
			time.Sleep(20 * time.Minute)
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			s.blank()
		})
	}
}
