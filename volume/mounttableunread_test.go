package volume_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// noMountTable is a machine whose mount table cannot be read for a while.
type noMountTable struct {
	host.Worker
	off atomic.Bool
}

func (m *noMountTable) Mounts(ctx context.Context) ([]host.Mount, error) {
	if m.off.Load() {
		return nil, errors.New("too many open files")
	}
	return m.Worker.Mounts(ctx)
}

// TestMountTableUnread: while the mount table cannot be read, what it showed last says nothing: a volume that
// should be mounted is not OPERATIVE without a finding, and the set says why. That ends with the next reading.
func TestMountTableUnread(t *testing.T) {
	onStand(t, func(s *stand) {
		m := &noMountTable{Worker: s.sim}
		s.machine = m
		s.start()
		v, idle := s.make("v", drivebay.VolumeRequest{}), s.make("idle", drivebay.VolumeRequest{})
		s.must(s.stage(v), s.publish(v, "pod"))
		time.Sleep(time.Minute)
		m.off.Store(true)
		time.Sleep(time.Minute)
		if is := s.of(v); is.Condition.Abnormal() {
			s.Errorf("a minute without the table: %s", is.Condition.Message())
		}
		s.must(s.sim.Unmount(s.Context(), place(target(v, "pod"))))
		time.Sleep(time.Hour)
		is, set := s.of(v), s.e.Volumes()
		if is.OperationalStatus != drivebay.OperationalUnknown || reasons(is.Condition) != "StatusUnknown" {
			s.Errorf("an hour without the table: %v, %s", is.OperationalStatus, is.Condition.Message())
		}
		if len(set.Problems) != 1 || !strings.Contains(set.Problems[0], "mount table") {
			s.Errorf("problems: %q", set.Problems)
		}
		if is := s.of(idle); is.OperationalStatus != drivebay.Operative || is.Condition.Abnormal() {
			s.Errorf("a volume that is not mounted: %v, %s", is.OperationalStatus, is.Condition.Message())
		}
		m.off.Store(false)
		time.Sleep(5 * time.Second)
		if is, set := s.of(v), s.e.Volumes(); !unmountedAt(is.Condition, target(v, "pod")) || len(set.Problems) > 0 {
			s.Errorf("read again: %s, %q", is.Condition.Message(), set.Problems)
		}
	})
}
