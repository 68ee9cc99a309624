package mounts

import (
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// ProbeResult holds what our probes of a volume's filesystem found.
type ProbeResult struct {
	Measured  bool
	Usage     host.FSUsage
	ReadError string // of the last probe
	Probing   bool
	ProbedAt  time.Time // when the last one began
	NextProbe time.Time
	Errors    uint64    // of its drives, at that probe
	Asking    time.Time // since when a probe has had no answer
	Shutdown  bool
	FSErrors  uint64 // of an XFS or btrfs, in the kernel's log
	// LostWrites is how often the kernel's log said, in the day up to LostAt, that the filesystem has lost a write.
	LostWrites uint64
	LostAt     time.Time
	GaveUp     bool // an ext4 that accepts no writes any more, whatever the mount table shows
	// Overwritten is what its piece of the drives has in place of its filesystem or header; read while it was in no use.
	Overwritten string
	NextProof   time.Time // of that
}

// stuckAfter is how long a probe may have no answer before that counts.
const stuckAfter = 3 * time.Second

// Waiting returns how long a probe has had no answer.
func (m ProbeResult) Waiting(now time.Time) time.Duration {
	if m.Asking.IsZero() || now.Sub(m.Asking) < stuckAfter {
		return 0
	}
	return now.Sub(m.Asking)
}

// IOCounters holds what was measured of one volume.
type IOCounters struct {
	mu sync.Mutex
	is ProbeResult
}

// Read returns the counters.
func (g *IOCounters) Read() ProbeResult {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.is
}

// Write changes the counters.
func (g *IOCounters) Write(f func(*ProbeResult)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.is)
}

// forget drops the results of a filesystem that was just mounted or unmounted. One that has given up, as when its drive was pulled, has
// refused all writes since: that it has lost some says no more.
func (g *IOCounters) forget() {
	g.Write(func(m *ProbeResult) {
		if m.Shutdown || m.GaveUp {
			m.LostWrites = 0
		}
		m.Measured, m.ReadError, m.Shutdown, m.GaveUp, m.Overwritten, m.ProbedAt = false, "", false, false, "", time.Time{}
	})
}

// ioCountersByVolume holds the counters of all volumes.
type ioCountersByVolume struct {
	Mu sync.RWMutex
	By map[string]*IOCounters
}

// Of returns the counters of a volume. A call that finds them waits for no other.
func (s *ioCountersByVolume) Of(id string) *IOCounters {
	s.Mu.RLock()
	g := s.By[id]
	s.Mu.RUnlock()
	if g != nil {
		return g
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.By == nil {
		s.By = map[string]*IOCounters{}
	}
	if g = s.By[id]; g == nil {
		g = &IOCounters{}
		s.By[id] = g
	}
	return g
}

// Keep drops the counters of volumes that no longer exist.
func (s *ioCountersByVolume) Keep(there func(id string) bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for id := range s.By {
		if !there(id) {
			delete(s.By, id)
		}
	}
}
