package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestDeleteOnReadOnlyDrive: a drive turns read-only. A growth and a deletion of a volume on it, and the deletion of a snapshot, are UNAVAILABLE, not a lack
// of privilege and no fault of drivebay. A deletion is completed when the drive takes writes again.
func TestDeleteOnReadOnlyDrive(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a partition", "ext4 on a partition", "xfs on linear", "ext4 on thin", "a mirror"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()[name])
			var snap drivebay.VolumeSnapshot
			if name == "ext4 on thin" {
				var err error
				snap, err = s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				s.must(err)
			}
			s.inject(v.Location.Drives[0], "read-only")
			time.Sleep(3 * time.Minute)
			refused := func(what string, err error) {
				s.Helper()
				if !errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrPermission) {
					s.Errorf("%s: %s: %v", name, what, err)
				}
			}
			for range 2 {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 64<<20})
				refused("grown", err)
				if snap.ID != "" {
					refused("its snapshot is deleted", s.e.DeleteSnapshot(s.Context(), snap.ID))
				}
			}
			for range 2 {
				refused("deleted", s.e.DeleteVolume(s.Context(), v.ID))
				time.Sleep(5 * time.Minute)
			}
			s.inject(v.Location.Drives[0], "heal")
			time.Sleep(20 * time.Minute)
			if snap.ID != "" {
				s.must(s.e.DeleteSnapshot(s.Context(), snap.ID))
			}
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			s.blank()
		})
	}
}
