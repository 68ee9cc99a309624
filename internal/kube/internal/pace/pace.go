// Package pace limits how often an object is written.
package pace

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Most is how many writes of an object are made within Window, not counting those that must not wait: what a person
// has requested is no flapping, and its progress is to be seen.
const (
	Most   = 2
	Window = time.Minute
	// Slow is the time between two writes of which each changes only texts with numbers in them.
	Slow = time.Hour
	// Behind is how long an object is not written before the Lease of its node says that it is old.
	Behind = 30 * time.Second
)

// Urgency says how long a change of an object may wait.
type Urgency uint8

const (
	None  Urgency = iota // nothing has changed
	Minor                // only a text with numbers has changed
	Major                // a state has changed
	Now                  // a person waits for the answer, or the object was never written
)

// Status says how the statuses of a kind of objects are compared.
type Status[S any] struct {
	// Answer is what answers a request of the spec and shows its progress, and what the API server checks requests against;
	// nil: the status was never written. None of it flaps.
	Answer func(*S) any
	// WithoutNumbers returns a copy without the texts and numbers that change while nothing happens.
	WithoutNumbers func(*S) *S
}

// Urgency returns how soon a status has to be written in place of another.
func (c Status[S]) Urgency(was, want *S) Urgency {
	equal := equality.Semantic.DeepEqual
	answered := c.Answer(was)
	switch {
	case answered == nil:
		return Now
	case equal(was, want):
		return None
	case !equal(answered, c.Answer(want)):
		return Now
	case equal(c.WithoutNumbers(was), c.WithoutNumbers(want)):
		return Minor
	}
	return Major
}

// Pace remembers the last writes of one object that could have waited.
type Pace struct{ at [Most]time.Time }

// Wait returns how long a change has to wait.
func (p *Pace) Wait(u Urgency, now time.Time) time.Duration {
	due := now
	switch u {
	case Minor:
		due = p.at[Most-1].Add(Slow)
	case Major:
		due = p.at[0].Add(Window)
	}
	return max(due.Sub(now), 0)
}

// Wrote records a write.
func (p *Pace) Wrote(u Urgency, now time.Time) {
	if u == Now {
		return
	}
	copy(p.at[:], p.at[1:])
	p.at[Most-1] = now
}

// Left returns how long the last write still counts: a Pace may be forgotten after that.
func (p *Pace) Left(now time.Time) time.Duration {
	return max(p.at[Most-1].Add(Window).Sub(now), 0)
}
