package health

import (
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// look is one input with the questions that rules ask of it.
type look struct {
	Input
	th       Thresholds
	ev       *drivebay.Evidence // never nil
	k        *drivebay.Kernel   // never nil
	kind     drivebay.Type
	protocol drivebay.Protocol
	now      time.Time
	counters map[string]uint64
}

func newLook(in Input, th Thresholds) *look {
	l := &look{Input: in, th: th, ev: in.Evidence, k: in.Kernel, kind: in.Type, protocol: in.Protocol, now: in.Now}
	if l.ev == nil {
		l.ev = &drivebay.Evidence{}
	}
	if l.k == nil {
		l.k = &drivebay.Kernel{}
	}
	if l.protocol == drivebay.ProtocolNone {
		l.protocol = l.ev.Protocol
	}
	if l.kind == drivebay.TypeUnknown {
		l.kind = l.ev.Type
	}
	// A drive that hides its kind is judged as the more fragile one.
	if l.kind == drivebay.TypeUnknown && l.protocol == drivebay.ProtocolATA {
		l.kind = drivebay.TypeHDD
	}
	if l.now.IsZero() {
		l.now = l.ev.At
	}
	l.counters = counters(l.ev, l.k, l.kind)
	return l
}

// past is what the history says of one counter.
type past struct {
	grown   uint64 // sum of the steps up; a counter that starts again takes nothing back
	base    uint64 // where it stood when the window began
	covered bool   // the history reaches back as far as the window
}

// since looks at a counter over a window. A sample from before the window counts
// as its beginning only if it is not older than the window is long: growth of
// unknown date is not growth of this week.
func (l *look) since(key string, window time.Duration) past {
	current, ok := l.counters[key]
	if !ok {
		return past{}
	}
	start := l.now.Add(-window)
	var p past
	var last uint64
	seen := false
	for _, s := range l.History {
		v, ok := s.Counters[key]
		if !ok || s.At.After(l.now) || s.At.Before(start.Add(-window)) {
			continue
		}
		switch {
		case !s.At.After(start):
			p.base, p.covered = v, true
		case !seen:
			p.base = v
		case v > last:
			p.grown += v - last
		}
		seen, last = true, v
	}
	if seen && current > last {
		p.grown += current - last
	}
	return p
}

// before is what a counter was in the newest earlier look that had it.
func (l *look) before(key string) uint64 {
	at := l.ev.At
	if at.IsZero() {
		at = l.now
	}
	for i := len(l.History) - 1; i >= 0; i-- {
		if v, ok := l.History[i].Counters[key]; ok && l.History[i].At.Before(at) {
			return v
		}
	}
	return 0
}

const (
	hour = time.Hour
	day  = 24 * time.Hour
	week = 7 * day
)

// plus is the growth in words, or nothing.
func plus(p past, window time.Duration) string {
	if p.grown == 0 {
		return ""
	}
	return fmt.Sprintf(", +%d in %s", p.grown, span(window))
}

// span writes a duration as people say it.
func span(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{day, "days"}, {hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d >= u.unit && d%u.unit == 0 && (u.unit != day || d > day) {
			return fmt.Sprintf("%d %s", d/u.unit, u.name)
		}
	}
	return d.Round(time.Millisecond).String()
}

// grade is the usual rule: a number with two limits, both inclusive.
func grade(n, suspect, bad uint64) (drivebay.Health, bool) {
	switch {
	case n >= bad:
		return drivebay.HealthBad, true
	case n >= suspect:
		return drivebay.HealthSuspect, true
	}
	return drivebay.HealthGood, false
}

func suspect(level uint64, format string, args ...any) *hit {
	return &hit{severity: drivebay.HealthSuspect, level: level, text: fmt.Sprintf(format, args...)}
}

func bad(level uint64, format string, args ...any) *hit {
	return &hit{severity: drivebay.HealthBad, level: level, text: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) *hit {
	return &hit{severity: drivebay.HealthUnknown, text: fmt.Sprintf(format, args...)}
}

// list joins what several things of one kind have to say.
func list(parts []string) string { return strings.Join(parts, "; ") }
