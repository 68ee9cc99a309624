package volume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// failingProgram is a machine on which a program fails, after it has done its work or before.
type failingProgram struct {
	*hostsim.Machine
	name atomic.Value
	done bool
}

func (m *failingProgram) Run(ctx context.Context, argv ...string) ([]byte, error) {
	fails, _ := m.name.Load().(string)
	if fails == "" || !strings.HasPrefix(strings.Join(argv, " "), fails) {
		return m.Machine.Run(ctx, argv...)
	}
	if m.done {
		_, _ = m.Machine.Run(ctx, argv...)
	}
	return nil, fmt.Errorf("%s: exit status 1", argv[0])
}

// Grow fails instead, if the program is "grow".
func (m *failingProgram) Grow(ctx context.Context, at host.Place, fs string) error {
	if fails, _ := m.name.Load().(string); fails == "grow" {
		return errors.New("resize: invalid argument")
	}
	return m.Machine.Grow(ctx, at, fs)
}

// TestHalfStagedIsAskedForAgain: a kubelet that takes an error of NodeStageVolume for the last one does not unstage the volume, and it could
// never be deleted.
func TestHalfStagedIsAskedForAgain(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		m := &failingProgram{Machine: s.sim}
		s.machine = m
		s.start()
		v := s.make("v", requests()["ext4 on a partition"])
		_, _, err := s.e.ExpandVolume(s.Context(), v.ID, drivebay.SizeRange{Required: 2 * v.Size})
		s.must(err)
		m.name.Store("grow")
		if err := s.stage(v); len(s.mounts(staging(v))) != 1 || !errors.Is(err, drivebay.ErrUnavailable) {
			t.Errorf("%d mounts, %v", len(s.mounts(staging(v))), err)
		}
		s.must(s.unstage(v), s.e.DeleteVolume(s.Context(), v.ID))
	})
}

// TestHalfMadeIsAskedForAgain: a sidecar that takes an error of CreateVolume or CreateSnapshot for the last one does not delete what it
// has asked for, and a part of it may be on the drive. So every error is one after which it calls again, until nothing is left.
func TestHalfMadeIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"ext4 on a partition": "mkfs.ext4", "xfs on linear": "mkfs.xfs"} {
		onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
			m := &failingProgram{Machine: s.sim}
			s.machine, s.lvm = m, m
			s.start()
			r := requests()[name]
			r.Name = "v"
			m.name.Store(program)
			if _, err := s.e.CreateVolume(s.Context(), r); !errors.Is(err, drivebay.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
			m.name.Store("")
			s.must(s.e.DeleteVolume(s.Context(), drivebay.VolumeID("v")))
			s.blank()
		})
	}
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		m := &failingProgram{Machine: s.sim, done: true}
		s.machine, s.lvm = m, m
		s.start()
		v := s.make("v", requests()["ext4 on thin"])
		m.name.Store("lvm lvcreate")
		if _, err := s.e.CreateSnapshot(s.Context(), "s", v.ID); !errors.Is(err, drivebay.ErrUnavailable) {
			t.Errorf("snapshot: %v", err)
		}
		m.name.Store("")
		s.must(s.e.DeleteSnapshot(s.Context(), drivebay.SnapshotID("s")), s.e.DeleteVolume(s.Context(), v.ID))
	})
}
