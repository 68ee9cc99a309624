package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestCopyOfAnotherType: a copy is made in the pool of its source. A class for drives of another type is refused for good, and not as a
// lack of space that a caller waits for.
func TestCopyOfAnotherType(t *testing.T) {
	t.Parallel()
	onMachine(t, fourDrives, volume.Options{}, func(s *stand) {
		class := drivebay.Class{Backing: drivebay.BackingThin, Wipe: drivebay.WipeNone, FSType: "ext4", Drives: drivebay.TypeNVMe}
		v := s.make("source", drivebay.VolumeRequest{Class: class})
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		s.must(err)
		for name, from := range map[string]drivebay.Source{"clone": {Volume: v.ID}, "restored": {Snapshot: snap.ID}} {
			for drives, want := range map[drivebay.Type]error{drivebay.TypeHDD: drivebay.ErrNoSupport, drivebay.TypeNVMe: nil, drivebay.TypeUnknown: nil} {
				class.Drives = drives
				_, err := s.e.CreateVolume(s.Context(), drivebay.VolumeRequest{Name: name + drives.String(), Class: class, Source: from})
				if !errors.Is(err, want) {
					t.Errorf("%s, class for %v: %v", name, drives, err)
				}
			}
		}
	})
}
