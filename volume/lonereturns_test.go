package volume_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// giveUp says that a drive which is not there is lost for good.
func (s *stand) giveUp(drive string) {
	s.Helper()
	s.must(s.mgr.Operate(s.Context(), drive, drivebay.LeaveRelease, ""), s.mgr.Operate(s.Context(), drive, drivebay.LeaveForce, "it is dead"))
}

// spareFor is a drive that a volume is not on.
func (s *stand) spareFor(v drivebay.Volume) string {
	for _, d := range s.mgr.Snapshot().Drives {
		if !slices.Contains(v.Location.Drives, d.ID) {
			return d.ID
		}
	}
	return ""
}

// TestLoneMirrorReturns: a mirror is removed without its other drive, the daemon is killed, and
// then that drive is back and may be used. The removal ends as it began: what is not wiped is on
// no drive that is called blank.
func TestLoneMirrorReturns(t *testing.T) {
	t.Parallel()
	killed := true
	for n := 1; killed && !t.Failed(); n += everyNth {
		k := &killer{}
		onMachine(t, sameDrives(2), volume.Options{After: k.step}, func(s *stand) {
			r := requests()["a mirror"]
			r.Class.Wipe = drivebay.WipeZero
			v := s.make("v", r)
			s.must(s.stage(v))
			s.word(v, "SECRET")
			s.must(s.unstage(v))
			drive, rest := v.Location.Drives[1], v.Location.Drives[0]
			serial := s.serialOf(drive)
			s.inject(drive, "vanish")
			time.Sleep(10 * time.Second)
			s.giveUp(drive)
			k.anew(n)
			_ = s.e.DeleteVolume(s.Context(), v.ID)
			did := k.steps()
			killed = k.dead()
			s.stop()
			s.stop = nil
			k.anew(0)
			s.comesBack(serial)
			s.must(s.mgr.Operate(s.Context(), drive, drivebay.LeaveAccept, ""))
			s.start()
			time.Sleep(3 * time.Minute)
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
			time.Sleep(11 * time.Minute)
			s.blankDrive(rest)
			d, _ := s.mgr.Snapshot().Find(drive)
			if d.Content.Kind == drivebay.ContentBlank && s.anywhere(drive, "SECRET") || s.anywhere(rest, "SECRET") {
				t.Errorf("killed after step %d of %q: its data are on a drive that is called blank", n, did)
			}
		})
	}
}

// ownMetadata says of a physical volume that was away while its group was removed what its own
// metadata still say: the simulated machine keeps one copy of a group for all drives.
type ownMetadata struct {
	lvm.Runner
	report string // of it alone, before it went
	device string // which it was then

	mu sync.Mutex
	is string // since it is back
}

func (o *ownMetadata) Run(ctx context.Context, args ...string) ([]byte, error) {
	o.mu.Lock()
	is := o.is
	o.mu.Unlock()
	line := strings.Join(args, " ")
	if is != "" && slices.Contains(args, "fullreport") && strings.Contains(line, is) && strings.Count(line, "/dev/") == 1 {
		return []byte(strings.ReplaceAll(o.report, o.device, is)), nil
	}
	return o.Runner.Run(ctx, args...)
}

func (o *ownMetadata) back(device string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.is = device
}

// heard is a report of LVM as it came.
type heard struct {
	lvm.Runner
	out []byte
}

func (h *heard) Run(ctx context.Context, args ...string) ([]byte, error) {
	out, err := h.Runner.Run(ctx, args...)
	if slices.Contains(args, "fullreport") {
		h.out = out
	}
	return out, err
}

// TestLoneMirrorStaysDeleted: what the other drive of a mirror that was removed without it
// brings back is no volume, whatever its own metadata say.
func TestLoneMirrorStaysDeleted(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"it was taken out", "it is forgotten", "no record names it"} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()["btrfs on a mirror"])
			drive := v.Location.Drives[1]
			d, _ := s.mgr.Snapshot().Find(drive)
			device, own := "/dev/"+d.Name+"p1", &heard{Runner: s.sim}
			_, err := lvm.New(own, "").Read(s.Context(), []string{device})
			s.must(err)
			later := &ownMetadata{Runner: s.sim, report: string(own.out), device: device}
			s.lvm = later
			s.start()
			serial := s.serialOf(drive)
			s.inject(drive, "vanish")
			time.Sleep(10 * time.Second)
			if way == "no record names it" {
				s.loseRecord(v)
				s.must(s.e.AcceptLoss(s.Context(), v.ID))
			} else {
				s.giveUp(drive)
			}
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
			if way == "it is forgotten" {
				s.must(s.mgr.Operate(s.Context(), drive, drivebay.LeaveForget, ""))
			}
			s.comesBack(serial)
			d, _ = s.mgr.Snapshot().Find(drive)
			later.back("/dev/" + d.Name + "p1")
			if way == "it was taken out" {
				s.must(s.mgr.Operate(s.Context(), drive, drivebay.LeaveAccept, ""))
			}
			time.Sleep(11 * time.Minute)
			if is, there := s.e.Volumes().Get(v.ID); there {
				t.Errorf("%s: it is a volume again: %+v, %v: %s", way, is.Location, is.CSIStatus, is.Condition.Message())
			}
			if left := s.events(drivebay.EventVolumeLeft); len(left) == 0 {
				t.Errorf("%s: what is left on the other drive is not told", way)
			}
		})
	}
}

// TestLoneMirrorStale: the leg with the newest data is lost for good, and a spare is there.
// Nothing is made from the older leg before an operator accepts that; then the mirror is made
// whole from it.
func TestLoneMirrorStale(t *testing.T) {
	t.Parallel()
	for _, free := range []bool{false, true} {
		onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()["a mirror"])
			s.must(s.stage(v))
			s.word(v, "first")
			spare := s.spareFor(v)
			newest, stale := v.Location.Drives[0], v.Location.Drives[1]
			serial := s.serialOf(stale)
			s.must(s.mgr.Cordon(s.Context(), spare, true))
			s.inject(stale, "vanish")
			time.Sleep(10 * time.Second)
			s.word(v, "second")
			s.must(s.unstage(v))
			time.Sleep(time.Minute)
			s.inject(newest, "vanish")
			time.Sleep(10 * time.Second)
			s.comesBack(serial)
			s.must(s.mgr.Operate(s.Context(), newest, drivebay.LeaveRelease, ""))
			if free { // while it is being released
				s.must(s.mgr.Cordon(s.Context(), spare, false))
				time.Sleep(time.Minute)
			}
			s.must(s.mgr.Operate(s.Context(), newest, drivebay.LeaveForce, "it is dead"), s.mgr.Cordon(s.Context(), spare, false))
			time.Sleep(10 * time.Minute)
			if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) && !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("staged from the older leg: %v", err)
			}
			if is := s.of(v).Location.Drives; slices.Contains(is, spare) {
				t.Errorf("made anew from the older leg: it is on %v", is)
			}
			s.must(s.e.AcceptLoss(s.Context(), v.ID))
			time.Sleep(10 * time.Minute)
			s.must(s.stage(v))
			if is := s.of(v); !slices.Contains(is.Location.Drives, spare) || len(is.Location.Drives) != 2 || s.word(v, "") != "first" {
				t.Errorf("after the loss was accepted it is on %v: %s", is.Location.Drives, is.Condition.Message())
			}
			s.must(s.unstage(v), s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		})
	}
}

// TestLoneMirrorReleased: the other drive of a mirror is gone when the one with the newest data is
// released. It waits; once the other one is lost for good, that leg is made anew, then this one.
func TestLoneMirrorReleased(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(4), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a mirror"])
		s.must(s.stage(v))
		newest, gone := v.Location.Drives[0], v.Location.Drives[1]
		s.inject(gone, "vanish")
		time.Sleep(10 * time.Second)
		s.word(v, "second")
		s.must(s.unstage(v), s.mgr.Operate(s.Context(), newest, drivebay.LeaveRelease, ""))
		time.Sleep(10 * time.Minute)
		if d, _ := s.mgr.Snapshot().Find(newest); d.Usage != drivebay.UsageReleasing || len(s.of(v).Location.Drives) != 2 {
			t.Errorf("%v without the other drive, the mirror on %v", d.Usage, s.of(v).Location.Drives)
		}
		s.giveUp(gone)
		s.usage(newest, drivebay.UsageReleased, 30*time.Minute)
		s.must(s.stage(v))
		is := s.of(v)
		if on := is.Location.Drives; len(on) != 2 || slices.Contains(on, newest) || slices.Contains(on, gone) || s.word(v, "") != "second" {
			t.Errorf("the mirror is on %v: %s", on, is.Condition.Message())
		}
		s.must(s.unstage(v), s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
	})
}

// cutMove releases a drive, and kills the daemon after the n-th step of the move. Another drive is pulled before it starts
// again.
func (s *stand) cutMove(k *killer, n int, leaving, pulled string) (did []string) {
	s.Helper()
	k.anew(n)
	s.must(s.mgr.Operate(s.Context(), leaving, drivebay.LeaveRelease, ""))
	for began := time.Now(); !k.dead() && time.Since(began) < 10*time.Minute; {
		time.Sleep(time.Second)
	}
	did = k.steps()
	s.stop()
	s.stop = nil
	s.inject(pulled, "vanish")
	time.Sleep(10 * time.Second)
	k.anew(0)
	s.start()
	time.Sleep(time.Minute)
	return did
}

// TestLoneMirrorMovingStale: the group of a mirror has begun to move to a third drive when one leg,
// and then the newest one, are lost. The loss can be accepted, and the mirror is made whole again.
func TestLoneMirrorMovingStale(t *testing.T) {
	t.Parallel()
	tried := 0
	for n := 1; n <= 4 && !t.Failed(); n++ {
		k := &killer{}
		onMachine(t, sameDrives(3), volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", requests()["a mirror"])
			s.must(s.stage(v))
			s.word(v, "first")
			s.must(s.unstage(v))
			newest, stale := v.Location.Drives[0], v.Location.Drives[1]
			serial := s.serialOf(stale)
			did := s.cutMove(k, n, newest, stale)
			if len(s.of(v).Location.Drives) != 3 || s.stage(v) != nil {
				return
			}
			s.word(v, "second")
			s.must(s.unstage(v))
			if m := s.of(v).Mirror; m == nil || m.Current != newest {
				return
			}
			tried++
			s.inject(newest, "vanish")
			time.Sleep(30 * time.Second)
			if err := s.e.AcceptLoss(s.Context(), v.ID); err == nil {
				t.Errorf("after %q: a loss is accepted while no leg is there: %+v", did, s.of(v).Mirror)
			}
			s.comesBack(serial)
			s.must(s.mgr.Operate(s.Context(), newest, drivebay.LeaveForce, "it is dead"))
			time.Sleep(10 * time.Minute)
			if err := s.stage(v); !errors.Is(err, drivebay.ErrRefused) && !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("after %q: staged from the older leg: %v", did, err)
			}
			if err := s.e.AcceptLoss(s.Context(), v.ID); err != nil {
				t.Errorf("after %q, on %v: %v", did, s.of(v).Location.Drives, err)
				return
			}
			time.Sleep(10 * time.Minute)
			s.must(s.stage(v))
			if is := s.of(v); slices.Contains(is.Location.Drives, newest) || len(is.Location.Drives) != 2 || s.word(v, "") != "first" {
				t.Errorf("after %q and with the loss accepted it is on %v: %s", did, is.Location.Drives, is.Condition.Message())
			}
			s.must(s.unstage(v), s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		})
	}
	if tried != 4 {
		t.Errorf("%d moves were cut short before a leg moved", tried)
	}
}

// TestLoneMirrorMoved: a leg has reached its new drive when the other drive is lost for good, or is away for a
// while. The mirror is made whole from the leg on the new drive.
func TestLoneMirrorMoved(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		for n := 5; n <= 6; n++ {
			k := &killer{}
			onMachine(t, sameDrives(4), volume.Options{After: k.step}, func(s *stand) {
				v := s.make("v", requests()["a mirror"])
				s.must(s.stage(v))
				leaving, other := v.Location.Drives[0], v.Location.Drives[1]
				serial := s.serialOf(other)
				did := s.cutMove(k, n, leaving, other)
				s.word(v, "second")
				time.Sleep(time.Minute)
				if m := s.of(v).Mirror; len(s.of(v).Location.Drives) != 3 || m == nil || m.Current != s.of(v).Location.Drives[2] {
					t.Fatalf("after %q: on %v, %+v", did, s.of(v).Location.Drives, m)
				}
				if back {
					s.comesBack(serial)
				} else {
					s.giveUp(other)
				}
				time.Sleep(30 * time.Minute)
				if is := s.of(v); len(is.Location.Drives) != 2 || slices.Contains(is.Location.Drives, other) != back || is.Mirror.Current != "" || s.word(v, "") != "second" {
					t.Errorf("after %q, the other drive back: %v: on %v, %+v: %s", did, back, is.Location.Drives, is.Mirror, is.Condition.Message())
				}
			})
		}
	}
}

// TestLoneMirrorSpareLost: the spare on which a lost leg was being made anew is lost as well.
// The mirror can be removed.
func TestLoneMirrorSpareLost(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 7 && !t.Failed(); n += everyNth {
		k := &killer{}
		onMachine(t, sameDrives(3), volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", requests()["a mirror"])
			spare, drive, rest := s.spareFor(v), v.Location.Drives[1], v.Location.Drives[0]
			s.must(s.mgr.Cordon(s.Context(), spare, true))
			s.inject(drive, "vanish")
			time.Sleep(10 * time.Second)
			s.giveUp(drive)
			k.anew(n)
			s.must(s.mgr.Cordon(s.Context(), spare, false))
			for began := time.Now(); !k.dead() && time.Since(began) < 10*time.Minute; {
				time.Sleep(time.Second)
			}
			did := k.steps()
			s.stop()
			s.stop = nil
			s.inject(spare, "vanish")
			time.Sleep(10 * time.Second)
			k.anew(0)
			s.start()
			time.Sleep(time.Minute)
			s.giveUp(spare)
			time.Sleep(10 * time.Minute)
			if err := s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }); err != nil {
				t.Errorf("the spare is lost after %q: %v", did, err)
				return
			}
			s.blankDrive(rest)
		})
	}
}

// TestUnfilledLegNotAccepted: a leg that was still being filled when the other drive went is not continued with, also
// not on the word of an operator: it never had all data.
func TestUnfilledLegNotAccepted(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a mirror"])
		s.must(s.stage(v))
		s.word(v, "first")
		newest, unfilled := v.Location.Drives[0], v.Location.Drives[1]
		serial := s.serialOf(unfilled)
		s.inject(unfilled, "vanish")
		time.Sleep(10 * time.Second)
		s.word(v, "second")
		s.must(s.unstage(v))
		back := s.serialOf(newest)
		s.inject(newest, "vanish")
		time.Sleep(10 * time.Second)
		s.comesBack(serial)
		s.unfill(unfilled)
		time.Sleep(time.Minute)
		if err := s.e.AcceptLoss(s.Context(), v.ID); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "never complete") {
			t.Errorf("accept-loss with a leg that was never complete: %v", err)
		}
		if err := s.stage(v); err == nil {
			t.Error("staged from it")
		}
		s.comesBack(back)
		time.Sleep(time.Minute)
		s.must(s.stage(v))
		if got := s.word(v, ""); got != "second" {
			t.Errorf("with both drives it says %q", got)
		}
		s.must(s.unstage(v), s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
	})
}

// unfill says in the superblock of the only mirror leg of a drive that it was filled to its beginning only
// (struct dm_raid_superblock, disk_recovery_offset).
func (s *stand) unfill(id string) {
	s.Helper()
	d, ok := s.mgr.Snapshot().Find(id)
	if !ok {
		s.Fatal(id)
	}
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
	s.must(err)
	defer disk.Close()
	found := 0
	for at, b := range s.bytesOf(d.Name) {
		if strings.HasPrefix(b, "DmRd") {
			found++
			_, err := disk.WriteAt(make([]byte, 8), at+32)
			s.must(err)
		}
	}
	s.must(disk.Sync())
	if found != 1 {
		s.Fatalf("%d superblocks", found)
	}
}
