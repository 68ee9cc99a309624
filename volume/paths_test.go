package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// TestPathsWithContent: a file with content at a target was not made by a publish. It is
// neither bound over nor removed, and the volume is as it was.
func TestPathsWithContent(t *testing.T) {
	onStand(t, func(s *stand) {
		b := s.make("b", drivebay.VolumeRequest{Block: true})
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(b), s.stage(v))
		for _, v := range []drivebay.Volume{b, v} {
			s.sim.PutFile(target(v, "pod"))
			if err := s.publish(v, "pod"); !errors.Is(err, drivebay.ErrBusy) || s.of(v).CSIStatus != drivebay.CSIVolumeReady {
				s.Errorf("published over a file, block %v: %v, %v", v.Mode != drivebay.ModeFS, err, s.of(v).CSIStatus)
			}
			if err := s.unpublish(v, "pod"); !errors.Is(err, drivebay.ErrBusy) || s.look(target(v, "pod")) != host.PlaceFile {
				s.Errorf("unpublished where a file is, block %v: %v", v.Mode != drivebay.ModeFS, err)
			}
			s.must(s.publish(v, "other"), s.unpublish(v, "other"), s.unpublish(v, "other"))
			if s.look(target(v, "other")) != host.PlaceNothing {
				s.Error("what a publish made was left")
			}
		}
	})
}

// TestSingleWriterOutlivesRecord: a volume that is mounted for one writer is not given to
// another when the records are lost, whatever the other asks for. The same path is
// published again, and a new one when the old one was let go of.
func TestSingleWriterOutlivesRecord(t *testing.T) {
	t.Parallel()
	for name, r := range some(requests()) {
		for _, settled := range []bool{false, true} {
			onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
				alone := func(r *drivebay.PublishRequest) { r.Access = drivebay.AccessSingleWriter }
				single := func(r *drivebay.StageRequest) { r.Access = drivebay.AccessSingleWriter }
				v := s.make("v", r)
				s.must(s.stage(v, single), s.publish(v, "pod", alone))
				s.must(s.st.DeleteVolume(v.ID))
				s.start()
				time.Sleep(time.Minute)
				if settled { // and the daemon has held the record against the mounts
					s.start()
				}
				if r.Block { // nothing is mounted where it is staged
					s.must(s.stage(v, single))
				}
				for _, access := range []drivebay.Access{drivebay.AccessSingleWriter, drivebay.AccessMultiWriter} {
					other := func(r *drivebay.PublishRequest) { r.Access = access }
					if err := s.publish(v, "other", other); !errors.Is(err, drivebay.ErrBusy) || len(s.mounts(target(v, "other"))) != 0 {
						s.Errorf("%s, settled %v: published to a second pod as %v: %v", name, settled, access, err)
					}
				}
				s.must(s.publish(v, "pod", alone), s.unpublish(v, "pod"), s.publish(v, "other", alone))
			})
		}
	}
}
