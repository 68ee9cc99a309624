package volume_test

import (
	"net/netip"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestUnrecordedReplica: the records and the claims are lost while a volume is mounted from its DRBD device. Unpublish and unstage end its
// mounts, and no mount of another volume: kubelet deletes what it calls the directory of the pod after their answer.
func TestUnrecordedReplica(t *testing.T) {
	t.Parallel()
	for name, r := range some(replicable()) {
		t.Run(name, func(t *testing.T) {
			onMachine(t, smallDrives(), volume.Options{Headers: t.TempDir()}, func(s *stand) {
				ctx, other, v := s.Context(), s.make("other", r), s.make("v", r)
				s.must(s.e.EnableReplication(ctx, replicateFrom(other, netip.MustParseAddrPort("10.0.0.1:7801"), netip.MustParseAddrPort("10.0.0.2:7801"), true)))
				s.must(s.e.EnableReplication(ctx, replicateFrom(v, siteA, siteB, true)))
				for _, v := range []drivebay.Volume{other, v} {
					s.must(s.stage(v, with(rightKey)), s.publish(v, "pod"))
				}
				s.claimAll(false)
				s.must(s.st.DeleteVolume(v.ID), s.st.DeleteVolume(other.ID))
				s.start()
				if _, ok := s.e.Volumes().Get(v.ID); ok {
					s.Fatal("the volume is in the records")
				}
				s.must(s.unpublish(v, "pod"), s.unstage(v))
				for _, path := range []string{target(v, "pod"), staging(v)} {
					if m := s.mounts(path); len(m) > 0 {
						s.Errorf("%s is OK, and still mounted: %+v", path, m)
					}
				}
				s.refuses("the path of another volume", s.e.UnpublishVolume(ctx, v.ID, target(other, "pod")), drivebay.ErrRefused)
				s.must(s.e.UnstageVolume(ctx, v.ID, staging(other)))
				for _, path := range []string{target(other, "pod"), staging(other)} {
					if m := s.mounts(path); len(m) != 1 {
						s.Errorf("the other volume at %s: %+v", path, m)
					}
				}
			})
		})
	}
}
