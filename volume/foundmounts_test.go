package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// withoutRecord loses the record of a volume: the daemon finds it again on its drives, and then its mounts.
func (s *stand) withoutRecord(v drivebay.Volume) {
	s.Helper()
	s.must(s.st.DeleteVolume(v.ID))
	for range 2 {
		s.start()
		time.Sleep(time.Minute)
	}
}

// TestFoundMountKeepsItsMode: a mount that was found after the records were lost is read-only if the mount
// table says so. A call that asks for the other mode is refused, and the mount stays as it is.
func TestFoundMountKeepsItsMode(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, readOnly := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
					mode := func(readOnly bool) func(*drivebay.PublishRequest) {
						return func(r *drivebay.PublishRequest) { r.ReadOnly = readOnly }
					}
					v := s.make("v", r)
					s.must(s.stage(v), s.publish(v, "pod", mode(readOnly)))
					s.withoutRecord(v)
					s.must(s.stage(v))
					if err := s.publish(v, "pod", mode(!readOnly)); !errors.Is(err, drivebay.ErrExists) {
						s.Errorf("read-only %v, and asked for the other: %v", readOnly, err)
					}
					s.must(s.publish(v, "pod", mode(readOnly)))
					if err := s.publish(v, "pod", mode(!readOnly)); !errors.Is(err, drivebay.ErrExists) {
						s.Errorf("recorded: %v", err)
					}
				})
			})
		}
	}
}

// TestFoundStageKeepsItsMode is TestFoundMountKeepsItsMode for a stage.
func TestFoundStageKeepsItsMode(t *testing.T) {
	onStand(t, func(s *stand) {
		mode := func(option string) func(*drivebay.StageRequest) {
			return func(r *drivebay.StageRequest) { r.Options = []string{option} }
		}
		for was, other := range map[string]string{"rw": "ro", "ro": "rw"} {
			v := s.make("v"+was, drivebay.VolumeRequest{})
			s.must(s.stage(v, mode(was)))
			s.withoutRecord(v)
			if err := s.stage(v, mode(other)); !errors.Is(err, drivebay.ErrExists) {
				s.Errorf("staged %s, and again %s: %v", was, other, err)
			}
			s.must(s.stage(v, mode(was)))
		}
	})
}

// TestFoundMountsEnd: unpublish and unstage end after the records were lost, in whatever order the mount
// table has the paths, and if only the path of the pod is left. A stage in between is no obstacle.
func TestFoundMountsEnd(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(*stand, drivebay.Volume){
		"as it was": func(*stand, drivebay.Volume) {},
		"staged again after it was published": func(s *stand, v drivebay.Volume) {
			s.must(s.sim.Unmount(s.Context(), place(staging(v))))
			time.Sleep(10 * time.Second)
			s.heal(v)
		},
		"only the path of the pod is left": func(s *stand, v drivebay.Volume) { s.must(s.sim.Unmount(s.Context(), place(staging(v)))) },
	} {
		for name, r := range some(requests()) {
			if r.Block { // its staging path has no mount
				continue
			}
			for _, stage := range []bool{false, true} {
				t.Run(what+"/"+name, func(t *testing.T) {
					onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
						v := s.make("v", r)
						s.must(s.stage(v), s.publish(v, "pod"))
						spoil(s, v)
						s.withoutRecord(v)
						if len(s.mounts(staging(v))) > 0 {
							if err := s.unstage(v); !errors.Is(err, drivebay.ErrBusy) {
								s.Errorf("unstage of a published volume: %v", err)
							}
						}
						if stage {
							s.must(s.stage(v), s.publish(v, "pod"))
						}
						s.must(s.unpublish(v, "pod"), s.unstage(v))
						time.Sleep(time.Minute)
						if is := s.of(v); is.CSIStatus != drivebay.CSICreated || len(is.Publications) > 0 || is.Condition.Abnormal() {
							s.Errorf("%v, published %v: %s", is.CSIStatus, is.Publications, is.Condition.Message())
						}
						s.must(s.e.DeleteVolume(s.Context(), v.ID))
					})
				})
			}
		}
	}
}
