package volume_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// resizePart changes the table and the kernel, as parted does.
func (s *stand) resizePart(v drivebay.Volume, change func(*gpt.Partition)) {
	s.Helper()
	s.onDrive(s.drive(v).Name, func(disk host.Disk, t *gpt.Table) {
		p := &t.Partitions[0]
		at := p.Start
		change(p)
		s.must(t.Write(disk))
		if p.Start == at { // also while it is in use (BLKPG_RESIZE_PARTITION)
			s.must(disk.ResizePartition(p.Number, p.Start, p.Size))
			return
		}
		s.must(disk.RemovePartition(p.Number), disk.AddPartition(p.Number, p.Start, p.Size))
	})
	s.must(s.mgr.Refresh(s.Context()))
	time.Sleep(2 * time.Minute)
}

// TestSmallerThanRecorded: a partition or logical volume that another program has made smaller is not the whole volume. What lies behind
// it is not free, and it is neither used nor deleted nor grown before it is as large as before, or given up.
func TestSmallerThanRecorded(t *testing.T) {
	t.Parallel()
	const size, half = 1 << 30, 512 << 20
	lvm := func(command string, bytes string) func(*stand, drivebay.Volume) {
		return func(s *stand, v drivebay.Volume) {
			s.must(s.byHand(command, "--force", "--yes", "--size", bytes, v.Location.VG+"/"+v.Location.LV))
			time.Sleep(2 * time.Minute)
		}
	}
	part := func(change func(*gpt.Partition)) func(*stand, drivebay.Volume) {
		return func(s *stand, v drivebay.Volume) { s.resizePart(v, change) }
	}
	for name, c := range map[string]struct {
		backing  drivebay.Backing
		cut, fix func(*stand, drivebay.Volume)
	}{
		"partition that ends earlier": {drivebay.BackingPartition, part(func(p *gpt.Partition) { p.Size -= half }), part(func(p *gpt.Partition) { p.Size += half })},
		"partition that begins later": {drivebay.BackingPartition, part(func(p *gpt.Partition) { p.Start, p.Size = p.Start+half, p.Size-half }), part(func(p *gpt.Partition) { p.Start, p.Size = p.Start-half, p.Size+half })},
		"logical volume":              {drivebay.BackingLVM, lvm("lvreduce", "512m"), lvm("lvextend", "1g")},
		"thin volume":                 {drivebay.BackingThin, lvm("lvreduce", "512m"), lvm("lvextend", "1g")},
	} {
		for _, block := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
				onMachine(t, spec, volume.Options{}, func(s *stand) {
					r := drivebay.VolumeRequest{Block: block, Size: drivebay.SizeRange{Required: size}, Class: drivebay.Class{Backing: c.backing, Wipe: drivebay.WipeZero, FSType: "ext4"}}
					v := s.make("v", r)
					s.must(s.stage(v), s.unstage(v))
					c.cut(s, v)
					before := s.sums()
					if is := s.of(v); is.Condition.Severity() != drivebay.SeverityInaccessible || !strings.Contains(is.Condition.Message(), "it has 512 MiB, and had 1 GiB") {
						t.Errorf("it says: %s", is.Condition.Message())
					}
					s.nothingNew(v)
					if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: size + half}); err == nil {
						t.Error("it was grown")
					}
					if err := s.e.DeleteVolume(s.Context(), v.ID); !askedAgain(err) {
						t.Errorf("deleted: %v", err)
					}
					if !maps.Equal(before, s.sums()) {
						t.Error("the drive was written to")
					}
					c.fix(s, v)
					if is := s.of(v); len(severities(is.Condition, "VolumeNotFound")) != 0 {
						t.Errorf("as large as before it says: %s", is.Condition.Message())
					}
				})
			})
		}
	}
}

// TestSmallerPhysicalVolume: the partition of a physical volume is smaller than LVM needs. Data of the group lie behind it: the layout of the
// drive is unknown.
func TestSmallerPhysicalVolume(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingLVM, drivebay.BackingThin} {
		spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
		onMachine(t, spec, volume.Options{}, func(s *stand) {
			v := s.make("v", rawVolume(b))
			if v.Location.Pool != "" {
				s.must(s.byHand("lvchange", "-an", v.Location.VG+"/"+v.Location.Pool))
			}
			var size uint64
			s.resizePart(v, func(p *gpt.Partition) { size, p.Size = p.Size, p.Size/2 })
			before := s.sums()
			s.unknownLayout(v)
			if !maps.Equal(before, s.sums()) {
				t.Error("the drive was written to")
			}
			s.resizePart(v, func(p *gpt.Partition) { p.Size = size })
			if is := s.of(v); is.Condition.Abnormal() {
				t.Errorf("as large as before it says: %s", is.Condition.Message())
			}
			s.must(s.stage(v))
		})
	}
}

// TestTableFromBeforeGrowth: the partition table is restored from before a growth, while the volume is in use. The volume is the whole one again
// once its partition is.
func TestTableFromBeforeGrowth(t *testing.T) {
	t.Parallel()
	spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 2, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
	onMachine(t, spec, volume.Options{}, func(s *stand) {
		r := rawVolume(drivebay.BackingPartition)
		v := s.make("v", r)
		v = s.grows(v, 2<<30)
		s.must(s.stage(v))
		s.mark(v)
		s.resizePart(v, func(p *gpt.Partition) { p.Size = 1 << 30 })
		if is := s.of(v); is.Condition.Severity() != drivebay.SeverityInaccessible {
			t.Errorf("it says: %s", is.Condition.Message())
		}
		s.must(s.unstage(v))
		if err := s.stage(v); err == nil {
			t.Error("staged")
		}
		before := s.sums()
		s.lead(v, drivebay.LeaveRelease)
		time.Sleep(20 * time.Minute)
		if !maps.Equal(before, s.sums()) {
			t.Error("a part of it was copied")
		}
		d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
		if d.Usage == drivebay.UsageReleased {
			t.Error("its drive is RELEASED")
		}
		s.resizePart(v, func(p *gpt.Partition) { p.Size = 2 << 30 })
		s.until("it has left", func() bool {
			d, _ := s.mgr.Snapshot().Find(v.Location.Drives[0])
			return d.Usage == drivebay.UsageReleased
		})
		s.must(s.stage(v))
	})
}

// TestSmallerIsGivenUp: an operator has made a partition smaller on purpose and gives up the volume. Its space is free then.
func TestSmallerIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, b := range []drivebay.Backing{drivebay.BackingPartition, drivebay.BackingLVM} {
		spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindNVMe, Serial: "NVME{n}", Size: "10GB"}}}
		onMachine(t, spec, volume.Options{}, func(s *stand) {
			v := s.make("v", rawVolume(b))
			if b == drivebay.BackingLVM {
				s.must(s.byHand("lvreduce", "--force", "--yes", "--size", "512m", v.Location.VG+"/"+v.Location.LV))
				time.Sleep(2 * time.Minute)
			} else {
				s.resizePart(v, func(p *gpt.Partition) { p.Size -= 512 << 20 })
			}
			s.must(s.e.ForgetVolume(s.Context(), v.ID))
			time.Sleep(2 * time.Minute)
			if s.free(rawVolume(b)) == 0 {
				t.Errorf("%s: nothing is free", b)
			}
		})
	}
}

// TestSmallerMirror: the metadata of a mirror's group are from before a growth.
func TestSmallerMirror(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		v := s.make("v", rawVolume(drivebay.BackingMirror))
		is := s.record(v)
		grown := is
		grown.Volume.Size += 256 << 20
		s.startWith(grown)
		time.Sleep(2 * time.Minute)
		before := s.sums()
		if is := s.of(v); !strings.Contains(is.Condition.Message(), "it has 1 GiB, and had 1280 MiB") {
			t.Errorf("it says: %s", is.Condition.Message())
		}
		s.nothingNew(v)
		if !maps.Equal(before, s.sums()) {
			t.Error("a drive was written to")
		}
		s.startWith(is)
		time.Sleep(2 * time.Minute)
		s.must(s.stage(v))
	})
}
