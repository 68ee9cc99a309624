package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// SelfTestPlan is the schedule of self-tests. A zero interval disables that kind.
type SelfTestPlan struct {
	Enabled bool
	Short   time.Duration // between two short tests of a drive
	Long    time.Duration
	// From and To are the daily window, as durations since local midnight; it may pass
	// midnight. Equal: the whole day.
	From, To time.Duration
	// AtOnce is how many drives of the machine may test at the same time.
	AtOnce int
}

// DefaultSelfTestPlan returns a short test weekly and a long test monthly, at night, one drive at a
// time. The plan is not enabled: a long test slows down a busy drive.
func DefaultSelfTestPlan() SelfTestPlan {
	const day = 24 * time.Hour
	return SelfTestPlan{Short: 7 * day, Long: 30 * day, From: 1 * time.Hour, To: 5 * time.Hour, AtOnce: 1}
}

// Open reports whether the time is in the window.
func (p SelfTestPlan) Open(now time.Time) bool {
	if p.From == p.To {
		return true
	}
	h, m, s := now.Clock()
	at := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
	if p.From < p.To {
		return p.From <= at && at < p.To
	}
	return p.From <= at || at < p.To
}

// Candidate is the state of a drive that the plan uses.
type Candidate struct {
	ID        string
	Running   bool
	Able      bool // present, awake, its protocol has self-tests
	LastShort time.Time
	LastLong  time.Time
}

// start is a self-test to be started.
type start struct {
	ID   string
	Kind host.SelfTestKind
}

// Due returns which drives start a test now: the longest overdue first, at most AtOnce
// running. A long test that is due replaces the short one.
func (p SelfTestPlan) Due(all []Candidate, now time.Time) []start {
	if !p.Enabled || !p.Open(now) {
		return nil
	}
	free := p.AtOnce
	type wish struct {
		start
		last time.Time
	}
	var wishes []wish
	for _, c := range all {
		if c.Running {
			free--
		}
		if c.Running || !c.Able {
			continue
		}
		c.LastShort, c.LastLong = happened(c.LastShort, now), happened(c.LastLong, now)
		switch {
		case p.Long > 0 && now.Sub(c.LastLong) >= p.Long:
			wishes = append(wishes, wish{start{c.ID, host.SelfTestLong}, c.LastLong})
		case p.Short > 0 && now.Sub(Later(c.LastShort, c.LastLong)) >= p.Short:
			wishes = append(wishes, wish{start{c.ID, host.SelfTestShort}, Later(c.LastShort, c.LastLong)})
		}
	}
	slices.SortFunc(wishes, func(a, b wish) int {
		return cmp.Or(a.last.Compare(b.last), strings.Compare(a.ID, b.ID))
	})
	var out []start
	for _, w := range wishes[:min(max(free, 0), len(wishes))] {
		out = append(out, w.start)
	}
	return out
}

// happened returns when a test was started; zero, which is not known, for a time of a clock that was ahead.
func happened(at, now time.Time) time.Time {
	if at.After(now) {
		return time.Time{}
	}
	return at
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
