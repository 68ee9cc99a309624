package volume_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// noResize is a machine on which the kernel does not learn that a partition has grown, while late is set.
type noResize struct {
	*hostsim.Machine
	late atomic.Bool
}

func (m *noResize) OpenDisk(ctx context.Context, dev string, alone bool) (host.Disk, error) {
	disk, err := m.Machine.OpenDisk(ctx, dev, alone)
	if err != nil {
		return nil, err
	}
	return noResizeDisk{disk, m}, nil
}

type noResizeDisk struct {
	host.Disk
	m *noResize
}

func (d noResizeDisk) ResizePartition(number int, start, size uint64) error {
	if d.m.late.Load() {
		return host.ErrTimeout
	}
	return d.Disk.ResizePartition(number, start, size)
}

// TestDeletedAfterGrowthCutShort: a growth has changed the partition table, and the drive is so slow that the kernel is not told in time. The
// volume is deleted before the growth is completed. The deletion ends, and the layout of the drive is known.
func TestDeletedAfterGrowthCutShort(t *testing.T) {
	t.Parallel()
	spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindSATAHDD, Serial: "DISK{n}", Size: "20GB"}}}
	for _, name := range []string{"ext4 on a partition", "xfs on a partition", "a partition"} {
		for _, restarted := range []bool{false, true} {
			onMachine(t, spec, volume.Options{}, func(s *stand) {
				m := &noResize{Machine: s.sim}
				s.machine = m
				s.start()
				v := s.make("v", requests()[name])
				m.late.Store(true)
				if _, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 << 30}); err == nil {
					t.Errorf("%s: grown", name)
				}
				if err := s.e.DeleteVolume(s.Context(), v.ID); err == nil {
					t.Errorf("%s: deleted", name)
				}
				m.late.Store(false)
				if restarted {
					s.start()
				}
				if err := s.retried(func() error { return s.e.DeleteVolume(s.Context(), v.ID) }); err != nil {
					t.Errorf("%s, restarted %v: deleted: %v", name, restarted, err)
				}
				time.Sleep(time.Hour)
				if _, listed := s.e.Volumes().Get(v.ID); listed {
					t.Errorf("%s, restarted %v: it is still listed", name, restarted)
				}
				s.must(s.stage(s.make("next", requests()[name])))
			})
		}
	}
}
