package volume_test

import (
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// TestTorn cuts the power while the first table of a drive is written, and while
// the last one is erased: what is left reads as nobody's, and we know it again.
func TestTorn(t *testing.T) {
	t.Parallel()
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
			k.arm(5) // the table is erased
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
	t.Parallel()
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
		k.arm(1) // it is marked as nobody's
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
