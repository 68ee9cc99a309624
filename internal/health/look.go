package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
)

// look is one input prepared for the rules, with the methods that they share.
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
	// An ATA drive that does not report its type is judged as the more fragile one, a hard disk.
	if l.kind == drivebay.TypeUnknown && l.protocol == drivebay.ProtocolATA {
		l.kind = drivebay.TypeHDD
	}
	if l.now.IsZero() {
		l.now = l.ev.At
	}
	l.counters = counters(l.ev, l.k, l.kind)
	return l
}

// past is the history of one counter over a window.
type past struct {
	grown   uint64 // sum of all increases; a counter that was reset does not reduce it
	base    uint64 // value at the start of the window
	covered bool   // the history reaches back as far as the window
}

// since returns the history of a counter over a window. A sample from before the window is the
// start value only if it is at most two windows old: growth of unknown date does not count as
// growth of this window.
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

// before returns the value of a counter in the newest earlier sample that has it, or 0.
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

// hasCounted reports whether the history has one of some counters.
func (l *look) hasCounted(keys ...string) bool {
	return slices.ContainsFunc(l.History, func(s drivebay.Sample) bool {
		_, ok := firstKey(s.Counters, keys)
		return ok
	})
}

const (
	hour = time.Hour
	day  = 24 * time.Hour
	week = 7 * day
)

// plus returns the growth as text, or "" without growth.
func plus(p past, window time.Duration) string {
	if p.grown == 0 {
		return ""
	}
	return fmt.Sprintf(", +%d in %s", p.grown, span(window))
}

// span formats a duration with one unit, such as "7 days" or "24 h".
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

// grade compares a number with two limits, both inclusive, and reports whether it reaches one.
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

// list joins the texts of several findings of one kind.
func list(parts []string) string { return strings.Join(parts, "; ") }

// plural returns a number and its noun, such as "1 sector" or "3 sectors".
func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
