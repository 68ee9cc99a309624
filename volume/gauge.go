package volume

import (
	"sync"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// measured is what our own touches of a volume's filesystem have brought.
type measured struct {
	measured  bool
	usage     host.FSUsage
	readError string // of the last probe
	probing   bool
	probedAt  time.Time // when the last one began
	nextProbe time.Time
	errors    uint64    // of its drives, then
	asking    time.Time // since when the filesystem has left us waiting
	shutdown  bool
	gaveUp    bool // an ext4 that takes no writes any more, whatever the mount table says
}

// stuckAfter is when a probe that has no answer begins to say something.
const stuckAfter = 3 * time.Second

// waiting is how long a probe has had no answer.
func (m measured) waiting(now time.Time) time.Duration {
	if m.asking.IsZero() || now.Sub(m.asking) < stuckAfter {
		return 0
	}
	return now.Sub(m.asking)
}

// gauge is what was measured of one volume.
type gauge struct {
	mu sync.Mutex
	is measured
}

func (g *gauge) read() measured {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.is
}

func (g *gauge) write(f func(*measured)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.is)
}

// forget is for a filesystem that was just mounted, or is mounted no more.
func (g *gauge) forget() {
	g.write(func(m *measured) {
		m.measured, m.readError, m.shutdown, m.gaveUp, m.probedAt = false, "", false, false, time.Time{}
	})
}

// gauges are those of all volumes.
type gauges struct {
	mu sync.Mutex
	by map[string]*gauge
}

func (s *gauges) of(id string) *gauge {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]*gauge{}
	}
	g := s.by[id]
	if g == nil {
		g = &gauge{}
		s.by[id] = g
	}
	return g
}

// keep forgets the volumes that are not any more.
func (s *gauges) keep(there func(id string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.by {
		if !there(id) {
			delete(s.by, id)
		}
	}
}
