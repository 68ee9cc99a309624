package volume_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// reports records when LVM was asked for a report of the groups.
type reports struct {
	lvm.Runner
	mu sync.Mutex
	at []time.Time
}

func (r *reports) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if slices.ContainsFunc(argv, func(arg string) bool { return strings.HasSuffix(arg, "fullreport") }) {
		r.mu.Lock()
		r.at = append(r.at, time.Now())
		r.mu.Unlock()
	}
	return r.Runner.Run(ctx, argv...)
}

// longest returns the longest time between two reports since a moment, until now.
func (r *reports) longest(since time.Time) (most time.Duration, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range append(slices.Clone(r.at), time.Now()) {
		if at.After(since) {
			most, since, n = max(most, at.Sub(since)), at, n+1
		}
	}
	return most, n
}

// laggard is a machine whose list of block devices takes its time while it is busy, and cannot be read of one.
type laggard struct {
	host.Worker
	busy     atomic.Bool
	unlisted atomic.Pointer[string]
}

func (m *laggard) ReadDir(name string) ([]string, error) {
	if m.busy.Load() && strings.HasPrefix(name, "sys/block/") {
		time.Sleep(3 * time.Second)
	}
	if bad := m.unlisted.Load(); bad != nil && name == "sys/block/"+*bad {
		return nil, errors.New("input/output error")
	}
	return m.Worker.ReadDir(name)
}

// TestReportIsRenewed: no event shows how full a pool is. The report that does is not much older than half a minute,
// with listings that take longer and shorter, or that come because a drive has changed.
func TestReportIsRenewed(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(s *stand, m *laggard, n int, others []drivebay.Drive){
		"nothing happens":              func(*stand, *laggard, int, []drivebay.Drive) {},
		"the machine is slow at times": func(_ *stand, m *laggard, n int, _ []drivebay.Drive) { m.busy.Store(n%2 == 0) },
		"a drive comes and goes": func(s *stand, _ *laggard, n int, others []drivebay.Drive) {
			s.must(s.sim.Inject(hostsim.Fault{Drive: others[0].Serial, Fault: []string{"vanish", "return"}[n%2]}))
		},
		"a drive comes and goes, and another cannot be listed": func(s *stand, m *laggard, n int, others []drivebay.Drive) {
			m.unlisted.Store(&others[1].Name)
			s.must(s.sim.Inject(hostsim.Fault{Drive: others[0].Serial, Fault: []string{"vanish", "return"}[n%2]}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onMachine(t, nvmeDrives(3), volume.Options{}, func(s *stand) {
				m, r := &laggard{Worker: s.sim}, &reports{Runner: s.sim}
				s.machine, s.lvm = m, r
				s.start()
				its := s.make("v", rawVolume(drivebay.BackingThin)).Location.Drives[0]
				others := slices.DeleteFunc(slices.Clone(s.mgr.Snapshot().Drives), func(d drivebay.Drive) bool { return d.ID == its })
				time.Sleep(time.Minute)
				began := time.Now()
				for n := range 40 {
					disturb(s, m, n, others)
					time.Sleep(29 * time.Second)
				}
				m.busy.Store(false)
				m.unlisted.Store(nil)
				if most, n := r.longest(began); most > 40*time.Second {
					s.Errorf("%v passed between two reports", most)
				} else if n > 50 {
					s.Errorf("%d reports in 20 minutes", n)
				}
			})
		})
	}
}
