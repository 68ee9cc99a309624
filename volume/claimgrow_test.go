package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestFilesystemKeepsItsSizeWithoutClaim: the filesystem of a volume whose device has grown does not grow on a drive whose claim was withdrawn, neither
// by a call nor when the volume is staged. It can be staged, and grows once the drive is claimed again.
func TestFilesystemKeepsItsSizeWithoutClaim(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4 on a partition", "xfs on linear"} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, sameDrives(1), volume.Options{}, func(s *stand) {
				s.claimAllByOperator()
				v := s.make("v", requests()[name])
				drive := v.Location.Drives[0]
				s.must(s.stage(v), s.publish(v, "pod"))
				size := func() uint64 {
					st, err := s.stats(v, target(v, "pod"))
					s.must(err)
					return st.Bytes.Total
				}
				before := size()
				if _, node, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30}); err != nil || !node {
					s.Fatal(node, err)
				}
				s.must(s.mgr.Claim(s.Context(), drive, false))
				if _, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), drivebay.SizeRange{}, nil); !errors.Is(err, drivebay.ErrRefused) {
					s.Errorf("expanded without a claim: %v", err)
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v), s.stage(v), s.publish(v, "pod"))
				if is := size(); is != before {
					s.Errorf("without a claim the filesystem has %d bytes, and had %d", is, before)
				}
				s.must(s.mgr.Claim(s.Context(), drive, true))
				_, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), drivebay.SizeRange{}, nil)
				if s.must(err); size() <= before {
					s.Errorf("with a claim the filesystem has %d bytes, and had %d", size(), before)
				}
			})
		})
	}
}
