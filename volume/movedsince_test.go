package volume_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestMovedSince: the records are older than a move that has ended, or that is under way.
// Volumes are where their drives show them, with their newest data; where the drives do not say
// which way to go on, an operator does.
func TestMovedSince(t *testing.T) {
	t.Parallel()
	for _, name := range copyMoves {
		steps := 1
		for n := 1; n <= steps && !t.Failed(); n += everyNth {
			k := &killer{}
			onMachine(t, sameDrives(4), volume.Options{After: k.step}, func(s *stand) {
				used, idle := s.twoOf(name)
				s.word(used, "before")
				all, err := s.st.Volumes()
				s.must(err)
				records, err := s.st.Records()
				s.must(err)
				id := used.Location.Drives[0]
				k.anew(n)
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
				for len(k.steps()) < n && s.drive(used).Usage == drivebay.UsageReleasing {
					time.Sleep(time.Second)
				}
				if !k.dead() {
					s.word(used, "newest")
				}
				moved := !k.dead()
				k.arm(0)
				s.restart(func() {
					s.must(s.st.PutRecords(records))
					for _, r := range all {
						s.must(s.st.PutVolume(r))
					}
				})
				time.Sleep(11 * time.Minute)
				if got := len(s.e.Newer()) > 0; moved && !got {
					t.Error("that the store is older is not said")
				}
				next := s.make("next", requests()["a partition"])
				s.must(s.e.DeleteVolume(s.Context(), next.ID))
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
				s.usage(id, drivebay.UsageReleased, 10*time.Minute)
				for _, v := range []drivebay.Volume{used, idle} {
					if is := s.of(v); slices.Contains(is.Location.Drives, id) || len(is.Location.Drives) != len(v.Location.Drives) || is.Condition.Abnormal() {
						t.Errorf("it is on %v: %s", is.Location.Drives, is.Condition.Message())
					}
				}
				if got, want := s.word(used, ""), map[bool]string{true: "newest", false: "before"}[moved]; got != want {
					t.Errorf("it reads %q", got)
				}
				if steps = max(steps, len(k.steps())); t.Failed() {
					t.Logf("%s, killed after step %d of %q", name, n, k.steps())
				}
				s.must(s.unstage(s.of(used).Volume), s.e.DeleteVolume(s.Context(), used.ID), s.e.DeleteVolume(s.Context(), idle.ID))
				if slices.Contains(k.steps(), "blank "+id) { // else an empty partition is left, which no record knows
					s.blankDrive(id)
				}
			})
		}
		if steps < 8 {
			t.Errorf("%s: only %d steps", name, steps)
		}
	}
}

// TestMovedSinceOneWasDeleted: a mirror was deleted and its volume group moved after the records were
// written. Its record does not keep the drive that the group has left, and after `forget` the group
// moves again.
func TestMovedSinceOneWasDeleted(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(4), volume.Options{}, func(s *stand) {
		used, gone := s.twoOf("a mirror")
		s.word(used, "before")
		all, err := s.st.Volumes()
		s.must(err)
		records, err := s.st.Records()
		s.must(err)
		leaves := func(id string) {
			s.Helper()
			s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
			s.usage(id, drivebay.UsageReleased, 10*time.Minute)
		}
		s.must(s.e.DeleteVolume(s.Context(), gone.ID))
		leaves(used.Location.Drives[1])
		on := s.of(used).Location.Drives
		s.restart(func() {
			s.must(s.st.PutRecords(records))
			for _, r := range all {
				s.must(s.st.PutVolume(r))
			}
		})
		time.Sleep(11 * time.Minute)
		for _, v := range []drivebay.Volume{used, gone} {
			if is := s.of(v).Location.Drives; !slices.Equal(is, on) {
				t.Errorf("the record of volume %s names %v, and the group is on %v", v.Name, is, on)
			}
		}
		s.must(s.e.ForgetVolume(s.Context(), gone.ID))
		leaves(on[0])
		if is := s.of(used); is.Condition.Abnormal() || s.word(used, "") != "before" {
			t.Errorf("moved again: %s", is.Condition.Message())
		}
	})
}

// TestMovedSinceItWasBegun: a volume was made and its volume group moved after the records were
// written. They say that the volume is being made on the drives that the group has left.
func TestMovedSinceItWasBegun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a linear volume", "a mirror"} {
		k := &killer{}
		onMachine(t, sameDrives(4), volume.Options{After: k.step}, func(s *stand) {
			r := requests()[name]
			r.Name = "v"
			k.arm(3)
			_, err := s.e.CreateVolume(s.Context(), r)
			older, err2 := s.st.Volumes()
			k.arm(0)
			if s.must(err2); !s.restarted(err) || len(older) != 1 {
				t.Fatalf("%s: not killed", name)
			}
			var v drivebay.Volume
			s.must(s.retried(func() error { v, err = s.e.CreateVolume(s.Context(), r); return err }))
			id := v.Location.Drives[0]
			s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
			s.usage(id, drivebay.UsageReleased, 10*time.Minute)
			s.restart(func() { s.must(s.st.PutVolume(older[v.ID])) })
			time.Sleep(11 * time.Minute)
			s.must(s.retried(func() error { _, err := s.e.CreateVolume(s.Context(), r); return err }))
			if is := s.of(v); slices.Contains(is.Location.Drives, id) || is.Condition.Abnormal() {
				t.Errorf("%s is on %v: %s", name, is.Location.Drives, is.Condition.Message())
			}
			s.must(s.stage(s.of(v).Volume))
		})
	}
}
