package volume_test

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// lateUdev is a machine whose udev has not seen yet that partitions went and others came. The kernel has no names
// of partitions that were added by BLKPG.
type lateUdev struct {
	*hostsim.Machine
	database sync.Map // by file
}

func (m *lateUdev) ReadFile(name string) ([]byte, error) {
	if old, ok := m.database.Load(name); ok {
		return old.([]byte), nil
	}
	b, err := m.Machine.ReadFile(name)
	if strings.HasSuffix(name, "/uevent") {
		b = regexp.MustCompile(`(?m)^PART(NAME|UUID)=.*\n`).ReplaceAll(b, nil)
	}
	return b, err
}

// TestLateUdev: a partition gets the device number of one that was deleted, whose label udev still has. The volume on it
// is made, used and deleted as if udev knew it.
func TestLateUdev(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"partition": requests()["ext4 on a partition"], "linear": requests()["xfs on linear"]} {
		onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
			late := &lateUdev{Machine: s.sim}
			s.machine = late
			s.start()
			first := s.make("first", r)
			stale := false
			for _, at := range []string{"p1", "p2"} {
				num, err := s.sim.ReadFile("sys/class/block/" + s.driveOf(first).Name + at + "/dev")
				if err != nil {
					continue
				}
				file := "run/udev/data/b" + string(bytes.TrimSpace(num))
				data, err := s.sim.ReadFile(file)
				s.must(err)
				if !bytes.Contains(data, []byte("E:ID_PART_ENTRY_NAME=drivebay-")) {
					t.Fatalf("%s: udev has no label of ours: %s", name, data)
				}
				late.database.Store(file, data)
				stale = true
			}
			if !stale {
				t.Fatal("no partition was made")
			}
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), first.ID) }))
			r := r
			r.Name = "second"
			second, err := s.e.CreateVolume(s.Context(), r)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			s.must(s.stage(second), s.unstage(second), s.e.DeleteVolume(s.Context(), second.ID))
		})
	}
}

// TestLateUdevAfterRestart: a volume was deleted and made again, in the same place and with the same name. The daemon starts again while udev still has
// the label of the one before: the volume is not missing.
func TestLateUdevAfterRestart(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]drivebay.VolumeRequest{"partition": requests()["ext4 on a partition"], "linear": requests()["xfs on linear"]} {
		onMachine(t, nvmeDrives(1), volume.Options{}, func(s *stand) {
			late := &lateUdev{Machine: s.sim}
			s.machine = late
			s.start()
			first := s.make("v", r)
			num, err := s.sim.ReadFile("sys/class/block/" + s.driveOf(first).Name + "p1/dev")
			s.must(err)
			file := "run/udev/data/b" + string(bytes.TrimSpace(num))
			data, err := s.sim.ReadFile(file)
			s.must(err)
			s.must(s.retried(func() error { return s.e.DeleteVolume(s.Context(), first.ID) }))
			late.database.Store(file, data)
			v := s.make("v", r)
			if v.ID != first.ID || v.Location.Partition == first.Location.Partition && v.Location.VG == first.Location.VG {
				t.Fatalf("%s: it is %+v, and was %+v", name, v.Location, first.Location)
			}
			s.start()
			if is := s.of(v); is.Condition.Abnormal() {
				t.Errorf("%s: %v", name, is.Condition)
			}
			s.must(s.stage(v), s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
		})
	}
}
