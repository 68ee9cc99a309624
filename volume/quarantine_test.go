package volume_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// writesTo counts what is written to a drive from now on.
func (s *stand) writesTo(serial string) *atomic.Int64 {
	n := &atomic.Int64{}
	s.sim.Watch(func(w hostsim.Write) {
		if w.Drive == serial {
			n.Add(1)
		}
	})
	return n
}

// giveUpDrive gives up a drive that is dead, with all that is on it.
func (s *stand) giveUpDrive(id string) {
	s.Helper()
	s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
	time.Sleep(10 * time.Second)
	s.inject(id, "vanish")
	time.Sleep(10 * time.Second)
	s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveForce, "it is dead"))
	time.Sleep(time.Minute)
}

// TestQuarantined: a drive was removed with a volume on it and is back. Nothing is written to it before an operator accepts it, and the
// volume says so.
func TestQuarantined(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]map[string]func(*stand, drivebay.Volume) error{
		"a partition": {
			"stage": func(s *stand, v drivebay.Volume) error { return s.stage(v) },
			"grow": func(s *stand, v drivebay.Volume) error {
				_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
				return err
			},
		},
		"a thin volume": {
			"snapshot": func(s *stand, v drivebay.Volume) error {
				_, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
				return err
			},
		},
	} {
		for what, call := range calls {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				v := s.make("v", requests()[name])
				id := v.Location.Drives[0]
				serial := s.serialOf(id)
				_, other := s.idle(id)
				s.must(s.mgr.Cordon(s.Context(), other, true)) // no room to move
				s.giveUpDrive(id)
				s.comesBack(serial)
				time.Sleep(5 * time.Minute)
				if is := s.of(v); len(severities(is.Condition, "DriveQuarantined")) != 1 {
					t.Errorf("%s: the condition is %q", name, is.Condition.Message())
				}
				n := s.writesTo(serial)
				if err := call(s, v); !errors.Is(err, drivebay.ErrRefused) || n.Load() > 0 {
					t.Errorf("%s of %s: %v, and %d writes", what, name, err, n.Load())
				}
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveAccept, ""))
				time.Sleep(time.Minute)
				if err := s.retried(func() error { return call(s, v) }); err != nil {
					t.Errorf("%s of %s, accepted: %v", what, name, err)
				}
			})
		}
	}
}

// TestQuarantinedWork: work was under way on a drive when it was pulled and given up. It does not go on by itself when the drive is back.
func TestQuarantinedWork(t *testing.T) {
	t.Parallel()
	stays := func(s *stand, k *killer, serial, what string) {
		n := s.writesTo(serial)
		s.comesBack(serial)
		time.Sleep(10 * time.Minute)
		if n.Load() > 0 {
			t.Errorf("%s goes on with %q: %d writes", what, k.steps(), n.Load())
		}
	}
	k := &killer{}
	onMachine(t, sameDrives(2), volume.Options{After: k.step}, func(s *stand) {
		v := s.make("v", requests()["a partition"])
		id := v.Location.Drives[0]
		serial := s.serialOf(id)
		k.anew(1)
		if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30}); err == nil {
			t.Fatal(fmt.Sprint("it has grown: ", k.steps()))
		}
		s.inject(id, "vanish")
		time.Sleep(10 * time.Second)
		k.arm(0)
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""), s.mgr.Operate(s.Context(), id, drivebay.LeaveForce, "it is dead"))
		s.start()
		time.Sleep(time.Minute)
		stays(s, k, serial, "a growth")
	})
	k = &killer{}
	onMachine(t, sameDrives(3), volume.Options{After: k.step}, func(s *stand) {
		h := s.halfMoved(k, "a linear volume", false, false)
		time.Sleep(10 * time.Second)
		s.must(s.mgr.Operate(s.Context(), h.old, drivebay.LeaveForce, "it is dead"))
		time.Sleep(30 * time.Second)
		stays(s, k, s.serialOf(h.old), "a move")
	})
}

// TestSnapshotOfLostDrive: the drive of a thin volume and its snapshot was taken out for good. Both can be deleted, in any order, and do
// not come back with the drive.
func TestSnapshotOfLostDrive(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"snapshot", "volume"} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()["a thin volume"])
			snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
			s.must(err)
			id := v.Location.Drives[0]
			serial := s.serialOf(id)
			_, other := s.idle(id)
			s.must(s.mgr.Cordon(s.Context(), other, true))
			s.giveUpDrive(id)
			deletes := []func() error{
				func() error { return s.e.DeleteSnapshot(s.Context(), snap.ID) },
				func() error { return s.e.DeleteVolume(s.Context(), v.ID) },
			}
			if first == "volume" {
				deletes[0], deletes[1] = deletes[1], deletes[0]
			}
			for _, del := range deletes {
				if err := s.retried(del); err != nil {
					t.Errorf("the %s first: %v", first, err)
				}
			}
			s.comesBack(serial)
			s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveAccept, ""))
			time.Sleep(10 * time.Minute)
			if set := s.e.Volumes(); len(set.Volumes)+len(set.Snapshots) > 0 {
				t.Errorf("the %s first: there are %d volumes and %d snapshots again", first, len(set.Volumes), len(set.Snapshots))
			}
		})
	}
}
