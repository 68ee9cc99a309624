package volume_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// armed calls do once, when the machine comes to a name.
type armed struct {
	mu   sync.Mutex
	name string
	do   func()
}

func (a *armed) arm(name string, do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.name, a.do = name, do
}

func (a *armed) come(name string) {
	a.mu.Lock()
	do := a.do
	if name != a.name {
		do = nil
	}
	if do != nil {
		a.do = nil
	}
	a.mu.Unlock()
	if do != nil {
		do()
	}
}

// beforeOpen is a machine of which something happens right before a device is opened.
type beforeOpen struct {
	*hostsim.Machine
	armed
}

func (m *beforeOpen) OpenDisk(ctx context.Context, dev string, alone bool) (host.Disk, error) {
	m.come(dev)
	return m.Machine.OpenDisk(ctx, dev, alone)
}

// TestPublishedNumberOfAnotherDrive: a drive is pulled and another one gets its name and number right before a block volume
// is published. The pod does not get the other drive.
func TestPublishedNumberOfAnotherDrive(t *testing.T) {
	t.Parallel()
	onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
		m := &beforeOpen{Machine: s.sim}
		s.machine = m
		s.start()
		d, other := s.named("nvme0n1"), s.named("nvme1n1")
		s.rawPartition(other)
		s.inject(other.ID, "vanish")
		time.Sleep(time.Minute)
		v := s.make("v", requests()["a partition"])
		s.must(s.stage(v))
		swapped := false
		m.arm("/dev/nvme0n1p1", func() {
			swapped = true
			s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "vanish"}), s.sim.Inject(hostsim.Fault{Drive: other.Serial, Fault: "return"}))
		})
		err := s.publish(v, "pod")
		if !swapped {
			t.Fatalf("the device was not opened: %v", err)
		}
		if shown := s.mounts(target(v, "pod")); err == nil || len(shown) > 0 {
			t.Errorf("published: %v: %+v", err, shown)
		}
	})
}
