package moves

import (
	"time"

	"github.com/drivebay/drivebay"
)

// Pace measures how far a group move is, and its speed since the engine has been watching.
type Pace struct {
	began       time.Time
	first, done uint64 // bytes
	total       uint64
	at          time.Time
}

// paceEvery is how often the shown progress of a group move changes: it is kept with the drive.
const paceEvery = 10 * time.Second

// Goes records the current progress.
func (p *Pace) Goes(done, total uint64, now time.Time) {
	if total != p.total || done < p.done {
		*p = Pace{began: now, first: done, total: total}
	}
	if now.Sub(p.at) >= paceEvery {
		p.done, p.at = done, now
	}
}

// Progress returns what is shown; nil before anything is known.
func (p *Pace) Progress() *drivebay.Progress {
	if p.total == 0 {
		return nil
	}
	out := &drivebay.Progress{Done: p.done, Total: p.total}
	if gone := p.at.Sub(p.began); gone > 0 && p.done > p.first {
		left := float64(p.total-p.done) / float64(p.done-p.first) * float64(gone)
		out.End = p.at.Add(time.Duration(left)).Truncate(time.Second)
	}
	return out
}

// With adds another group move to p.
func (p *Pace) With(o Pace) {
	if o.total == 0 {
		return
	}
	if p.total == 0 || o.began.Before(p.began) {
		p.began = o.began
	}
	p.first, p.done, p.total = p.first+o.first, p.done+o.done, p.total+o.total
	if o.at.After(p.at) {
		p.at = o.at
	}
}
