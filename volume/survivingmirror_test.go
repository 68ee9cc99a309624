package volume_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestLoneMirrorIsRemoved: one drive of a mirror is lost, no spare is there, and the mirror is
// deleted. Once an operator has said that the drive is gone, the deletion comes to its end,
// also killed after each of its steps; nothing is left on the drive that is here, and what is
// on the other one is no volume when that returns.
func TestLoneMirrorIsRemoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		gone func(s *stand, v drivebay.Volume, drive string)
	}{
		{"taken out for good", func(s *stand, _ drivebay.Volume, drive string) {
			s.giveUp(drive)
		}},
		{"in no record", func(s *stand, v drivebay.Volume, _ string) {
			s.loseRecord(v)
			if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, drivebay.ErrUnavailable) || !strings.Contains(err.Error(), "accept-loss") {
				s.Errorf("deleted without a word of an operator: %v", err)
			}
			s.must(s.e.AcceptLoss(s.Context(), v.ID))
		}},
	} {
		for _, encrypted := range []bool{false, true} {
			steps := 1
			for n := 1; n <= steps && !t.Failed(); n += everyNth {
				k := &killer{}
				onMachine(t, sameDrives(2), volume.Options{After: k.step, Headers: t.TempDir()}, func(s *stand) {
					r, key := requests()["btrfs on a mirror"], func(*drivebay.StageRequest) {}
					if encrypted {
						r, key = encryptedRequests()["btrfs on a mirror"], with(rightKey)
					}
					r.Class.Wipe = drivebay.WipeZero
					v := s.make("v", r)
					s.must(s.stage(v, key))
					s.word(v, "data")
					s.must(s.unstage(v))
					drive, rest := v.Location.Drives[1], v.Location.Drives[0]
					serial := s.serialOf(drive)
					s.inject(drive, "vanish")
					time.Sleep(10 * time.Second)
					k.anew(0)
					if err := s.e.DeleteVolume(s.Context(), v.ID); c.name != "in no record" && !errors.Is(err, drivebay.ErrUnavailable) {
						t.Errorf("%s: deleted while its drive may come back: %v", c.name, err)
					}
					c.gone(s, v, drive)
					k.anew(n)
					err := s.e.DeleteVolume(s.Context(), v.ID)
					for try := 0; err != nil && try < 2; try++ { // what was resumed may have been killed
						s.start()
						time.Sleep(time.Minute)
						err = s.e.DeleteVolume(s.Context(), v.ID)
					}
					did := k.steps()
					steps = max(steps, len(did))
					k.anew(0)
					if err != nil {
						t.Errorf("%s, killed after step %d of %q: %v", c.name, n, did, err)
					}
					if n == 1 {
						t.Logf("%s, encrypted %v: killed after the first of %q", c.name, encrypted, did)
					}
					s.blankDrive(rest)
					s.comesBack(serial)
					time.Sleep(11 * time.Minute)
					if is, there := s.e.Volumes().Get(v.ID); there {
						t.Errorf("%s, killed after step %d of %q: it is a volume again: %+v", c.name, n, did, is.Location)
					}
				})
			}
		}
	}
}

// TestLoneMirrorIsRepaired: one drive of a mirror in use is lost for good while no spare is
// there. As soon as one is, the mirror gets a new leg there by itself, also killed after each
// of its steps, and holds what was written.
func TestLoneMirrorIsRepaired(t *testing.T) {
	t.Parallel()
	steps := 1
	for n := 1; n <= steps && !t.Failed(); n += everyNth {
		k := &killer{}
		onMachine(t, sameDrives(3), volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", requests()["a mirror"])
			s.must(s.stage(v))
			s.word(v, "data")
			drive, spare := v.Location.Drives[1], s.spareFor(v)
			s.must(s.mgr.Cordon(s.Context(), spare, true))
			s.inject(drive, "vanish")
			time.Sleep(10 * time.Second)
			s.giveUp(drive)
			time.Sleep(5 * time.Minute)
			if is := s.of(v); is.Location.Drives[1] != drive || !is.Condition.Abnormal() {
				t.Errorf("without a spare it is on %v: %v", is.Location.Drives, is.Condition)
			}
			k.anew(n)
			s.must(s.mgr.Cordon(s.Context(), spare, false))
			time.Sleep(10 * time.Minute)
			if k.dead() {
				s.start()
				time.Sleep(10 * time.Minute)
			}
			did := k.steps()
			steps = max(steps, len(did))
			k.anew(0)
			is := s.of(v)
			if !slices.Contains(is.Location.Drives, spare) || slices.Contains(is.Location.Drives, drive) || is.Condition.Abnormal() || s.word(v, "") != "data" {
				t.Errorf("killed after step %d of %q: it is on %v: %s", n, did, is.Location.Drives, is.Condition.Message())
			}
			if n == 1 {
				t.Logf("killed after the first of %q", did)
			}
			s.must(s.unstage(v), s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		})
	}
}
