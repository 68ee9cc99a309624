package volume_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// beforeCommand is LVM that calls do right before its nth command of a kind.
type beforeCommand struct {
	lvm.Runner
	mu      sync.Mutex
	command string
	left    int
	do      func()
}

func (r *beforeCommand) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if r.now(argv[1]) {
		r.do()
	}
	return r.Runner.Run(ctx, argv...)
}

func (r *beforeCommand) now(command string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if command == r.command {
		r.left--
	}
	return command == r.command && r.left == 0
}

func (r *beforeCommand) arm(command string, n int, do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.command, r.left, r.do = command, n, do
}

// TestLVMNamesAnotherDrive: a drive is pulled and another one gets its name right before LVM labels a partition by
// that name. The other drive has no claim, and is not written to.
func TestLVMNamesAnotherDrive(t *testing.T) {
	t.Parallel()
	for command, n := range map[string]int{"pvcreate": 1, "vgcreate": 1, "fullreport": 8} {
		for ; n > 0; n-- {
			onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
				r := &beforeCommand{Runner: s.sim}
				s.lvm = r
				s.start()
				d, other := s.named("nvme0n1"), s.named("nvme1n1")
				s.rawPartition(other)
				was := s.bytesOf(other.Name)
				s.inject(other.ID, "vanish")
				time.Sleep(time.Minute)
				r.arm(command, n, func() {
					s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "vanish"}), s.sim.Inject(hostsim.Fault{Drive: other.Serial, Fault: "return"}))
				})
				q := requests()["a linear volume"]
				q.Name, q.Size.Required = "v", 1<<30
				v, err := s.e.CreateVolume(s.Context(), q)
				time.Sleep(time.Minute)
				when := fmt.Sprintf("before %s %d", command, n)
				is, known := s.mgr.Snapshot().Find(other.ID)
				if !known || is.Status != drivebay.StatusOnline {
					t.Fatalf("%s: the other drive is not here: %+v, %v", when, v, err)
				}
				if !maps.Equal(s.bytesOf(is.Name), was) {
					t.Errorf("%s: the other drive was written to as %s: %+v, %v", when, is.Name, v.Location, err)
				}
			})
		}
	}
}

// rawPartition gives a drive a partition with data of no known format.
func (s *stand) rawPartition(d drivebay.Drive) {
	s.Helper()
	disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
	s.must(err)
	table, err := gpt.New(disk)
	s.must(err)
	p, err := table.Add(table.Largest(gpt.Align).Size, gpt.Align, "0fc63daf-8483-4772-8e79-3d69d8477de4", "11111111-2222-4333-8444-555555555555", "data")
	s.must(err, table.Write(disk), disk.AddPartition(p.Number, p.Start, p.Size))
	_, err = disk.WriteAt(bytes.Repeat([]byte("row of a table; "), 1<<16), int64(p.Start))
	s.must(err, disk.Sync(), disk.Close())
}

// named returns the drive with a kernel name.
func (s *stand) named(name string) drivebay.Drive {
	s.Helper()
	for _, d := range s.mgr.Snapshot().Drives {
		if d.Name == name {
			return d
		}
	}
	s.Fatalf("no drive has the name %s", name)
	return drivebay.Drive{}
}
