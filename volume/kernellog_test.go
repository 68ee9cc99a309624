package volume_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestMoveUnheard: the kernel says only in its log what it could not copy. Where some of
// the log is lost while a volume moves, the copy begins anew.
func TestMoveUnheard(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*stand){
		"nothing lost":  func(*stand) {},
		"lines lost":    func(s *stand) { s.sim.LoseKernelLog() },
		"the log ended": func(s *stand) { s.sim.EndKernelLog() },
	} {
		k := &killer{}
		begun := atomic.Int32{}
		count := func(id, step string) error {
			if strings.HasPrefix(step, "move drivebay-") {
				begun.Add(1)
			}
			return k.step(id, step)
		}
		onMachine(t, sameDrives(2), volume.Options{After: count}, func(s *stand) {
			v := s.make("v", requests()["a linear volume"])
			s.must(s.stage(v))
			s.word(v, "moved")
			id := v.Location.Drives[0]
			s.must(s.mgr.Operate(s.Context(), id, drivebay.LeaveRelease, ""))
			s.until("it moves", func() bool { return begun.Load() == 1 })
			lose(s)
			s.usage(id, drivebay.UsageReleased, 10*time.Minute)
			if got := s.word(v, ""); got != "moved" {
				s.Errorf("%s: it reads %q", name, got)
			}
			if want := map[bool]int32{true: 1, false: 2}[name == "nothing lost"]; begun.Load() != want {
				s.Errorf("%s: the copy began %d times, want %d", name, begun.Load(), want)
			}
		})
	}
}

// TestKernelLineOfTheLiving: two records name one device, because the drive of one has
// gone and another has its name. What the kernel says is said of the volume that is there.
func TestKernelLineOfTheLiving(t *testing.T) {
	t.Parallel()
	spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "20GB"}}}
	orders := map[bool]bool{}
	for _, names := range [][2]string{{"a", "b"}, {"c", "d"}, {"e", "f"}, {"g", "h"}, {"i", "j"}, {"k", "l"}} {
		onMachine(t, spec, volume.Options{}, func(s *stand) {
			r := drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingDrive, Wipe: drivebay.WipeNone, FSType: "xfs"}}
			dead, alive := s.make(names[0], r), s.make(names[1], r)
			if s.drive(dead).Name > s.drive(alive).Name {
				dead, alive = alive, dead
			}
			orders[dead.ID < alive.ID] = true
			name := s.drive(dead).Name
			s.must(s.stage(dead), s.stage(alive))
			for _, v := range []drivebay.Volume{dead, alive} {
				s.inject(v.Location.Drives[0], "vanish")
				s.must(s.sim.UnmountBehind(staging(v)))
			}
			time.Sleep(10 * time.Second)
			s.must(s.sim.Inject(hostsim.Fault{Drive: s.serialOf(alive.Location.Drives[0]), Fault: "return"}))
			time.Sleep(time.Minute)
			if now := s.drive(alive).Name; now != name {
				s.Fatalf("it is back as %s", now)
			}
			s.must(s.unstage(alive), s.stage(alive))
			s.inject(staging(alive), "fs-read-only")
			time.Sleep(10 * time.Second)
			if got := reasons(s.of(alive).Condition); !strings.Contains(got, "FilesystemShutdown") {
				s.Errorf("the one that is there says %q", got)
			}
			if got := reasons(s.of(dead).Condition); strings.Contains(got, "FilesystemShutdown") {
				s.Errorf("the one whose drive has gone says %q", got)
			}
		})
	}
	if len(orders) != 2 {
		t.Error("the one that is there came always first, or never")
	}
}

// TestKernelLineOfNewPartition: the kernel could not write a page of a volume, and says so right after the volume was made and staged: before the listing
// that shows its partition. The volume has the finding.
func TestKernelLineOfNewPartition(t *testing.T) {
	t.Parallel()
	for _, group := range []hostsim.Group{{Count: 1, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "20GB"}, {Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "20GB"}} {
		for _, after := range []time.Duration{0, time.Millisecond, time.Minute} {
			onMachine(t, hostsim.Spec{Drives: []hostsim.Group{group}}, volume.Options{}, func(s *stand) {
				v := s.make("v", requests()["ext4 on a partition"])
				s.must(s.stage(v))
				time.Sleep(after)
				s.sim.WriteKernelLog("Buffer I/O error on dev " + s.device(v) + ", logical block 5, lost async page write")
				time.Sleep(2 * time.Minute)
				if got := s.of(v).Condition; !strings.Contains(reasons(got), "RWIOError") {
					s.Errorf("%v, %v after the stage: %q", group.Kind, after, got.Message())
				}
			})
		}
	}
}
