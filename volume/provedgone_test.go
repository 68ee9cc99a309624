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

// slowStat is a machine whose kernel has counted more requests of a drive, and more time for them, and has been busy with them.
type slowStat struct {
	host.Worker
	name                   string
	requests, millis, busy atomic.Uint64
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
		add(9, m.busy.Load())
		return []byte(strings.Join(f, " ") + "\n"), nil
	}
	return b, err
}

// TestLatencyEnds: that requests take long is a finding as long as they do: of a filesystem and of a block device, with many requests at once
// and with one after the other, and also when the record of the volume is written. It ends once they are not measured any more.
func TestLatencyEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		block bool
		each  uint64 // requests in 6 s, of 5 s each
	}{"a filesystem, many requests": {false, 10}, "a filesystem, one after the other": {false, 1}, "a block device": {true, 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStand(t, func(s *stand) {
				r := requests()["ext4 on a partition"]
				if c.block {
					r = requests()["a partition"]
				}
				v := s.make("v", r)
				s.must(s.stage(v), s.publish(v, "pod"))
				time.Sleep(3 * time.Minute)
				m := &slowStat{Worker: s.sim, name: s.drive(v).Name}
				s.machine = m
				s.start()
				time.Sleep(2 * time.Minute)
				for n := range 100 {
					m.requests.Add(c.each)
					m.millis.Add(c.each * 5000)
					m.busy.Add(5000)
					time.Sleep(6 * time.Second)
					if c := s.of(v).Condition; n > 20 && !strings.Contains(reasons(c), "HighLatency") {
						s.Fatalf("slow for %d s: %s", 6*n, c.Message())
					}
				}
				m.requests.Add(1) // a drive spins up
				m.millis.Add(12000)
				m.busy.Add(12000)
				time.Sleep(3 * time.Minute)
				if c := s.of(v).Condition; c.Abnormal() {
					s.Errorf("one request took long: %s", c.Message())
				}
				m.requests.Add(100)
				m.millis.Add(100 * 5000)
				time.Sleep(time.Minute)
				s.must(s.unpublish(v, "pod"), s.unstage(v))
				time.Sleep(10 * time.Minute)
				if c := s.of(v).Condition; c.Abnormal() {
					s.Errorf("not in use: %s", c.Message())
				}
			})
		})
	}
}
