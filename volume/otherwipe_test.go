package volume_test

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestWipeOfAnotherVersion: the record of a volume has a wipe that this version of drivebay does not know. Its data are zeroed when it is deleted: a
// deletion that wipes less than the class promises is not acknowledged.
func TestWipeOfAnotherVersion(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Block: true})
		s.make("other", drivebay.VolumeRequest{})
		s.write(v, append([]byte("precious"), make([]byte, 4088)...), 100<<20+4096)
		if !s.anywhere(v.Location.Drives[0], "precious") {
			t.Fatal("it is not written")
		}
		s.restart(func() {
			all, err := s.st.Volumes()
			s.must(err)
			r := all[v.ID]
			r.Volume.Parameters[drivebay.ParameterWipe] = "shred"
			s.must(s.st.PutVolume(r))
		})
		if s.must(s.e.DeleteVolume(s.Context(), v.ID)); s.anywhere(v.Location.Drives[0], "precious") {
			t.Error("the volume was deleted, and its data are on the drive")
		}
	})
}
