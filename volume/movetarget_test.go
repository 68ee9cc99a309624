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
// cannot be removed from it. The volume moves to another drive all the same. Once the drive is sound again, what was copied is wiped, also if
// the drive is released: it is RELEASED after that.
func TestTargetCannotBeWiped(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"read-only", "eio", "hang", "resize"} {
		for _, released := range []bool{false, true} {
			onMachine(t, sameDrives(3), volume.Options{CopyRate: 1 << 20}, func(s *stand) {
				v := s.onAPartition(drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"}, Block: true})
				sum, old := s.sum(v), s.drive(v).ID
				target := s.copiedTo(v)
				s.inject(target, fault)
				s.hours(fault+": the volume moves", func() bool { is := s.record(v); return is.Work == nil && is.Volume.Location.Drives[0] != old })
				is := s.record(v).Volume
				if at := is.Location.Drives[0]; at == target || at == old || s.sum(is) != sum {
					t.Errorf("%s: the volume is on %s; it left %s, and %s is unfit", fault, at, old, target)
				}
				s.inject(target, "heal")
				on := func() *drivebay.Drive { d, _ := s.mgr.Snapshot().Find(target); return d }
				s.hours(fault+": the drive is GOOD", func() bool { return on().Health == drivebay.HealthGood && on().NotWritten() == "" })
				if released {
					s.must(s.mgr.Operate(s.Context(), target, drivebay.LeaveRelease, ""))
					s.hours(fault+": the drive is released", func() bool { return on().Usage == drivebay.UsageReleased })
				} else {
					s.hours(fault+": the copy is wiped", func() bool { return len(s.record(v).Left) == 0 })
				}
				if left := s.record(v).Left; len(left) > 0 || !s.allZero(*on()) {
					t.Errorf("%s, released %v: the copies that are left: %+v", fault, released, left)
				}
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
				s.blank()
			})
		}
	}
}

// hours waits for something that takes hours.
func (s *stand) hours(what string, is func() bool) {
	s.Helper()
	for range 48 * 12 {
		if is() {
			return
		}
		time.Sleep(5 * time.Minute)
	}
	s.Fatalf("not within two days: %s", what)
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
