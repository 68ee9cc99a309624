package volume_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// beforeNth is a machine on which something happens right before a device is opened for the nth time.
type beforeNth struct {
	*hostsim.Machine
	dev  string
	left atomic.Int32
	do   func()
}

func (m *beforeNth) OpenDisk(ctx context.Context, dev string, alone bool) (host.Disk, error) {
	if dev == m.dev && m.left.Add(-1) == 0 {
		m.do()
	}
	return m.Machine.OpenDisk(ctx, dev, alone)
}

// TestDisabledOnAnotherDrive: while the replication of a volume is disabled, its drive is pulled, another one gets its name and number, and it
// is put back. The filesystem of the other drive is not recorded as that of the volume.
func TestDisabledOnAnotherDrive(t *testing.T) {
	t.Parallel()
	swaps := 0
	for nth := range int32(4) {
		t.Run(fmt.Sprintf("open %d", nth+1), func(t *testing.T) {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				m := &beforeNth{Machine: s.sim}
				s.machine = m
				s.start()
				d, other := s.besideAway()
				v := s.make("v", requests()["ext4 on a partition"])
				s.must(s.e.EnableReplication(s.Context(), replicateFrom(v, siteA, siteB, true)))
				want := s.record(v).Volume.FSUUID
				m.dev, m.do = "/dev/nvme0n1p1", func() {
					swaps++
					s.takesName(d, other)
				}
				m.left.Store(nth + 1)
				_ = s.e.DisableReplication(s.Context(), replicationOf(v)) // refused, or done before
				m.left.Store(0)
				if got := s.record(v).Volume.FSUUID; got != want {
					t.Errorf("its filesystem is %s, and was %s", got, want)
				}
			})
		})
	}
	if swaps == 0 {
		t.Error("the device was not opened")
	}
}
