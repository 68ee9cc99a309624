package volume_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// damages are what makes a drive with volumes look blank or free, or a volume group look
// as if it had room.
var damages = map[string]func(*stand, drivebay.Volume){
	// sgdisk --zap-all, and partprobe
	"erased partition table": func(s *stand, v drivebay.Volume) {
		if v.Location.Pool != "" {
			_, err := s.sim.Run(s.Context(), "lvm", "lvchange", "-an", v.Location.VG+"/"+v.Location.Pool)
			s.must(err)
		}
		d := s.drive(v)
		disk := s.open(d.Name)
		defer disk.Close()
		s.must(disk.Zero(s.Context(), 0, 34*512), disk.Zero(s.Context(), d.Size-34*512, 34*512), disk.Sync(), disk.RemovePartition(1))
		s.must(s.mgr.Refresh(s.Context()))
	},
	"wrong bit in the label": func(s *stand, v drivebay.Volume) {
		disk := s.open(s.drive(v).Name + "p1")
		defer disk.Close()
		b := make([]byte, 1)
		_, err := disk.ReadAt(b, 512+32+5)
		s.must(err)
		b[0] ^= 0x80
		_, err = disk.WriteAt(b, 512+32+5)
		s.must(err, disk.Sync())
	},
	"erased label": func(s *stand, v drivebay.Volume) {
		disk := s.open(s.drive(v).Name + "p1")
		defer disk.Close()
		s.must(disk.Zero(s.Context(), 0, 1<<20), disk.Sync())
	},
	"physical volume without a volume group": func(s *stand, v drivebay.Volume) {
		_, err := s.sim.Run(s.Context(), "lvm", "vgremove", "--force", "--yes", v.Location.VG)
		s.must(err)
	},
	"logical volume removed from the metadata": func(s *stand, v drivebay.Volume) {
		_, err := s.sim.Run(s.Context(), "lvm", "lvremove", "--force", "--yes", v.Location.VG+"/"+v.Location.LV)
		s.must(err)
	},
}

func (s *stand) open(name string) host.Disk {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+name, false)
	s.must(err)
	return disk
}

// TestRecordedIsNotFree: what a record says is on a drive is neither blank nor free,
// whatever the drive and LVM show: no capacity is promised there, nothing is written
// there, until the volume is back or given up.
func TestRecordedIsNotFree(t *testing.T) {
	t.Parallel()
	backings := []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingDrive, drivebay.BackingLVM, drivebay.BackingThin}
	for damage, do := range damages {
		for _, b := range backings {
			if damage != "erased partition table" && b != drivebay.BackingLVM && b != drivebay.BackingThin {
				continue
			}
			t.Run(damage+" of "+string(b), func(t *testing.T) {
				spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
				onMachine(t, spec, volume.Options{}, func(s *stand) {
					r := drivebay.VolumeRequest{Block: true, Class: drivebay.Class{Backing: b, Wipe: drivebay.WipeNone, FSType: "ext4"}}
					v := s.make("v", r)
					do(s, v)
					time.Sleep(2 * time.Minute)
					before := s.sums()
					for _, other := range append(backings, drivebay.BackingMirror) {
						r.Class.Backing = other
						if c, err := s.e.Capacity(s.Context(), r.Class); err != nil || c.Available != 0 || c.Largest != 0 {
							s.Errorf("capacity of %s: %+v, %v", other, c, err)
						}
						r.Name, r.Size.Required = "other on "+string(other), 1<<30
						if o, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrNoSpace) {
							s.Errorf("other volume on %s: %+v, %v", other, o.Location, err)
						}
					}
					if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 1<<28}); err == nil {
						s.Error("it was grown")
					}
					if after := s.sums(); !maps.Equal(before, after) {
						s.Error("the drive was written to")
					}
					if is := s.of(v); !is.Condition.Abnormal() {
						s.Errorf("it says: %s", is.Condition.Message())
					}
					s.must(s.e.ForgetVolume(s.Context(), v.ID))
					if v.Location.VG == "" { // there is still a label of LVM behind the table elsewhere
						s.must(s.mgr.Refresh(s.Context()))
						time.Sleep(time.Minute)
						r.Class.Backing = drivebay.BackingPartition
						s.make("after it was given up", r)
					}
				})
			})
		}
	}
}

// TestRecordedSnapshot: a snapshot that was removed outside of drivebay keeps its place
// until it is given up.
func TestRecordedSnapshot(t *testing.T) {
	t.Parallel()
	onMachine(t, oneNVMeDrive(), volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingThin)
		v := s.make("v", r)
		snap, err := s.e.CreateSnapshot(s.Context(), "snap", v.ID)
		s.must(err)
		if s.free(r) == 0 {
			t.Fatal("nothing is free before")
		}
		_, err = s.sim.Run(s.Context(), "lvm", "lvremove", "--force", "--yes", snap.Location.VG+"/"+snap.Location.LV)
		s.must(err)
		if got := s.free(r); got != 0 {
			t.Errorf("%d bytes are free without it", got)
		}
		s.must(s.e.ForgetSnapshot(s.Context(), snap.ID))
		if s.free(r) == 0 {
			t.Error("nothing is free after it was given up")
		}
	})
}
