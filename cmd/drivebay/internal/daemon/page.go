package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/overview"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/page"
	"github.com/drivebay/drivebay/internal/ui"
)

// newPage returns the page of this machine.
func (d *daemon) newPage(ctx context.Context, started time.Time) *ui.Page {
	p := pageSource{daemon: d, started: started}
	return ui.New(ui.Options{Engine: d.engine, Version: p.version, State: p.state, Stopping: ctx.Done()})
}

// pageSource makes the state that the page shows.
type pageSource struct {
	*daemon
	started time.Time

	mu     sync.Mutex
	events []drivebay.Event // the newest
}

// version changes with every snapshot and every set of volumes. An event is published with a snapshot.
func (p *pageSource) version() uint64 {
	v := p.engine.Snapshot().Seq << 24
	if p.volumes != nil {
		v += p.volumes.Volumes().Seq
	}
	return v
}

// mostEvents bounds how many events are looked through at once: more than the log holds.
const mostEvents = 10_000

// newest returns the newest events.
func (p *pageSource) newest() []drivebay.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	after := uint64(0)
	if n := len(p.events); n > 0 {
		after = p.events[n-1].Seq
	}
	all := append(p.events[:len(p.events):len(p.events)], p.engine.Events(after, mostEvents)...)
	p.events = append([]drivebay.Event(nil), all[max(0, len(all)-page.MostEvents):]...)
	return p.events
}

func (p *pageSource) state() ui.State {
	s := p.engine.Snapshot()
	in := page.Input{
		Input:   overview.Input{NotReady: p.engine.Unready(), Config: p.report.Load()},
		Started: p.started, Version: p.opt.Version, Now: p.machine.Now(), Events: p.newest(),
	}
	if s.Seq > 0 {
		in.Drives = s
	} else {
		in.NotReady = append(in.NotReady, "the drives are being listed")
	}
	if p.volumes != nil {
		in.Volumes, in.Unwritten = p.volumes.Volumes(), p.volumes.Unwritten()
		in.Unread, _ = p.volumes.Unread()
	}
	return ui.State{Head: page.Of(in)}
}
