package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestGrowthThatFailed: a filesystem that is smaller than its device is said to be,
// however well it can be used, until it has grown.
func TestGrowthThatFailed(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30}); err != nil {
			s.Fatal(err)
		}
		grow := func() error {
			_, err := s.e.ExpandNode(s.Context(), v.ID, target(v, "pod"), drivebay.SizeRange{}, nil)
			return err
		}
		s.inject(v.Location.Drives[0], "eio")
		if err := grow(); err == nil {
			s.Fatal("grown on a drive that takes nothing")
		}
		s.inject(v.Location.Drives[0], "heal")
		s.must(s.publish(v, "other"), s.unpublish(v, "pod"), s.publish(v, "pod"), s.unpublish(v, "other"))
		time.Sleep(5 * time.Second)
		if is := s.of(v); is.CSIStatus != drivebay.CSIFailed || is.Failure.Before != drivebay.CSIResized || !strings.Contains(reasons(is.Condition), "OperationFailed") {
			s.Errorf("used after all: %v, %+v, %s", is.CSIStatus, is.Failure, reasons(is.Condition))
		}
		s.must(grow())
		if is := s.of(v); is.CSIStatus != drivebay.CSIPublished || is.Failure != nil {
			s.Errorf("grown after all: %v, %+v", is.CSIStatus, is.Failure)
		}
	})
}

// TestScrubLetsGo: a check that is under way keeps nobody, and ends with what it
// checks.
func TestScrubLetsGo(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		s.inject(s.device(v), "fs-corrupt")
		s.must(s.e.ScrubVolume(s.Context(), v.ID))
		time.Sleep(30 * time.Second) // between two of three
		if s.of(v).Work != "scrub" {
			s.Fatal("no check is under way")
		}
		began := time.Now()
		s.must(s.unpublish(v, "pod"), s.unstage(v))
		if took := time.Since(began); took > time.Millisecond || s.of(v).Work != "" {
			s.Errorf("let go after %v, under way is %q", took, s.of(v).Work)
		}
		s.must(s.e.ScrubVolume(s.Context(), v.ID), s.stage(v))
		time.Sleep(5 * time.Second)
		if is := s.of(v); is.CSIStatus != drivebay.CSIVolumeReady || is.Work != "" {
			s.Errorf("staged while it is checked: %v, under way is %q", is.CSIStatus, is.Work)
		}
		s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
	})
}

// TestGrowthKeepsTheDeviceOfAPod: the record of a block volume that a pod has is lost, and the
// volume grows. The path of the pod still shows the device of the volume.
func TestGrowthKeepsTheDeviceOfAPod(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a thin volume", "a mirror"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()[name])
			s.must(s.stage(v), s.publish(v, "pod"))
			s.loseRecord(v)
			is := s.of(v)
			_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: is.Size + 64<<20})
			s.must(err)
			s.make("takes the next free device number", requests()[name])
			s.must(s.stage(v))
			if err := s.publish(v, "pod"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s.must(s.e.UnpublishVolume(s.Context(), v.ID, target(v, "pod")), s.unstage(v))
		})
	}
}
