package volume_test

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

var (
	errKilled = errors.New("killed")
	seed      = maphash.MakeSeed()
)

// killer ends the work after its n-th step, as a crash would.
type killer struct {
	after int // 0: never
	steps []string
}

func (k *killer) step(_, name string) error {
	k.steps = append(k.steps, name)
	if len(k.steps) == k.after {
		return errKilled
	}
	return nil
}

// restarted starts the daemon again if it was killed, and lets it take up its work.
func (s *stand) restarted(err error) (killed bool) {
	s.Helper()
	if err != nil && !errors.Is(err, errKilled) {
		s.Fatal(err)
	}
	if err != nil {
		s.start()
	}
	return err != nil
}

// read shows a drive to f.
func (s *stand) read(d drivebay.Drive, f func(io.ReaderAt)) {
	s.Helper()
	open, err := s.sim.OpenDrive(context.Background(), "/dev/"+d.Name)
	if err != nil {
		s.Fatal(err)
	}
	defer open.Close()
	f(open)
}

// sums are of what is written on the drives, but for those of a volume, in the
// places where we write.
func (s *stand) sums(but ...string) map[string]uint64 {
	s.Helper()
	out := map[string]uint64{}
	for _, d := range s.mgr.Snapshot().Drives {
		s.read(d, func(r io.ReaderAt) {
			var h maphash.Hash
			h.SetSeed(seed)
			b := make([]byte, 4<<20)
			for _, at := range []int64{0, 4 << 20, 1 << 30, int64(d.Size) - 4<<20} {
				if _, err := r.ReadAt(b, at); err != nil {
					s.Fatal(err)
				}
				h.Write(b)
			}
			out[d.ID] = h.Sum64()
		})
	}
	for _, id := range but {
		delete(out, id)
	}
	return out
}

// blank wants all drives as they were before anything was made.
func (s *stand) blank() {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		s.read(d, func(r io.ReaderAt) {
			if c := content.Detect(r, d.Size, d.LogicalBlock); c.Kind != drivebay.ContentBlank {
				s.Errorf("drive %s is left %v", d.ID, c)
			}
		})
	}
}

// TestKilled cuts every operation short after each of its steps and starts again:
// the end is the one that an undisturbed run comes to.
func TestKilled(t *testing.T) {
	for name, r := range requests() {
		if strings.HasPrefix(name, "xfs") || name == "btrfs on a partition" { // the steps of ext4
			continue
		}
		t.Run(name, func(t *testing.T) {
			k := &killer{}
			live(t, k, name, r)
			steps := k.steps
			if t.Logf("steps: %q", steps); len(steps) < 8 {
				t.Fatalf("only %d steps", len(steps))
			}
			for n := 1; n <= len(steps) && !t.Failed(); n++ {
				k.after, k.steps = n, nil
				live(t, k, name, r)
				if t.Failed() {
					t.Logf("killed after step %d, %q", n, steps[n-1])
				}
			}
		})
	}
}

// live is the life of a volume.
func live(t *testing.T, k *killer, name string, r drivebay.VolumeRequest) {
	onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
		r := r
		r.Name, r.Size.Required = name, 1<<30
		v, err := s.e.CreateVolume(s.Context(), r)
		if s.restarted(err) {
			if v, err = s.e.CreateVolume(s.Context(), r); err != nil {
				s.Fatal(err)
			}
		}
		if v.CSIStatus != drivebay.CSICreated || s.of(v).Work != "" {
			s.Errorf("made: %v, %q", v.CSIStatus, s.of(v).Work)
		}
		before := s.sums(v.Location.Drives...)
		if r.Class.Backing != drivebay.BackingDrive {
			_, _, err = s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30})
			s.restarted(err)
			if is := s.of(v); is.Size != 2<<30 || is.Work != "" || is.CSIStatus == drivebay.CSIResizing {
				s.Errorf("grown: %d bytes, %v, %q", is.Size, is.CSIStatus, is.Work)
			}
		}
		s.restarted(s.e.DeleteVolume(s.Context(), v.ID))
		if _, there := s.e.Volumes().Get(v.ID); there {
			s.Error("removed: it is still listed")
		}
		if after := s.sums(v.Location.Drives...); !maps.Equal(before, after) {
			s.Error("other drives have changed")
		}
		s.blank()
	})
}

func smallDrives() hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}, {Count: 1, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "10GB"}}}
}

// TestTorn cuts the power while the first table of a drive is written, and while
// the last one is erased: what is left reads as nobody's, and we know it again.
func TestTorn(t *testing.T) {
	wipe := func(s *stand, ranges ...[2]int64) {
		s.Helper()
		var d *drivebay.Drive
		for i, each := range s.mgr.Snapshot().Drives {
			s.read(each, func(r io.ReaderAt) {
				if content.Detect(r, each.Size, each.LogicalBlock).Kind != drivebay.ContentBlank {
					d = &s.mgr.Snapshot().Drives[i]
				}
			})
		}
		disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
		s.must(err)
		for _, r := range ranges {
			if r[0] < 0 {
				r[0] += int64(d.Size)
			}
			s.must(disk.Zero(s.Context(), uint64(r[0]), uint64(r[1])))
		}
		s.must(disk.Close())
	}
	backup, header, entries := [2]int64{-40960, 40960}, [2]int64{512, 512}, [2]int64{1024, 32768}
	for name, lost := range map[string][][2]int64{"the backup": {backup}, "all but the MBR": {backup, header, entries}, "header": {backup, header}, "entries": {backup, entries}, "all": {{0, 40960}, backup}} {
		k := &killer{after: 1}
		onMachine(t, smallDrives(), volume.Options{After: k.step}, func(s *stand) {
			r := requests()["a partition"]
			r.Name, r.Size.Required = "v", 1<<30
			if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, errKilled) {
				s.Fatal(err)
			}
			wipe(s, lost...)
			s.start()
			v, err := s.e.CreateVolume(s.Context(), r)
			if err != nil || v.CSIStatus != drivebay.CSICreated {
				s.Fatalf("%s was lost: %v, %v", name, v.CSIStatus, err)
			}
			mbr := make([]byte, 512)
			d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
			s.read(*d, func(r io.ReaderAt) { _, err := r.ReadAt(mbr, 0); s.must(err) })
			k.after = len(k.steps) + 5 // the table is erased
			if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, errKilled) {
				s.Fatal(err)
			}
			disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
			s.must(err)
			_, err = disk.WriteAt(mbr, 0) // the last that an erasure takes away
			s.must(err, disk.Close())
			s.start()
			s.must(s.e.DeleteVolume(s.Context(), v.ID))
			s.blank()
		})
	}
}

// TestLongWipe: a wipe that was cut short goes on where it had come to.
func TestLongWipe(t *testing.T) {
	k := &killer{}
	onMachine(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindSATAHDD, Size: "60GB"}}}, volume.Options{After: k.step}, func(s *stand) {
		r := requests()["a partition"]
		r.Class.Wipe, r.Size.Required = drivebay.WipeZero, 20<<30
		v := s.make("v", r)
		d := s.mgr.Snapshot().Drives[0]
		disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
		s.must(err)
		defer disk.Close()
		for _, at := range []int64{5 << 30, 19 << 30} {
			_, err := disk.WriteAt([]byte("data"), at)
			s.must(err)
		}
		k.after = len(k.steps) + 1 // it is marked as nobody's
		if err := s.e.DeleteVolume(s.Context(), v.ID); !errors.Is(err, errKilled) {
			s.Fatal(err)
		}
		all, err := s.st.Volumes()
		s.must(err)
		rec := all[v.ID]
		rec.Work.Made = append(rec.Work.Made, "wipe up to "+strconv.Itoa(16<<30))
		s.must(s.st.PutVolume(rec))
		s.start()
		if n := len(s.e.Volumes().Volumes); n != 0 {
			s.Errorf("%d volumes are left", n)
		}
		b := make([]byte, 8)
		_, err = disk.ReadAt(b[:4], 5<<30)
		s.must(err)
		_, err = disk.ReadAt(b[4:], 19<<30)
		if s.must(err); string(b) != "data\x00\x00\x00\x00" {
			s.Errorf("left behind: %q", b)
		}
	})
}
