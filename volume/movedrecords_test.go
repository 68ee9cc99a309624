package volume_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// Records that look older than a move, and are not.

// comesBack puts a drive back that was pulled, under another kernel name.
func (s *stand) comesBack(serial string) {
	s.Helper()
	s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "return", Args: hostsim.Args{"rename": "true"}}))
	time.Sleep(time.Minute)
}

// loseRecord starts the engine without the record of a volume.
func (s *stand) loseRecord(v drivebay.Volume) {
	s.Helper()
	s.stop()
	s.stop = nil
	s.must(s.st.DeleteVolume(v.ID))
	s.start()
	time.Sleep(time.Minute)
}

// TestMirrorCompletedIsNoMove: a mirror is found again with one leg, its loss is accepted and it
// is written to. When the other drive returns, the leg that carried on stays the newest, also
// if the other was made by a move once.
func TestMirrorCompletedIsNoMove(t *testing.T) {
	t.Parallel()
	for _, wasMoved := range []bool{false, true} {
		onMachine(t, sameDrives(4), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()["a mirror"])
			other, kept := v.Location.Drives[0], v.Location.Drives[1]
			if wasMoved {
				s.must(s.mgr.Operate(s.Context(), other, drivebay.LeaveRelease, ""))
				s.usage(other, drivebay.UsageReleased, 10*time.Minute)
				time.Sleep(10 * time.Second)
				v = s.of(v).Volume
				other = v.Location.Drives[1-slices.Index(v.Location.Drives, kept)]
			}
			s.must(s.stage(v))
			s.word(v, "first")
			s.must(s.unstage(v))
			serial := s.serialOf(other)
			s.inject(other, "vanish")
			time.Sleep(10 * time.Second)
			s.loseRecord(v)
			s.must(s.e.AcceptLoss(s.Context(), v.ID), s.stage(v))
			s.word(v, "second")
			s.stop()
			s.stop = nil
			s.sim.PowerCut()
			s.comesBack(serial)
			s.start()
			time.Sleep(time.Minute)
			s.must(s.stage(v))
			if got := s.word(v, ""); got != "second" {
				t.Errorf("moved %v: it reads %q", wasMoved, got)
			}
			time.Sleep(10 * time.Minute)
			s.inject(kept, "vanish")
			time.Sleep(10 * time.Second)
			if got := s.word(v, ""); got != "second" || len(s.e.Newer()) > 0 {
				t.Errorf("moved %v: the other leg reads %q; newer than the store: %v", wasMoved, got, s.e.Newer())
			}
		})
	}
}

// TestMovedSinceKeepsTheNewest: older records name the newest leg of a mirror, whose group has
// got a third drive since, and no leg on it yet.
func TestMovedSinceKeepsTheNewest(t *testing.T) {
	t.Parallel()
	for first := range 2 {
		k := &killer{}
		onMachine(t, sameDrives(4), volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", requests()["a mirror"])
			old := v.Location.Drives[first]
			serial := s.serialOf(old)
			s.must(s.stage(v))
			s.word(v, "first")
			s.must(s.unstage(v))
			s.inject(old, "vanish")
			time.Sleep(10 * time.Second)
			s.must(s.stage(v))
			s.word(v, "second")
			s.comesBack(serial)
			all, err := s.st.Volumes()
			s.must(err)
			k.anew(4)
			s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
			s.until("killed", k.dead)
			s.stop()
			s.stop = nil
			s.sim.PowerCut()
			k.arm(0)
			s.must(s.st.PutVolume(all[v.ID]), s.mgr.Operate(s.Context(), old, drivebay.LeaveCancel, ""))
			s.start()
			time.Sleep(time.Minute)
			s.must(s.stage(v))
			if got := s.word(v, ""); got != "second" {
				t.Errorf("old leg %d, killed after %q: it reads %q", first, k.steps(), got)
			}
		})
	}
}

// TestSalvagedStaysLost: a drive that was given up in the middle of a move is put back. The
// record of what was lost with it stays on it, and is not deleted as long as its data are there.
func TestSalvagedStaysLost(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
		lost, other := s.make("used", requests()["a linear volume"]), s.make("idle", requests()["a linear volume"])
		s.must(s.stage(lost), s.stage(other))
		s.word(lost, "llllll")
		s.word(other, "oooooo")
		s.must(s.unstage(lost), s.unstage(other))
		old := lost.Location.Drives[0]
		serial := s.serialOf(old)
		s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "unreadable", Args: hostsim.Args{"sector": "1000000", "n": "1"}}))
		s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveRelease, ""))
		s.usage(old, drivebay.UsageFailed, 5*time.Minute)
		s.must(s.sim.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}))
		time.Sleep(30 * time.Second)
		s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveForce, "dead"))
		time.Sleep(3 * time.Minute)
		before := s.of(lost).Location.Drives
		s.comesBack(serial)
		s.must(s.mgr.Operate(s.Context(), old, drivebay.LeaveAccept, ""))
		time.Sleep(15 * time.Minute)
		if after := s.of(lost).Location.Drives; !slices.Equal(before, after) || len(s.e.Newer()) > 0 {
			t.Errorf("the record of the lost one was on %v and is on %v; newer than the store: %v", before, after, s.e.Newer())
		}
		if err := s.e.DeleteVolume(s.Context(), lost.ID); err == nil && s.holds(old, "llllll") {
			t.Error("it is deleted, and its data are on the drive")
		}
		if _, _, err := s.e.ExpandVolume(s.Context(), other.ID, drivebay.SizeRange{Required: 2 << 30}); err != nil {
			t.Errorf("expand the one that moved: %v", err)
		}
	})
}

// TestShownIsNotForgotten: a volume that LVM shows on another drive than its record names, as
// after a move by hand, is not given up.
func TestShownIsNotForgotten(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a linear volume"])
		_, other := s.idle(v.Location.Drives[0])
		all, err := s.st.Volumes()
		s.must(err)
		r := all[v.ID]
		r.Volume.Location.Drives = []string{other}
		s.restart(func() { s.must(s.st.PutVolume(r)) })
		time.Sleep(11 * time.Minute)
		if err := s.e.ForgetVolume(s.Context(), v.ID); err == nil {
			t.Error("forgotten")
		}
	})
}

// TestFoundMirrorIsRemoved: a mirror that was found again with one leg is to be removed. That
// ends once its other drive is back, and leaves nothing on either.
func TestFoundMirrorIsRemoved(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		r := requests()["a mirror"]
		r.Class.Wipe = drivebay.WipeZero
		v := s.make("v", r)
		s.must(s.stage(v))
		s.word(v, "data")
		s.must(s.unstage(v))
		serial := s.serialOf(v.Location.Drives[0])
		s.inject(v.Location.Drives[0], "vanish")
		time.Sleep(10 * time.Second)
		s.loseRecord(v)
		if err := s.e.DeleteVolume(s.Context(), v.ID); !askedAgain(err) {
			t.Errorf("deleted without one of its drives: %v", err)
		}
		s.comesBack(serial)
		time.Sleep(11 * time.Minute)
		s.must(s.e.DeleteVolume(s.Context(), v.ID))
		s.blankDrive(v.Location.Drives[0])
		s.blankDrive(v.Location.Drives[1])
	})
}

// TestFoundWithoutItsLeg: a volume group has got one more drive for a move when its records are lost, and
// a drive with the data of its volume is away. The volume is found on the other drives. When the drive is
// back, the records name it as well.
func TestFoundWithoutItsLeg(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		volume       string
		leaves, away int
	}{{"a mirror", 0, 1}, {"a mirror", 1, 0}, {"a linear volume", 0, 0}} {
		k := &killer{}
		onMachine(t, sameDrives(4), volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", requests()[c.volume])
			leaves, away := v.Location.Drives[c.leaves], v.Location.Drives[c.away]
			serial := s.serialOf(away)
			s.must(s.stage(v))
			s.word(v, "first")
			s.must(s.unstage(v))
			k.anew(4) // after the join
			s.must(s.mgr.Operate(s.Context(), leaves, drivebay.LeaveRelease, ""))
			s.until("killed", k.dead)
			k.arm(0)
			s.inject(away, "vanish")
			time.Sleep(10 * time.Second)
			s.must(s.mgr.Operate(s.Context(), leaves, drivebay.LeaveCancel, ""))
			s.loseRecord(v)
			found := s.of(v).Location.Drives
			if done := k.steps(); done[len(done)-1] != "join" || slices.Contains(found, away) {
				s.Fatalf("%s: killed after %q, it is found on %v", c.volume, done, found)
			}
			s.comesBack(serial)
			time.Sleep(11 * time.Minute)
			if now := s.of(v).Location.Drives; !slices.Contains(now, away) {
				t.Errorf("%s: it was found on %v, and is on %v", c.volume, found, now)
			}
			s.must(s.stage(v))
			if got := s.word(v, ""); got != "first" {
				t.Errorf("%s: it reads %q", c.volume, got)
			}
		})
	}
}
