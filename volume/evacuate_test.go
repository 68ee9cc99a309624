package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

func sameDrives(n int) hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: n, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
}

// usage waits until a drive is there, and says what it was waiting for if it does not
// come to it.
func (s *stand) usage(id string, want drivebay.Usage, limit time.Duration) {
	s.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Second) {
		d, _ := s.mgr.Snapshot().Find(id)
		if d != nil && d.Usage == want {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("drive %s is %v, not %v: %+v", id, d.Usage, want, d.Leaving)
		}
	}
}

// word writes a word into a volume that is mounted nowhere, or reads it.
func (s *stand) word(v drivebay.Volume, write string) string {
	s.Helper()
	d, err := s.sim.OpenDisk(context.Background(), "/dev/mapper/"+lvm.MapperName(v.Location.VG, v.Location.LV), false)
	s.must(err)
	defer d.Close()
	b := make([]byte, 8)
	if write != "" {
		_, err = d.WriteAt([]byte(write), 700<<20)
		s.must(err)
	}
	_, err = d.ReadAt(b, 700<<20)
	s.must(err)
	return strings.TrimRight(string(b), "\x00")
}

func (s *stand) blankDrive(id string) {
	s.Helper()
	d, _ := s.mgr.Snapshot().Find(id)
	s.read(*d, func(r io.ReaderAt) {
		b := make([]byte, 1<<20)
		if _, err := r.ReadAt(b, 0); err != nil || !zero(b) {
			s.Errorf("drive %s is not blank: %v", id, err)
		}
	})
}

// twoOf makes volumes of a kind on one place, one of them in use, and what there is of
// snapshots.
func (s *stand) twoOf(name string) (used, idle drivebay.Volume) {
	s.Helper()
	used, idle = s.make("used", requests()[name]), s.make("idle", requests()[name])
	if used.Location.VG != idle.Location.VG {
		s.Fatalf("they are in %s and %s", used.Location.VG, idle.Location.VG)
	}
	s.must(s.stage(used))
	if used.Location.Kind == drivebay.LocationThin {
		_, err := s.e.CreateSnapshot(s.Context(), "snap", used.ID)
		s.must(err)
	}
	return used, idle
}

var copyMoves = []string{"a linear volume", "ext4 on thin", "a mirror"}

// TestEvacuated: what is on a drive that has to leave moves to a spare while it is
// used, whole; the drive is blank and released, and where things are is told.
func TestEvacuated(t *testing.T) {
	t.Parallel()
	for _, name := range copyMoves {
		onMachine(t, sameDrives(4), volume.Options{}, func(s *stand) {
			used, idle := s.twoOf(name)
			id := used.Location.Drives[0]
			s.word(used, "moved")
			s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
			s.usage(id, drivebay.UsageReleased, 5*time.Minute)
			time.Sleep(10 * time.Second)
			for _, v := range []drivebay.Volume{used, idle} {
				is := s.of(v)
				if slices.Contains(is.Location.Drives, id) || len(is.Location.Drives) != len(v.Location.Drives) || is.Usage != drivebay.VolumeInUse || is.UsageFailure != nil {
					t.Errorf("%s: %+v, %v", name, is.Location, is.Usage)
				}
			}
			for _, snap := range s.e.Volumes().Snapshots {
				if slices.Contains(snap.Location.Drives, id) {
					t.Errorf("%s: a snapshot is left behind", name)
				}
			}
			s.blankDrive(id)
			s.must(s.sim.Inject(hostsim.Fault{Drive: s.serialOf(id), Fault: "vanish"}))
			if got := s.word(used, ""); got != "moved" {
				t.Errorf("%s: without its old drive it reads %q", name, got)
			}
			s.must(s.unstage(used), s.stage(idle), s.unstage(idle))
		})
	}
}

func (s *stand) serialOf(id string) string {
	s.Helper()
	d, ok := s.mgr.Snapshot().Find(id)
	if !ok {
		s.Fatalf("drive %s is not known", id)
	}
	return d.Serial
}

// TestEvacuationKilled ends the daemon after every step of a move: another takes it to
// its end.
func TestEvacuationKilled(t *testing.T) {
	t.Parallel()
	for _, name := range copyMoves {
		steps := 1
		for n := 1; n <= steps && !t.Failed(); n += everyNth {
			k := &killer{}
			onMachine(t, sameDrives(4), volume.Options{After: k.step}, func(s *stand) {
				used, idle := s.twoOf(name)
				s.word(used, "moved")
				k.anew(n)
				id := used.Location.Drives[0]
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
				for len(k.steps()) < n && s.drive(used).Usage == drivebay.UsageReleasing {
					time.Sleep(time.Second)
				}
				s.start()
				s.usage(id, drivebay.UsageReleased, 5*time.Minute)
				s.blankDrive(id)
				for _, v := range []drivebay.Volume{used, idle} {
					if is := s.of(v); slices.Contains(is.Location.Drives, id) || len(is.Location.Drives) != len(v.Location.Drives) {
						t.Errorf("it is on %v", is.Location.Drives)
					}
				}
				if got := s.word(used, ""); got != "moved" {
					t.Errorf("it reads %q", got)
				}
				if steps = max(steps, len(k.steps())); n == 1 || t.Failed() {
					t.Logf("%s, killed after step %d of %q", name, n, k.steps())
				}
			})
		}
		if steps < 8 {
			t.Errorf("%s: only %d steps", name, steps)
		}
	}
}

// TestEvacuationCancelled: a drive that stays after all has back what had left it.
func TestEvacuationCancelled(t *testing.T) {
	t.Parallel()
	for _, name := range copyMoves {
		for after := 1; after <= 9 && !t.Failed(); after += everyNth {
			k := &killer{}
			onMachine(t, sameDrives(4), volume.Options{After: k.step}, func(s *stand) {
				used, _ := s.twoOf(name)
				s.word(used, "stays")
				id := used.Location.Drives[0]
				k.anew(0)
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
				for len(k.steps()) < after && s.drive(used).Usage == drivebay.UsageReleasing {
					time.Sleep(time.Second)
				}
				if s.drive(used).Usage != drivebay.UsageReleasing {
					return
				}
				s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveCancel, ""))
				time.Sleep(3 * time.Minute)
				is := s.of(used)
				if len(is.Location.Drives) != len(used.Location.Drives) || is.Usage != drivebay.VolumeInUse || s.word(*vol(is), "") != "stays" {
					t.Errorf("%s, cancelled after %q: it is on %v, %v", name, k.steps(), is.Location.Drives, is.Usage)
				}
				for _, d := range s.mgr.Snapshot().Drives {
					if !slices.Contains(is.Location.Drives, d.ID) {
						s.blankDrive(d.ID)
					}
				}
			})
		}
	}
}

func vol(v *drivebay.VolumeView) *drivebay.Volume { return &v.Volume }

// TestNotEvacuated are moves that cannot be done: what keeps them is told, nothing is
// lost, and what can still be done is.
func TestNotEvacuated(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		used, idle := s.twoOf("a linear volume")
		id := used.Location.Drives[0]
		_, other := s.idle(id)
		leaving := func() string { d, _ := s.mgr.Snapshot().Find(id); return d.Usage.String() + " " + d.Leaving.Cause }
		s.must(s.mgr.Cordon(s.Context(), other, true), s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		time.Sleep(time.Minute)
		if !strings.Contains(leaving(), "no spare: ") {
			t.Errorf("without a spare it says %s", leaving())
		}
		_, _, err := s.e.ExpandVolume(s.Context(), idle.ID, drivebay.SizeRange{Required: 2 << 30})
		s.must(err) // it has not set out

		// Where one of them lies cannot be read.
		s.must(s.sim.Inject(hostsim.Fault{Drive: s.serialOf(id), Fault: "unreadable", Args: hostsim.Args{"sector": "1000000", "n": "1"}}), s.mgr.Cordon(s.Context(), other, false))
		s.usage(id, drivebay.UsageFailed, 5*time.Minute)
		time.Sleep(10 * time.Second)
		lost, moved := 0, 0
		s.until("it is known what cannot be read", func() bool { return len(s.events(drivebay.EventVolumeDataLoss)) > 0 })
		for _, v := range []drivebay.Volume{used, idle} {
			if is := s.of(v); is.Usage == drivebay.VolumeUsageFailed && is.UsageFailure != nil && strings.Contains(leaving(), is.Location.LV) {
				lost++
				at := 1_000_000*512 - 18<<20 // where the data of the first volume begin
				if want := fmt.Sprintf("cannot be read where it lies: 512 bytes at (offset+length) %d+512 of it", at); !strings.Contains(is.UsageFailure.Cause, want) {
					t.Errorf("it says %q, want %q", is.UsageFailure.Cause, want)
				}
			} else if is.Usage == drivebay.VolumeReleasing {
				moved++
			}
		}
		if lost != 1 || moved != 1 {
			t.Errorf("%d could not be moved, %d were: %s", lost, moved, leaving())
		}
		// What is on its way is neither grown nor copied.
		if _, _, err := s.e.ExpandVolume(s.Context(), used.ID, drivebay.SizeRange{Required: 3 << 30}); !errors.Is(err, drivebay.ErrPending) {
			t.Errorf("grown on its way: %v", err)
		}
	})
}

// pvmoves notes when LVM begins to move a volume.
type pvmoves struct {
	*hostsim.Machine
	mu    sync.Mutex
	began []time.Time
}

func (m *pvmoves) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if len(argv) > 1 && argv[1] == "pvmove" && !slices.Contains(argv, "--abort") {
		m.mu.Lock()
		m.began = append(m.began, time.Now())
		m.mu.Unlock()
	}
	return m.Machine.Run(ctx, argv...)
}

// TestMoveAfterCopyErrors: the kernel logs ten copy errors in 5 s and leaves out the rest. After a volume that could not be read, the next one moves
// when that time is over: its own errors would not be logged, and what could not be read would count as copied.
func TestMoveAfterCopyErrors(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		m := &pvmoves{Machine: s.sim}
		s.lvm = m
		s.start()
		used, _ := s.twoOf("a linear volume")
		id := used.Location.Drives[0]
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		log, err := s.sim.KernelLog(ctx)
		s.must(err, s.sim.Inject(hostsim.Fault{Drive: s.serialOf(id), Fault: "unreadable", Args: hostsim.Args{"sector": "1000000", "n": "1"}}), s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		var failed time.Time
		for l := range log {
			if strings.Contains(l.Text, "raid1: Unable to read primary mirror") {
				failed = l.At
				break
			}
		}
		s.usage(id, drivebay.UsageFailed, 5*time.Minute)
		m.mu.Lock()
		defer m.mu.Unlock()
		i := slices.IndexFunc(m.began, failed.Before)
		if i < 1 || m.began[i].Sub(failed) < 5*time.Second {
			t.Errorf("a copy failed at %v; volumes began to move at %v", failed, m.began)
		}
	})
}

// TestMoveWaitsForForeignMirror: a mirror that drivebay did not make logs copy errors without end. Nothing moves meanwhile, and the drive says
// why. Volumes move when that has ended.
func TestMoveWaitsForForeignMirror(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		v := s.make("v", marked()["a linear block volume"])
		ctx, cancel := context.WithCancel(s.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				s.sim.WriteKernelLog("device-mapper: raid1: Unable to read primary mirror during recovery")
				time.Sleep(3 * time.Second)
			}
		}()
		id := v.Location.Drives[0]
		time.Sleep(time.Minute)
		s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
		for range 10 {
			time.Sleep(2 * time.Minute)
			if d, _ := s.mgr.Snapshot().Find(id); d.Leaving == nil || !strings.Contains(d.Leaving.Cause, "copy errors") {
				t.Errorf("%v waits for: %+v", d.Usage, d.Leaving)
			}
		}
		cancel()
		<-ended
		s.usage(id, drivebay.UsageReleased, 10*time.Minute)
	})
}

// idle is a drive that a volume is not on.
func (s *stand) idle(but string) (serial, id string) {
	for _, d := range s.mgr.Snapshot().Drives {
		if d.ID != but {
			return d.Serial, d.ID
		}
	}
	return "", ""
}

// TestMirrorRepaired: a leg that went is made anew on a spare, once there is one.
func TestMirrorRepaired(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(3), volume.Options{}, func(s *stand) {
		v := s.make("v", requests()["a mirror"])
		s.must(s.stage(v))
		s.word(v, "whole")
		gone := v.Location.Drives[1]
		s.inject(gone, "vanish")
		time.Sleep(10 * time.Second)
		s.must(s.mgr.Operate(s.Context(), gone, drivebay.LeaveRelease, ""))
		s.usage(gone, drivebay.UsageReleased, 5*time.Minute)
		is := s.of(v)
		if len(is.Location.Drives) != 2 || slices.Contains(is.Location.Drives, gone) {
			t.Fatalf("it is on %v", is.Location.Drives)
		}
		s.inject(v.Location.Drives[0], "vanish")
		if got := s.word(v, ""); got != "whole" {
			t.Errorf("the new leg reads %q", got)
		}
	})
}
