package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestAbandonedMount: the record of a volume that a pod has is lost, and its drive is pulled and put
// back. The path of the pod shows a device that is gone, or by now that of another volume: the volume
// is not called sound, and the path can be unpublished and used again.
func TestAbandonedMount(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, taken := range []bool{false, true} { // another volume has the name of the device
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				v := s.make("v", r)
				serials := make([]string, 0, 2)
				for _, d := range v.Location.Drives {
					serials = append(serials, s.serialOf(d))
				}
				s.must(s.stage(v), s.publish(v, "pod"))
				s.stop()
				s.stop = nil
				s.must(s.st.DeleteVolume(v.ID))
				for _, serial := range serials {
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}))
				}
				time.Sleep(time.Minute)
				s.start()
				time.Sleep(time.Minute)
				if taken {
					other := r
					other.Name, other.Size.Required = "other", 64<<20
					if o, err := s.e.CreateVolume(s.Context(), other); err == nil { // a mirror finds no two drives
						s.must(s.stage(o))
					}
				}
				for _, serial := range serials {
					s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
				}
				time.Sleep(11 * time.Minute)
				is := s.of(v)
				if !strings.Contains(is.Condition.Message(), "VolumeUnmounted") {
					t.Errorf("%s, taken %v: nothing is wrong with it: %v", name, taken, is.Condition)
				}
				s.must(s.e.UnpublishVolume(s.Context(), v.ID, target(v, "pod")), s.unstage(v))
				time.Sleep(time.Minute)
				if is := s.of(v); strings.Contains(is.Condition.Message(), "VolumeUnmounted") {
					t.Errorf("%s, taken %v: unpublished, it is %v", name, taken, is.Condition)
				}
				s.must(s.stage(v), s.publish(v, "pod"))
			})
		}
	}
}

// TestDeadMountHoldsXFS: an XFS whose drive returned cannot be mounted while a path in no record shows its old
// device. The error names the path, and the volume can be used once that is unpublished.
func TestDeadMountHoldsXFS(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["xfs on a partition"])
		serial := s.serialOf(v.Location.Drives[0])
		s.must(s.stage(v), s.publish(v, "pod"))
		s.stop()
		s.stop = nil
		s.must(s.st.DeleteVolume(v.ID), s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}))
		time.Sleep(time.Minute)
		s.start()
		s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return"}))
		time.Sleep(11 * time.Minute)
		if err := s.stage(v); err == nil || !strings.Contains(err.Error(), "still mounted at "+target(v, "pod")) {
			s.Errorf("staged: %v", err)
		}
		s.must(s.unpublish(v, "pod"), s.stage(v), s.publish(v, "pod"))
	})
}

// TestPathsOfOthers: a path that is named after a volume and shows another one, because a static
// PersistentVolume has its name, and a mount inside the volume are no faults of it, and are not
// unmounted for it.
func TestPathsOfOthers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"a partition", "ext4 on a partition"} {
		onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
			v, o := s.make("data", requests()[kind]), s.make("pvc-1", requests()[kind])
			inner := s.make("inner", requests()["ext4 on a partition"])
			path := func(name string) string { return kubelet + "/pods/1/volumes/kubernetes.io~csi/" + name + "/mount" }
			publish := func(v drivebay.Volume, name string) {
				s.must(s.stage(v), s.publish(v, "1", func(r *drivebay.PublishRequest) { r.Target = path(name) }))
			}
			publish(o, "data") // of the static PersistentVolume "data"
			if kind == "ext4 on a partition" {
				publish(v, "other")
				s.must(s.stage(inner), s.sim.MakeFolder(place(path("other")+"/inner")), s.sim.Bind(s.Context(), place(staging(inner)), place(path("other")+"/inner"), false))
			}
			time.Sleep(time.Minute)
			for _, v := range []drivebay.Volume{v, o} {
				if is := s.of(v); is.Condition.Abnormal() {
					t.Errorf("%s: %s is %v", kind, v.Name, is.Condition)
				}
			}
			err := s.e.UnpublishVolume(s.Context(), v.ID, path("data"))
			if len(s.mounts(path("data"))) == 0 {
				t.Errorf("%s: unpublish of %s unmounted the device of %s: %v", kind, v.Name, o.Name, err)
			}
		})
	}
}
