package moves

import (
	"sync"
	"time"

	"github.com/drivebay/drivebay"
)

// paces holds the pace of the long work on volumes that callers see, by the id of the volume.
type paces struct {
	mu sync.Mutex
	by map[string]*Pace
}

// goes records the progress of a work; one that is at its end is not under way.
func (p *paces) goes(id string, done, total uint64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done >= total {
		delete(p.by, id)
		return
	}
	if p.by == nil {
		p.by = map[string]*Pace{}
	}
	if p.by[id] == nil {
		p.by[id] = new(Pace)
	}
	p.by[id].Goes(done, total, now)
}

func (p *paces) progress(id string) drivebay.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pace := p.by[id]; pace != nil {
		return valueOf(pace)
	}
	return drivebay.Progress{}
}

// Overwrites records how much of a range of a volume is overwritten.
func (e *Tracker) Overwrites(id string, done, total uint64) {
	e.overwrites.goes(id, done, total, e.Machine.Now())
}

// Progress returns how far the copy or the overwriting of a volume is; the zero value if neither is under
// way.
func (e *Tracker) Progress(id string) drivebay.Progress {
	if m := e.Moves.Of(id); m != nil && m.Total.Load() > 0 {
		m.shownMu.Lock()
		defer m.shownMu.Unlock()
		m.shown.Goes(m.Copied.Load()/2, m.Total.Load(), e.Machine.Now()) // each byte is written, and read back
		return valueOf(&m.shown)
	}
	return e.overwrites.progress(id)
}

func valueOf(p *Pace) drivebay.Progress {
	if out := p.Progress(); out != nil {
		return *out
	}
	return drivebay.Progress{}
}
