package volume_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
	"github.com/drivebay/drivebay/volume"
)

// beforeFolder is a machine of which something happens right before a folder is read.
type beforeFolder struct {
	*hostsim.Machine
	armed
}

func (m *beforeFolder) ReadDir(name string) ([]string, error) {
	m.come(name)
	return m.Machine.ReadDir(name)
}

// TestAdoptedByItsDrive: a drive gets the name of a pulled one while the partitions are listed. Its volumes are not recorded on
// the pulled drive: they would be missing there for ever.
func TestAdoptedByItsDrive(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"a partition", "a linear volume"} {
		onMachine(t, sameDrives(2), volume.Options{}, func(s *stand) {
			d, other := s.named("nvme0n1"), s.named("nvme1n1")
			s.inject(d.ID, "vanish")
			time.Sleep(time.Minute)
			v := s.make("v", requests()[what])
			if v.Location.Drives[0] != other.ID {
				t.Fatalf("%s: it is at %+v", what, v.Location)
			}
			s.inject(other.ID, "vanish")
			time.Sleep(time.Minute)
			s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "return"}))
			time.Sleep(time.Minute)
			swapped := false
			m := &beforeFolder{Machine: s.sim}
			m.arm("sys/block/"+s.driveNow(d.ID), func() {
				swapped = true
				s.must(s.sim.Inject(hostsim.Fault{Drive: d.Serial, Fault: "vanish"}), s.sim.Inject(hostsim.Fault{Drive: other.Serial, Fault: "return"}))
			})
			s.machine = m
			s.over = store.Memory() // its records are lost
			s.start()
			time.Sleep(2 * time.Minute)
			if !swapped {
				t.Fatalf("%s: no listing", what)
			}
			if is := s.of(v); !slices.Equal(is.Location.Drives, []string{other.ID}) {
				t.Errorf("%s: it is recorded on %v, and is on %s", what, is.Location.Drives, other.ID)
			}
		})
	}
}

// driveNow returns the kernel name of a drive.
func (s *stand) driveNow(id string) string {
	s.Helper()
	d, known := s.mgr.Snapshot().Find(id)
	if !known {
		s.Fatalf("drive %s is not known", id)
	}
	return d.Name
}
