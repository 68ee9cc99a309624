package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestOtherRoots: the configuration names another root while volumes are mounted below the one before. They are
// watched and unpublished as before, and nothing else is staged below that root.
func TestOtherRoots(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ext4", "block"} {
		onMachine(t, fourDrives, volume.Options{Roots: []string{"/var/lib/kubelet"}}, func(s *stand) {
			v, other := s.make("v", drivebay.VolumeRequest{Block: name == "block"}), s.make("other", drivebay.VolumeRequest{Block: name == "block"})
			s.must(s.stage(v), s.publish(v, "pod"), s.publish(v, "second"))
			s.opt.Roots = []string{"/var/lib/other"}
			s.start()
			if is := s.of(v); is.CSIStatus != drivebay.CSIPublished || is.Condition.Abnormal() {
				s.Errorf("%s: %v, %s", name, is.CSIStatus, reasons(is.Condition))
			}
			if err := s.stage(other); err == nil || !strings.Contains(err.Error(), "below /var/lib/other") {
				s.Errorf("%s: staged below a root that is not configured: %v", name, err)
			}
			s.must(s.sim.UnmountBehind(target(v, "pod")))
			time.Sleep(time.Minute)
			if is := s.of(v); !is.Condition.Abnormal() {
				s.Errorf("%s: unmounted by another program, and %s", name, reasons(is.Condition))
			}
			s.must(s.unpublish(v, "pod"), s.unpublish(v, "second"), s.unstage(v))
			if err := s.stage(v); err == nil {
				s.Errorf("%s: staged again below a root that is not configured", name)
			}
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
		})
	}
}

// TestOtherNode: the machine has another name than when a volume and its snapshot were made. Both are on the node of today: no scheduler finds the
// other one.
func TestOtherNode(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(1), volume.Options{Node: "old"}, func(s *stand) {
		r := requests()["ext4 on thin"]
		v := s.make("v", r)
		_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		s.must(err)
		s.opt.Node = "new"
		s.start()
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		s.must(err)
		for what, is := range map[string]string{"shown": s.of(v).Node, "requested again": s.make("v", r).Node, "its snapshot": snap.Node, "its snapshot, shown": s.e.Volumes().Snapshots[0].Node} {
			if is != "new" {
				s.Errorf("%s: on node %s", what, is)
			}
		}
	})
}
