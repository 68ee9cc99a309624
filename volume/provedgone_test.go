package volume_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// unreadableFolder is a machine on which folders cannot be read while damaged is set.
type unreadableFolder struct {
	host.Worker
	damaged atomic.Bool
}

func (m *unreadableFolder) ReadFolder(ctx context.Context, p host.Place) (int, error) {
	if m.damaged.Load() {
		return 0, errors.New("structure needs cleaning")
	}
	return m.Worker.ReadFolder(ctx, p)
}

// TestReadErrorStays: that a folder of a volume on an idle hard disk could not be read stays a finding until one was read.
func TestReadErrorStays(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		m := &unreadableFolder{Worker: s.sim}
		s.machine = m
		s.start()
		v, _ := s.apart(drivebay.TypeHDD)
		s.must(s.stage(v), s.publish(v, "pod"))
		time.Sleep(3 * time.Minute)
		m.damaged.Store(true)
		d := s.drive(v)
		for range 40 { // a pod uses it
			disk, err := s.sim.OpenDisk(s.Context(), "/dev/"+d.Name, false)
			s.must(err)
			for i := range int64(4) {
				_, err = disk.ReadMedium(make([]byte, 4096), 4096*(i+1))
				s.must(err)
			}
			s.must(disk.Close())
			if time.Sleep(6 * time.Second); s.of(v).Condition.Abnormal() {
				break
			}
		}
		for range 30 { // the pod is idle
			if c := s.of(v).Condition; !c.Abnormal() {
				s.Fatalf("nothing was read: %s", c.Message())
			}
			time.Sleep(20 * time.Second)
		}
		m.damaged.Store(false)
		time.Sleep(3 * time.Minute)
		if c := s.of(v).Condition; c.Abnormal() {
			s.Errorf("a folder was read: %s", c.Message())
		}
	})
}

// slowStat is a machine whose kernel has counted more requests of a drive, and more time for them.
type slowStat struct {
	host.Worker
	name             string
	requests, millis atomic.Uint64
}

func (m *slowStat) ReadFile(name string) ([]byte, error) {
	b, err := m.Worker.ReadFile(name)
	if err == nil && name == "sys/class/block/"+m.name+"/stat" {
		f := strings.Fields(string(b))
		add := func(i int, n uint64) {
			v, _ := strconv.ParseUint(f[i], 10, 64)
			f[i] = strconv.FormatUint(v+n, 10)
		}
		add(0, m.requests.Load())
		add(3, m.millis.Load())
		return []byte(strings.Join(f, " ") + "\n"), nil
	}
	return b, err
}

// TestLatencyEnds: that requests take long is a finding as long as they do, also when the record of the volume is written. It ends once they
// are not measured any more.
func TestLatencyEnds(t *testing.T) {
	t.Parallel()
	onStand(t, func(s *stand) {
		v, _ := s.apart(drivebay.TypeHDD)
		s.must(s.stage(v), s.publish(v, "pod"))
		time.Sleep(3 * time.Minute)
		m := &slowStat{Worker: s.sim, name: s.drive(v).Name}
		s.machine = m
		s.start()
		time.Sleep(2 * time.Minute)
		for n := range 100 {
			m.requests.Add(10)
			m.millis.Add(10 * 5000)
			time.Sleep(6 * time.Second)
			if c := s.of(v).Condition; n > 20 && !strings.Contains(reasons(c), "HighLatency") {
				s.Fatalf("slow for %d s: %s", 6*n, c.Message())
			}
		}
		s.must(s.unpublish(v, "pod"), s.unstage(v))
		time.Sleep(10 * time.Minute)
		if c := s.of(v).Condition; c.Abnormal() {
			s.Errorf("not in use: %s", c.Message())
		}
	})
}
