package volume_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestRetry: what failed in the middle goes on from there once its drive answers
// again, and nothing is lost or made twice.
func TestRetry(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"on a partition": requests()["ext4 on a partition"], "on LVM": requests()["xfs on linear"]} {
		r.Name, r.Size.Required = name, 1<<30
		var s *stand
		after := "" // the next step of this name is the last that the drive lets us do
		opt := volume.Options{After: func(_, step string) error {
			if after != "" && strings.HasPrefix(step, after) {
				after = ""
				for _, d := range s.mgr.Snapshot().Drives {
					s.inject(d.ID, "eio")
				}
			}
			return nil
		}}
		onMachine(t, smallDrives(), opt, func(stand *stand) {
			s = stand
			fails := func(step string, before drivebay.CSIStatus, do func() error) string {
				s.Helper()
				after = step
				if err := do(); err == nil {
					s.Fatalf("%s: done on a drive that failed after %q", name, step)
				}
				all := s.e.Volumes().Volumes
				if len(all) != 1 || all[0].CSIStatus != drivebay.CSIFailed || all[0].Failure.Before != before {
					s.Fatalf("%s, failed after %q: %+v", name, step, all)
				}
				if err := s.e.RetryVolume(s.Context(), all[0].ID); err == nil || errors.Is(err, drivebay.ErrInvalid) {
					s.Errorf("%s, after %q, tried while nothing has changed: %v", name, step, err)
				}
				if err := s.e.ScrubVolume(s.Context(), all[0].ID); !errors.Is(err, drivebay.ErrBusy) {
					s.Errorf("%s, after %q, checked: %v", name, step, err)
				}
				if err := s.e.ForgetVolume(s.Context(), all[0].ID); !errors.Is(err, drivebay.ErrRefused) {
					s.Errorf("%s, after %q, forgotten while its drive is here: %v", name, step, err)
				}
				if err := s.e.ClearVolume(s.Context(), all[0].ID); before != drivebay.CSIResizing && !errors.Is(err, drivebay.ErrInvalid) {
					s.Errorf("%s, half made or removed, is let be: %v", name, err)
				}
				for _, d := range s.mgr.Snapshot().Drives {
					s.inject(d.ID, "heal")
				}
				s.must(s.mgr.Refresh(s.Context()))
				return all[0].ID
			}
			id := fails("table ", drivebay.CSICreating, func() error { _, err := s.e.CreateVolume(s.Context(), r); return err })
			s.must(s.e.RetryVolume(s.Context(), id))
			v, _ := s.e.Volumes().Get(id)
			if v.CSIStatus != drivebay.CSICreated || v.Failure != nil || v.Work != "" {
				s.Fatalf("%s: made by a second try: %+v", name, v.Volume)
			}
			s.must(s.stage(v.Volume), s.unstage(v.Volume))
			if err := s.e.RetryVolume(s.Context(), id); !errors.Is(err, drivebay.ErrInvalid) {
				s.Errorf("%s: tried again, and nothing has failed: %v", name, err)
			}
			fails("mark", drivebay.CSIRemoving, func() error { return s.e.DeleteVolume(s.Context(), id) })
			s.must(s.e.RetryVolume(s.Context(), id))
			s.blank()
		})
	}
}

// TestRetryGrowth: a growth that failed is gone on with, or let be and asked for
// again.
func TestRetryGrowth(t *testing.T) {
	t.Parallel()
	for _, clear := range []bool{false, true} {
		var s *stand
		armed := false
		opt := volume.Options{After: func(_, step string) error {
			if armed && step == "table" {
				s.inject("DISK0001", "eio")
			}
			return nil
		}}
		spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "10GB"}}}
		onMachine(t, spec, opt, func(stand *stand) {
			s, armed = stand, true
			v := s.make("v", requests()["ext4 on a partition"])
			s.must(s.stage(v))
			grow := func() error {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 3 << 30})
				return err
			}
			if err := grow(); err == nil {
				s.Fatal("grown on a drive that failed")
			}
			armed = false
			s.inject("DISK0001", "heal")
			s.must(s.mgr.Refresh(s.Context()))
			if clear {
				s.must(s.e.ClearVolume(s.Context(), v.ID))
				if is := s.of(v); is.CSIStatus != drivebay.CSIVolumeReady || is.Failure != nil || is.Size != v.Size || s.record(v).Work != nil {
					s.Fatalf("let be: %+v, %+v", is.Volume, s.record(v).Work)
				}
				s.must(grow())
			} else {
				s.must(s.e.RetryVolume(s.Context(), v.ID))
			}
			if is := s.of(v); is.CSIStatus != drivebay.CSIResized || is.Size != 3<<30 {
				s.Fatalf("grown after all: %+v", is.Volume)
			}
			s.inject("DISK0001", "eio")
			if _, err := s.e.ExpandNode(s.Context(), v.ID, staging(v), drivebay.SizeRange{}, nil); err == nil {
				s.Fatal("a filesystem is grown on a drive that failed")
			}
			s.inject("DISK0001", "heal")
			s.must(s.e.RetryVolume(s.Context(), v.ID))
			if is := s.of(v); is.CSIStatus != drivebay.CSIVolumeReady || is.Failure != nil {
				s.Errorf("its filesystem, too: %+v", is.Volume)
			}
		})
	}
}

// TestRetryMount: what only the caller can ask for again is left to him.
func TestRetryMount(t *testing.T) {
	onStand(t, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{})
		s.inject(v.Location.Drives[0], "eio")
		if err := s.stage(v); err == nil {
			s.Fatal("staged on a drive that failed")
		}
		if err := s.e.RetryVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrInvalid) || !strings.Contains(err.Error(), "kubelet") {
			s.Errorf("retried: %v", err)
		}
		s.must(s.e.ClearVolume(s.Context(), v.ID))
		if is := s.of(v); is.CSIStatus != drivebay.CSICreated || is.Failure != nil {
			s.Errorf("let be: %+v", is.Volume)
		}
	})
}

// TestForget: a volume whose drive is gone can be got rid of once nobody has it any
// more, with its snapshots; when the drive comes back it is found again.
func TestForget(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["ext4 on thin"])
		_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		other, err2 := s.e.CreateSnapshot(s.Context(), "other", v.ID)
		s.must(err, err2, s.stage(v))
		if err := s.e.ForgetSnapshot(s.Context(), other.ID); !errors.Is(err, drivebay.ErrRefused) {
			s.Errorf("forgotten while its drive is here: %v", err)
		}
		s.inject(v.Location.Drives[0], "vanish")
		time.Sleep(time.Minute)
		if err := s.e.ForgetVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrBusy) {
			s.Errorf("forgotten while it is mounted: %v", err)
		}
		s.must(s.unstage(v), s.e.ForgetSnapshot(s.Context(), other.ID))
		if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
			s.Error("deleted from a drive that is gone")
		}
		s.must(s.e.ForgetVolume(s.Context(), v.ID), s.e.DeleteVolume(s.Context(), v.ID))
		if set := s.e.Volumes(); len(set.Volumes) != 0 || len(set.Snapshots) != 0 {
			s.Errorf("left are %+v, %+v", set.Volumes, set.Snapshots)
		}
		s.start()
		s.inject(v.Location.Drives[0], "return")
		time.Sleep(2 * time.Minute)
		if is := s.of(v); is.CSIStatus != drivebay.CSICreated || is.FSUUID != v.FSUUID || len(s.e.Volumes().Snapshots) != 2 {
			s.Errorf("back again: %+v", is.Volume)
		}
	})
}
