package volume_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// beforeRead is a machine that calls do once, right before a drive is opened for reading the nth time.
type beforeRead struct {
	*hostsim.Machine
	mu   sync.Mutex
	dev  string
	left int
	do   func()
}

func (m *beforeRead) OpenDrive(ctx context.Context, dev string) (host.OpenDrive, error) {
	m.mu.Lock()
	if dev == m.dev {
		m.left--
	}
	now := dev == m.dev && m.left == 0
	m.mu.Unlock()
	if now {
		m.do()
	}
	return m.Machine.OpenDrive(ctx, dev)
}

// TestReadOfAnotherDrive: the records are lost, and the label of a physical volume is erased. A blank drive gets the name of its drive right
// before that is read. What is on the other drive does not prove that this one has no volume.
func TestReadOfAnotherDrive(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 5; n += everyNth {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				d, other := s.named("nvme0n1"), s.named("nvme1n1")
				s.inject(other.ID, "vanish")
				time.Sleep(time.Minute)
				r := rawVolume(drivebay.BackingLVM)
				v := s.make("v", r)
				s.withDevice(v, func(dev string) { s.fill(strings.TrimPrefix(dev, "/dev/"), 0, 1<<26) })
				s.eraseFront(d.Name + "p1")
				s.machine = &beforeRead{Machine: s.sim, dev: "/dev/" + d.Name, left: n, do: func() {
					for _, f := range []hostsim.Fault{{Drive: d.Serial, Fault: "vanish"}, {Drive: other.Serial, Fault: "return"}, {Drive: d.Serial, Fault: "return"}} {
						s.must(s.sim.Inject(f))
					}
				}}
				s.reborn()
				time.Sleep(2 * time.Minute)
				if s.named("nvme0n1").ID != other.ID {
					t.Fatal("no other drive got the name")
				}
				s.notKnown(v, r)
			})
		})
	}
}
