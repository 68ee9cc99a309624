package volume_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// node is the device of a staged volume as a pod has it.
func (s *stand) node(v drivebay.Volume) string {
	s.Helper()
	if v.Location.VG != "" {
		return "/dev/" + s.active(v)
	}
	return "/dev/" + s.device(v)
}

const mark = "secret of another tenant"

// strewn writes a mark into each MiB of a staged block volume.
func (s *stand) strewn(v drivebay.Volume) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), s.node(v), false)
	s.must(err)
	defer disk.Close()
	for at := uint64(0); at < disk.Size(); at += 1 << 20 {
		_, err := disk.WriteAt([]byte(mark), int64(at)+4096)
		s.must(err)
	}
}

// without wants no mark in the device of a volume from an offset on.
func (s *stand) without(v drivebay.Volume, when string, from uint64) (size uint64) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), s.node(v), false)
	s.must(err)
	defer disk.Close()
	b := make([]byte, 1<<20)
	for at := from; at < disk.Size(); at += 1 << 20 {
		_, err := disk.ReadAt(b, int64(at))
		s.must(err)
		if bytes.Contains(b, []byte(mark)) {
			s.Errorf("%s: a pod with %s reads what another has left, at %d of %d", when, v.Location.Kind, at, disk.Size())
			break
		}
	}
	return disk.Size()
}

// TestGrowthIsZero: what a raw volume grows by reads as zeros from the first moment,
// and what a pod writes there at once stays; also where the growth is cut short after
// any of its steps.
func TestGrowthIsZero(t *testing.T) {
	t.Parallel()
	const small, large = 1 << 30, 2 << 30
	for _, backing := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM, drivebay.BackingThin, drivebay.BackingMirror} {
		for cut, more := 0, true; more; cut++ {
			k := &killer{}
			var look func(string)
			after := func(id, name string) error {
				if look != nil {
					look(name)
				}
				return k.step(id, name)
			}
			onMachine(t, smallDrives(), volume.Options{After: after}, func(s *stand) {
				a, b := s.make("a", rawVolume(backing)), s.make("b", rawVolume(backing))
				s.must(s.stage(b))
				s.strewn(b)
				s.must(s.unstage(b), s.e.DeleteVolume(s.Context(), b.ID))
				s.must(s.stage(a), s.publish(a, "pod"))
				written := false
				look = func(step string) {
					if s.without(a, "after "+step, small) < large || written {
						return
					}
					disk, err := s.sim.OpenDisk(s.Context(), s.node(a), false)
					s.must(err)
					_, err = disk.WriteAt([]byte("written at once"), large-1<<20)
					s.must(err, disk.Sync())
					disk.Close()
					written = true
				}
				k.anew(cut)
				_, _, err := s.e.ExpandVolume(s.Context(), a.ID, drivebay.SizeRange{Required: large})
				if more = s.restarted(err) || cut == 0; more && cut > 0 {
					time.Sleep(time.Minute)
					_, _, err = s.e.ExpandVolume(s.Context(), a.ID, drivebay.SizeRange{Required: large})
					s.must(err)
				}
				look = nil
				if got := s.without(a, "in the end", small); got != large || !written {
					s.Errorf("%s, cut %d: it has %d bytes, was written to: %v", backing, cut, got, written)
				}
				disk, err := s.sim.OpenDisk(s.Context(), s.node(a), false)
				s.must(err)
				defer disk.Close()
				text := make([]byte, 15)
				_, err = disk.ReadAt(text, large-1<<20)
				if s.must(err); string(text) != "written at once" {
					s.Errorf("%s, cut %d: what the pod wrote reads %q", backing, cut, text)
				}
			})
		}
	}
}

// TestGrowthLeavesNothing: of a growth that failed nothing stays reserved, and a volume
// that is deleted in the middle of one takes its reservations along.
func TestGrowthLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"fails", "deleted"} {
		k := &killer{}
		onMachine(t, oneNVMeDrive(), volume.Options{After: k.step}, func(s *stand) {
			v := s.make("v", rawVolume(drivebay.BackingLVM))
			free := s.free(rawVolume(drivebay.BackingLVM))
			switch end {
			case "fails":
				s.must(s.stage(v))
				s.lvm = refusing{s.sim, "lvextend"}
				s.start()
			case "deleted":
				k.anew(1)
			}
			if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30}); err == nil {
				s.Fatal("it has grown")
			}
			k.anew(0)
			if end == "deleted" {
				if got := s.free(rawVolume(drivebay.BackingLVM)); got >= free {
					s.Fatalf("nothing was reserved: %d of %d are free", got, free)
				}
				s.start()
				time.Sleep(time.Minute)
				s.must(s.e.DeleteVolume(s.Context(), v.ID))
				s.blank()
				return
			}
			if got := s.free(rawVolume(drivebay.BackingLVM)); got != free {
				s.Errorf("%d bytes are free after a growth that failed, and %d were", got, free)
			}
		})
	}
}

// TestPoolZeroes: a raw thin volume is only made in a pool that zeroes its blocks.
func TestPoolZeroes(t *testing.T) {
	t.Parallel()
	onMachine(t, oneNVMeDrive(), volume.Options{}, func(s *stand) {
		v := s.make("v", rawVolume(drivebay.BackingThin))
		dev := "/dev/" + s.drive(v).Name + "p1"
		_, err := s.sim.Run(s.Context(), "lvm", "lvchange", "--devices", dev, "--zero", "n", v.Location.VG+"/"+v.Location.Pool)
		s.must(err)
		time.Sleep(time.Minute)
		s.make("w", rawVolume(drivebay.BackingThin))
		r, err := lvm.New(s.sim, "").Read(s.Context(), []string{dev})
		s.must(err)
		if lv := r.LV(v.Location.VG, v.Location.Pool); lv == nil || !lv.ZeroesBlocks() {
			s.Errorf("the pool hands out blocks as they are: %+v", lv)
		}
	})
}

func (s *stand) free(r drivebay.VolumeRequest) uint64 {
	s.Helper()
	time.Sleep(time.Minute)
	c, err := s.e.Capacity(s.Context(), r.Class)
	s.must(err)
	return c.Available
}

// refusing is an lvm that fails in one of its commands.
type refusing struct {
	lvm.Runner
	command string
}

func (r refusing) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if slices.Contains(argv, r.command) {
		return nil, errors.New(r.command + ": no")
	}
	return r.Runner.Run(ctx, argv...)
}

func oneNVMeDrive() hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
}
