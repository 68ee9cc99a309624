//go:build !race && long

package volume_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestStallsWhileMoving: one operation of a move, or of a call meanwhile, returns minutes later. The drive is released in the end, also after a
// restart, a command that it stays after all, or calls for its volumes; the data are where the volume is said to be, and nothing is left of them
// elsewhere. The cases follow from the seed, as those of TestStalls.
func TestStallsWhileMoving(t *testing.T) {
	stallCases(t, stallWhileMoving)
}

func stallWhileMoving(t *testing.T, random *rand.Rand) {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	kind, meanwhile := pick("a linear volume", "ext4 on thin", "a mirror", "a partition"), pick("nothing", "nothing", "stage", "publish", "restart", "stays", "snapshot")
	n, first := 1+random.IntN(40), random.IntN(2) == 0
	spec := smallDrives()
	spec.Drives[0].Count = 4
	onMachine(t, spec, volume.Options{}, func(s *stand) {
		defer time.Sleep(time.Hour)
		m := s.stalls(first)
		defer func() {
			if s.Failed() {
				s.Logf("%s, meanwhile %s; operation %d, done first: %v, is %q", kind, meanwhile, n, first, m.hit)
			}
		}()
		r := requests()[kind]
		r.Class.Drives = drivebay.TypeNVMe
		used, idle := s.make("used", r), s.make("idle", r)
		id := used.Location.Drives[0]
		for _, v := range []drivebay.Volume{idle, used} {
			s.must(s.stage(v))
			s.first(s.node(v), v.ID)
			s.must(s.unstage(v))
		}
		if kind != "a partition" { // whose copy starts when it is unstaged
			s.must(s.stage(used))
		}
		m.arm(n)
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		time.Sleep(time.Duration(random.IntN(90)) * time.Second)
		switch meanwhile {
		case "stage":
			s.eventually("stage", func() error { return s.stage(idle) })
			time.Sleep(time.Duration(random.IntN(20)) * time.Minute)
			s.eventually("unstage", func() error { return s.unstage(idle) })
		case "publish":
			s.eventually("stage", func() error { return s.stage(used) })
			s.eventually("publish", func() error { return s.publish(used, "pod") })
			time.Sleep(time.Duration(random.IntN(20)) * time.Minute)
			s.eventually("unpublish", func() error { return s.unpublish(used, "pod") })
		case "restart":
			time.Sleep(stall)
			s.start()
		case "stays":
			_ = s.mgr.Operate(s.Context(), id, drivebay.LeaveCancel, "")
			time.Sleep(time.Duration(random.IntN(40)) * time.Minute)
			_ = s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, "")
		case "snapshot":
			if kind == "ext4 on thin" {
				s.eventually("snapshot", func() error { _, err := s.e.CreateSnapshot(s.Context(), "snap", idle.ID); return err })
				s.eventually("no snapshot", func() error { return s.e.DeleteSnapshot(s.Context(), drivebay.SnapshotID("snap")) })
			}
		}
		if kind == "a partition" {
			s.eventually("unstage", func() error { return s.unstage(used) })
		}
		s.released(id)
		m.arm(0)
		for _, v := range []drivebay.Volume{idle, used} {
			is := s.of(v)
			if slices.Contains(is.Location.Drives, id) || len(is.Location.Drives) != len(v.Location.Drives) || is.Usage != drivebay.VolumeInUse {
				s.Errorf("%s is on %v, %v, %v", v.ID, is.Location.Drives, is.Usage, is.UsageFailure)
			}
			s.eventually("stage", func() error { return s.stage(is.Volume) })
			if got := s.first(s.node(is.Volume), ""); !strings.HasPrefix(v.ID, got) {
				s.Errorf("%s reads %q", v.ID, got)
			}
			s.eventually("unstage", func() error { return s.unstage(is.Volume) })
			s.eventually("delete", func() error { return s.e.DeleteVolume(s.Context(), v.ID) })
		}
		s.blankDrive(id)
		time.Sleep(30 * time.Minute)
		s.blank()
	})
}

// released waits until a drive is, and has what failed tried again as an operator would.
func (s *stand) released(id string) {
	s.Helper()
	for range 300 {
		d, _ := s.mgr.Snapshot().Find(id)
		switch d.Usage {
		case drivebay.UsageReleased:
			return
		case drivebay.UsageFailed:
			_ = s.mgr.Operate(s.Context(), id, drivebay.LeaveRetry, "")
		}
		time.Sleep(time.Minute)
	}
	d, _ := s.mgr.Snapshot().Find(id)
	all := fmt.Sprintf("%v %+v", d.Usage, d.Leaving)
	for _, v := range s.e.Volumes().Volumes {
		all += fmt.Sprintf("\n%+v, %q", v.Volume, v.Work)
	}
	s.Fatalf("drive %s is not released: %s", id, all)
}
