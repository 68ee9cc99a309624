package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// copiedTo begins to copy a volume off its drive, and returns the drive that it is copied to.
func (s *stand) copiedTo(v drivebay.Volume) (target string) {
	s.Helper()
	s.lead(v, drivebay.LeaveRelease)
	s.until("copying", func() bool { done, _, ok := s.e.CopyProgress(v.ID); return ok && done > 10<<20 })
	return s.record(v).Work.Move.To.Drives[0]
}

// TestTargetTurnsUnfit: the drive that a volume is being copied to turns BAD, or is released, during the copy. The volume does not go there,
// and the drive is not RELEASED before what was copied is removed from it.
func TestTargetTurnsUnfit(t *testing.T) {
	t.Parallel()
	for what, unfit := range map[string]func(*stand, string){
		"BAD": func(s *stand, target string) {
			s.inject(target, "critical-warning")
			s.must(s.mgr.Refresh(s.Context()))
		},
		"released": func(s *stand, target string) {
			s.must(s.mgr.Operate(s.Context(), target, drivebay.LeaveRelease, ""))
		},
	} {
		onMachine(t, sameDrives(3), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
			v := s.onAPartition(drivebay.VolumeRequest{})
			sum, old := s.sum(v), s.drive(v).ID
			target := s.copiedTo(v)
			unfit(s, target)
			for range 900 {
				time.Sleep(time.Second)
				d, _ := s.mgr.Snapshot().Find(target)
				if r := s.record(v); d.Usage == drivebay.UsageReleased && r.Work != nil && r.Work.Move != nil && r.Work.Move.To.Drives[0] == target {
					t.Fatalf("%s: drive %s is RELEASED while the volume is being copied to it", what, target)
				}
			}
			is := s.of(v).Volume
			if at := is.Location.Drives[0]; at == target || at == old || s.sum(is) != sum {
				t.Errorf("%s: the volume is on %s; it left %s, and %s is unfit", what, at, old, target)
			}
			if d, _ := s.mgr.Snapshot().Find(target); what == "released" && d.Usage != drivebay.UsageReleased {
				t.Errorf("the drive that nothing depends on is %v: %+v", d.Usage, d.Leaving)
			}
		})
	}
}

// TestTargetCannotBeWiped: the drive that a volume is being copied to takes no writes any more, or does not answer, so that what was copied
// cannot be removed from it. The volume moves to another drive all the same, and its deletion wipes what was copied.
func TestTargetCannotBeWiped(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"read-only", "eio", "hang", "resize"} {
		onMachine(t, sameDrives(3), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
			v := s.onAPartition(drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"}, Block: true})
			sum, old := s.sum(v), s.drive(v).ID
			target := s.copiedTo(v)
			s.inject(target, fault)
			for range 120 {
				time.Sleep(time.Minute)
				if is := s.record(v); is.Work == nil && is.Volume.Location.Drives[0] != old {
					break
				}
			}
			is := s.record(v).Volume
			if at := is.Location.Drives[0]; at == target || at == old || s.sum(is) != sum {
				t.Errorf("%s: the volume is on %s; it left %s, and %s is unfit", fault, at, old, target)
			}
			s.inject(target, "heal")
			time.Sleep(time.Hour)
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			s.blank()
		})
	}
}

// TestReleasedWithLeftCopy: a volume was moved while its old drive was pulled, and is released with its next drive. The old drive comes
// back: it is not RELEASED before the copy on it is wiped.
func TestReleasedWithLeftCopy(t *testing.T) {
	t.Parallel()
	var s *stand
	var old string
	var at []string
	opt := volume.Options{After: func(_, step string) error {
		if s != nil {
			if d, ok := s.mgr.Snapshot().Find(old); ok {
				at = append(at, step+": "+d.Usage.String())
			}
		}
		return nil
	}}
	withLeftCopy(t, "settled", opt, func(c leftCopy) {
		at = nil
		next := c.record(c.v).Volume.Location.Drives[0]
		for _, d := range c.mgr.Snapshot().Drives {
			if d.ID != next && d.ID != c.old {
				c.must(c.mgr.Cordon(c.Context(), d.ID, true))
			}
		}
		c.must(c.mgr.Operate(c.Context(), next, drivebay.LeaveRelease, ""))
		time.Sleep(10 * time.Second)
		c.must(c.e.ReleaseVolume(c.Context(), c.v.ID))
		time.Sleep(10 * time.Second)
		s, old = c.stand, c.old
		c.putBack()
		if steps := strings.Join(at, ", "); !strings.Contains(steps, "wipe: ") || strings.Contains(steps, "wipe: "+drivebay.UsageReleased.String()) {
			t.Errorf("the usage of the drive after each step: %s", steps)
		}
		s = nil
	})
}
