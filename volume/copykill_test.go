package volume_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestCopyKilled cuts a move short after each of its steps. Started again it comes to
// its end; when all records are lost, too, there is one volume with all that was in
// it, and what was only half copied is never taken for it.
func TestCopyKilled(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"a partition": requests()["a partition"], "encrypted": encryptedRequests()["ext4 on a partition"]} {
		steps := copyKilled(t, 0, r, false)
		if t.Logf("%s: %q", name, steps); len(steps) < 10 {
			t.Fatalf("%s: only %d steps: %q", name, len(steps), steps)
		}
		for n := 1; n <= len(steps) && !t.Failed(); n += everyNth {
			for _, lost := range []bool{false, true} {
				copyKilled(t, n, r, lost)
				if t.Failed() {
					t.Logf("%s: killed after step %d, %q, records lost: %v", name, n, steps[n-1], lost)
				}
			}
		}
	}
}

// copyKilled is one move, killed after so many of its steps (0: not at all), with the
// steps that it took.
func copyKilled(t *testing.T, after int, r drivebay.VolumeRequest, lost bool) (steps []string) {
	k, headers := &killer{}, t.TempDir()
	onMachine(t, threeDrives(), volume.Options{After: k.step, Headers: headers}, func(s *stand) {
		v := s.onAPartition(r)
		sum := s.sum(v)
		k.anew(after)
		s.lead(v, drivebay.LeaveRelease)
		if after == 0 {
			s.left(v, sum)
			steps = k.steps()
			return
		}
		s.until("killed", k.dead)
		time.Sleep(time.Minute) // nothing more happens in this life
		if steps = k.steps(); len(steps) != after {
			s.Fatalf("it went on: %q", steps)
		}
		last := steps[after-1]
		k.arm(0)
		if !lost {
			s.start()
			s.left(v, sum)
			return
		}
		s.forget()
		all := s.e.Volumes().Volumes
		if len(all) != 1 || all[0].ID != v.ID || all[0].Mode != v.Mode || all[0].LUKSUUID != v.LUKSUUID || s.sum(all[0].Volume) != sum {
			s.Fatalf("found: %+v", all)
		}
		if told := strings.Join(s.events(drivebay.EventVolumeLeft), "\n"); (last == "copy" || last == "kernel drivebay-new-"+v.ID[:22]) && !strings.Contains(told, "unfinished copy") {
			s.Errorf("the unfinished copy is not told of: %q", told)
		}
		err := s.stage(all[0].Volume, with(rightKey))
		if errors.Is(err, drivebay.ErrRefused) && strings.Contains(err.Error(), "uses the copy on drive") { // an operator decides
			if last == "copy" || last == "settled" || last == "wipe" {
				s.Errorf("after %q only one copy is whole: %v", last, err)
			}
			s.must(s.e.ClearVolume(s.Context(), v.ID))
			err = s.stage(all[0].Volume, with(rightKey))
		}
		s.must(err, s.unstage(all[0].Volume))
	})
	return steps
}

// TestCopyTorn cuts the power while the table of the new drive is written for the
// first time: what is left there is known again.
func TestCopyTorn(t *testing.T) {
	t.Parallel()
	for name, zeroed := range map[string][][2]int64{"the backup": {{-40960, 40960}}, "all": {{0, 40960}, {-40960, 40960}}, "all but the MBR": {{512, 40448}, {-40960, 40960}}} {
		k := &killer{}
		onMachine(t, threeDrives(), volume.Options{After: k.step}, func(s *stand) {
			v := s.onAPartition(drivebay.VolumeRequest{})
			sum := s.sum(v)
			k.arm(1)
			s.lead(v, drivebay.LeaveRelease)
			s.until("killed", k.dead)
			k.arm(0)
			to, ok := s.mgr.Snapshot().Find(s.record(v).Work.Move.To.Drives[0])
			if !ok {
				s.Fatal("it is going nowhere")
			}
			disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+to.Name, false)
			s.must(err)
			for _, r := range zeroed {
				if r[0] < 0 {
					r[0] += int64(to.Size)
				}
				s.must(disk.Zero(s.Context(), uint64(r[0]), uint64(r[1])))
			}
			s.must(disk.Close())
			s.start()
			if s.left(v, sum); t.Failed() {
				t.Log(name)
			}
		})
	}
}

// TestCannotWipe: a drive that takes no writes any more is left as it is, which is
// told, and the volume is safe elsewhere.
func TestCannotWipe(t *testing.T) {
	t.Parallel()
	onMachine(t, threeDrives(), volume.Options{}, func(s *stand) {
		v := s.onAPartition(drivebay.VolumeRequest{})
		sum, old := s.sum(v), s.drive(v)
		s.inject(old.ID, "read-only")
		s.lead(v, drivebay.LeaveRelease)
		s.until("moved", func() bool { return s.of(v).Location.Drives[0] != old.ID && s.of(v).Work == "" })
		s.until("told", func() bool {
			return strings.Contains(strings.Join(s.events(drivebay.EventVolumeLeft), "\n"), "was not wiped")
		})
		if s.sum(s.of(v).Volume) != sum {
			s.Error("it is another one now")
		}
		s.until("released", func() bool { d, _ := s.mgr.Snapshot().Find(old.ID); return d.Usage == drivebay.UsageReleased })
		b := make([]byte, 1<<20)
		s.read(*old, func(r io.ReaderAt) { _, err := r.ReadAt(b, 1<<20+20<<20); s.must(err) })
		if zero(b) {
			s.Error("it was wiped after all")
		}
		if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
			s.Error("deleted while its old copy is there")
		}
		s.must(s.mgr.Operate(s.Context(), old.ID, drivebay.LeaveForce, "it is dead"))
		s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }))
		time.Sleep(10 * time.Minute)
		s.start()
		if all := s.e.Volumes().Volumes; len(all) > 0 {
			s.Errorf("deleted, what was left of it is %+v", all)
		}
	})
}
