package volume_test

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// eraseFront erases the first MiB of a device.
func (s *stand) eraseFront(name string) {
	s.Helper()
	disk := s.open(name)
	defer disk.Close()
	s.must(disk.Zero(s.Context(), 0, 1<<20), disk.Sync())
}

// fillable is a drive so small that all of it can be written in memory.
func fillable() hostsim.Spec {
	return hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "256MB"}}}
}

// TestErasedLabelLostStore: a physical volume whose label and metadata are erased holds the data of its
// volumes, although both of its ends read as zeros. Without records it is no free space.
func TestErasedLabelLostStore(t *testing.T) {
	t.Parallel()
	onMachine(t, fillable(), volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingLVM)
		r.Size.Required = 192 << 20
		v := s.make("v", r)
		d := s.driveOf(v)
		s.withDevice(v, func(dev string) {
			disk, err := s.sim.OpenDisk(s.Context(), dev, false)
			s.must(err)
			defer disk.Close()
			_, err = disk.WriteAt(bytes.Repeat([]byte("row of a table; "), 12<<20), 0)
			s.must(err)
		})
		s.eraseFront(d.Name + "p1")
		s.reborn()
		time.Sleep(2 * time.Minute)
		before := s.sums()
		r.Name = "w"
		if second, err := s.e.CreateVolume(s.Context(), r); err == nil {
			t.Errorf("another volume is made in its place: %+v", second.Location)
		}
		if !maps.Equal(s.sums(), before) {
			t.Error("the drive was written to")
		}
	})
}

// TestOldDataInNewPV: a partition for a physical volume counts as blank also where a deleted volume has left
// its data. Its creation ends after each kill, with the records and without.
func TestOldDataInNewPV(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		killed := true
		for n := 1; killed && n < 40; n += everyNth {
			k := &killer{}
			onMachine(t, fillable(), volume.Options{After: k.step}, func(s *stand) {
				r := rawVolume(drivebay.BackingPartition)
				r.Size.Required = 64 << 20
				keep := s.make("keep", r)
				d := s.driveOf(keep)
				end := int64(s.record(keep).Volume.Size) + 16<<20
				s.fill(d.Name, end, int(int64(d.Size)-end-8<<20))
				r = rawVolume(drivebay.BackingLVM)
				r.Name, r.Size.Required = "v", 64<<20
				k.arm(n)
				_, err := s.e.CreateVolume(s.Context(), r)
				if killed = s.restarted(err); killed && lost {
					s.reborn()
					time.Sleep(2 * time.Minute)
				}
				if err := s.retried(func() error { _, err := s.e.CreateVolume(s.Context(), r); return err }); err != nil {
					t.Errorf("killed after step %d, store lost: %v: %v", n, lost, err)
				}
			})
		}
	}
}

// TestDeletedBehindErasedLabel: a volume that is to be wiped is not deleted while the label of its physical
// volume is erased, although the ends of that read as zeros: its data are still there.
func TestDeletedBehindErasedLabel(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin} {
		onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
			r := rawVolume(b)
			r.Class.Wipe = drivebay.WipeZero
			v := s.make("v", r)
			d := s.driveOf(v)
			s.put(v, "secret")
			s.eraseFront(d.Name + "p1")
			time.Sleep(2 * time.Minute)
			before := s.sums()
			s.notYet(string(b), s.e.DeleteVolume(s.Context(), v.ID))
			if _, there := s.e.Volumes().Get(v.ID); !there || !maps.Equal(s.sums(), before) {
				t.Errorf("%s: still listed: %v, or its drive was written to", b, there)
			}
		})
	}
}
