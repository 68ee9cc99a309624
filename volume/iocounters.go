package volume

import (
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// probeResult holds what our probes of a volume's filesystem found.
type probeResult struct {
	measured  bool
	usage     host.FSUsage
	readError string // of the last probe
	probing   bool
	probedAt  time.Time // when the last one began
	nextProbe time.Time
	errors    uint64    // of its drives, at that probe
	asking    time.Time // since when a probe has had no answer
	shutdown  bool
	gaveUp    bool // an ext4 that accepts no writes any more, whatever the mount table shows
}

// stuckAfter is how long a probe may have no answer before that counts.
const stuckAfter = 3 * time.Second

// waiting returns how long a probe has had no answer.
func (m probeResult) waiting(now time.Time) time.Duration {
	if m.asking.IsZero() || now.Sub(m.asking) < stuckAfter {
		return 0
	}
	return now.Sub(m.asking)
}

// ioCounters holds what was measured of one volume.
type ioCounters struct {
	mu sync.Mutex
	is probeResult
}

func (g *ioCounters) read() probeResult {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.is
}

func (g *ioCounters) write(f func(*probeResult)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.is)
}

// forget drops the results of a filesystem that was just mounted or unmounted.
func (g *ioCounters) forget() {
	g.write(func(m *probeResult) {
		m.measured, m.readError, m.shutdown, m.gaveUp, m.probedAt = false, "", false, false, time.Time{}
	})
}

// ioCountersByVolume holds the counters of all volumes.
type ioCountersByVolume struct {
	mu sync.Mutex
	by map[string]*ioCounters
}

func (s *ioCountersByVolume) of(id string) *ioCounters {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]*ioCounters{}
	}
	g := s.by[id]
	if g == nil {
		g = &ioCounters{}
		s.by[id] = g
	}
	return g
}

// keep drops the counters of volumes that no longer exist.
func (s *ioCountersByVolume) keep(there func(id string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.by {
		if !there(id) {
			delete(s.by, id)
		}
	}
}
