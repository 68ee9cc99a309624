package volume_test

import (
	"encoding/binary"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume"
)

// onDrive changes a drive behind the daemon's back, by way of its table as it is.
func (s *stand) onDrive(name string, f func(disk host.Disk, t *gpt.Table)) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+name, false)
	s.must(err)
	defer disk.Close()
	t, err := gpt.Read(disk)
	s.must(err)
	f(disk, t)
}

// layoutChange changes the table of a drive without the kernel, or the other way round; undo
// is what writing the old bytes again does not take back.
type layoutChange struct {
	name     string
	do, undo func(s *stand, disk host.Disk, table *gpt.Table)
}

var layoutChanges = []layoutChange{
	{"a partition in the table alone", func(s *stand, disk host.Disk, table *gpt.Table) {
		p := &table.Partitions[0]
		if table.Largest(gpt.Align).Size < 64<<20 { // it fills the drive
			p.Size -= 64 << 20
			s.must(table.Write(disk))
			return
		}
		_, err := table.Add(64<<20, gpt.Align, p.Type, "11111111-2222-4333-8444-555555555555", "drivebay-alien")
		s.must(err, table.Write(disk))
	}, nil},
	{"no table", func(s *stand, disk host.Disk, table *gpt.Table) {
		for _, at := range []uint64{0, disk.Size() - 33*512} {
			_, err := disk.WriteAt(make([]byte, 33*512), int64(at))
			s.must(err)
		}
	}, nil},
	{"a damaged table", func(s *stand, disk host.Disk, _ *gpt.Table) { s.damageTable(disk) }, nil},
	{"a damaged table, and no partition in the kernel", func(s *stand, disk host.Disk, table *gpt.Table) {
		s.must(disk.RemovePartition(table.Partitions[0].Number))
		s.damageTable(disk)
	}, func(s *stand, disk host.Disk, table *gpt.Table) {
		p := table.Partitions[0]
		s.must(disk.AddPartition(p.Number, p.Start, p.Size))
	}},
	{"a smaller partition in the table", func(s *stand, disk host.Disk, table *gpt.Table) {
		table.Partitions[0].Size -= 16 << 20
		s.must(table.Write(disk))
	}, nil},
	{"a partition that starts later in the table", func(s *stand, disk host.Disk, table *gpt.Table) {
		table.Partitions[0].Start += 16 << 20
		table.Partitions[0].Size -= 16 << 20
		s.must(table.Write(disk))
	}, nil},
	{"a smaller partition in the kernel", func(s *stand, disk host.Disk, table *gpt.Table) {
		p := table.Partitions[0]
		s.must(disk.ResizePartition(p.Number, p.Start, p.Size-16<<20))
	}, func(s *stand, disk host.Disk, table *gpt.Table) {
		p := table.Partitions[0]
		s.must(disk.ResizePartition(p.Number, p.Start, p.Size))
	}},
	{"no partition in the kernel", func(s *stand, disk host.Disk, table *gpt.Table) {
		s.must(disk.RemovePartition(table.Partitions[0].Number))
	}, func(s *stand, disk host.Disk, table *gpt.Table) {
		p := table.Partitions[0]
		s.must(disk.AddPartition(p.Number, p.Start, p.Size))
	}},
	{"a second partition in the kernel alone", func(s *stand, disk host.Disk, table *gpt.Table) {
		p := table.Partitions[0]
		if free := table.Largest(gpt.Align); free.Size >= 64<<20 {
			s.must(disk.AddPartition(7, free.Start, 64<<20))
		} else {
			s.must(disk.ResizePartition(p.Number, p.Start, p.Size-64<<20), disk.AddPartition(7, p.Start+p.Size-64<<20, 64<<20))
		}
	}, func(s *stand, disk host.Disk, table *gpt.Table) {
		p := table.Partitions[0]
		s.must(disk.RemovePartition(7), disk.ResizePartition(p.Number, p.Start, p.Size))
	}},
}

// damageTable makes the checksum of both headers of a table wrong.
func (s *stand) damageTable(disk host.Disk) {
	s.Helper()
	block := uint64(disk.BlockSize())
	for _, at := range []uint64{block, disk.Size()/block*block - block} {
		b := make([]byte, block)
		_, err := disk.ReadAt(b, int64(at))
		s.must(err)
		b[16] ^= 0x55
		_, err = disk.WriteAt(b, int64(at))
		s.must(err)
	}
}

// TestLayoutUnknown: another program changes the table of a drive without the kernel, or
// the kernel's partitions without the table. The drive is used for nothing until they
// agree again.
func TestLayoutUnknown(t *testing.T) {
	t.Parallel()
	for i, c := range layoutChanges {
		for j, b := range backings {
			if (i+j)%everyNth != 0 {
				continue
			}
			if b == drivebay.BackingThin && strings.Contains(c.name, "no partition in the kernel") {
				continue // the pool keeps it in use
			}
			t.Run(c.name+" "+string(b), func(t *testing.T) {
				onMachine(t, tinyDrives(1), volume.Options{}, func(s *stand) {
					v := s.make("precious", rawVolume(b))
					s.mark(v)
					d := s.driveOf(v)
					sound := s.bytesOf(d.Name)
					s.onDrive(d.Name, func(disk host.Disk, table *gpt.Table) { c.do(s, disk, table) })
					before := s.bytesOf(d.Name)
					time.Sleep(20 * time.Minute)
					s.unknownLayout(v)
					s.start()
					s.unknownLayout(v)
					if !maps.Equal(s.bytesOf(d.Name), before) {
						t.Error("the drive was written to")
					}
					s.writeBytes(d.Name, before, sound)
					if c.undo != nil {
						s.onDrive(d.Name, func(disk host.Disk, table *gpt.Table) { c.undo(s, disk, table) })
					}
					time.Sleep(20 * time.Minute)
					if is := s.of(v); len(severities(is.Condition, "LayoutUnknown")) != 0 {
						t.Errorf("when they agree again the volume is %v", is.Condition)
					}
					s.must(s.stage(v), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
				})
			})
		}
	}
}

// writeBytes makes the bytes of a drive what they were.
func (s *stand) writeBytes(drive string, is, was map[int64]string) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+drive, false)
	s.must(err)
	for at, b := range was {
		if is[at] != b {
			_, err := disk.WriteAt([]byte(b), at)
			s.must(err)
		}
	}
	for at, b := range is {
		if was[at] == "" {
			_, err := disk.WriteAt(make([]byte, len(b)), at)
			s.must(err)
		}
	}
	s.must(disk.Close())
}

// unknownLayout wants a volume to say that the layout of its drive is unknown, and the
// drive to be used for nothing.
func (s *stand) unknownLayout(v drivebay.Volume) {
	s.Helper()
	is := s.of(v)
	if len(severities(is.Condition, "LayoutUnknown")) != 1 || is.OperationalStatus == drivebay.Missing {
		s.Errorf("the volume is %v: %v", is.OperationalStatus, is.Condition)
	}
	s.nothingNew(v)
	s.nothingUndone(v)
}

// nothingNew wants no room on the drives there are, no new volume, and this one not staged.
func (s *stand) nothingNew(v drivebay.Volume) {
	s.Helper()
	for _, b := range backings {
		if c, err := s.e.Capacity(s.Context(), rawVolume(b).Class); err != nil && !errors.Is(err, drivebay.ErrUnavailable) || c.Available > 0 {
			s.Errorf("capacity of %s: %+v, %v", b, c, err)
		}
	}
	r := rawVolume(drivebay.BackingPartition)
	r.Name, r.Size.Required = "other", 64<<20
	if o, err := s.e.CreateVolume(s.Context(), r); err == nil {
		s.Errorf("another volume is made: %+v", o.Location)
	}
	if err := s.stage(v); err == nil {
		s.Error("the volume is staged")
	}
}

// nothingUndone wants a volume to be neither deleted nor grown nor forgotten.
func (s *stand) nothingUndone(v drivebay.Volume) {
	s.Helper()
	if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
		s.Error("the volume is deleted")
	}
	if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: v.Size + 64<<20}); err == nil {
		s.Error("the volume is grown")
	}
	if err := s.e.ForgetVolume(s.Context(), v.ID); err == nil {
		s.Error("the volume is forgotten")
	}
}

// TestOtherTable: another program has written an MBR to the drive of a volume, and the kernel
// has read it. The volume is gone, and can be forgotten.
func TestOtherTable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a partition", "a linear volume"} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			v := s.make("v", requests()[name])
			d := s.driveOf(v)
			time.Sleep(time.Minute)
			s.onDrive(d.Name, func(disk host.Disk, table *gpt.Table) {
				p := table.Partitions[0]
				s.must(disk.RemovePartition(p.Number))
				for _, at := range []uint64{0, disk.Size() - 33*512, p.Start} {
					_, err := disk.WriteAt(make([]byte, 33*512), int64(at))
					s.must(err)
				}
				mbr := make([]byte, 512)
				mbr[446+4], mbr[510], mbr[511] = 0x83, 0x55, 0xaa
				binary.LittleEndian.PutUint32(mbr[446+8:], 2048)
				binary.LittleEndian.PutUint32(mbr[446+12:], 1<<20)
				_, err := disk.WriteAt(mbr, 0)
				s.must(err, disk.AddPartition(1, 1<<20, 512<<20))
			})
			s.must(s.mgr.Refresh(s.Context()))
			time.Sleep(time.Minute)
			s.restart(func() {})
			time.Sleep(20 * time.Minute)
			if is := s.of(v); is.OperationalStatus != drivebay.Missing {
				t.Errorf("%s: %v: %s", name, is.OperationalStatus, is.Condition.Message())
			}
			s.must(s.e.ForgetVolume(s.Context(), v.ID))
		})
	}
}
