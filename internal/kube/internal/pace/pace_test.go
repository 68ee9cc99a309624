package pace

import (
	"slices"
	"testing"
	"time"
)

// TestFlapping: a state that changes every second is written twice a minute; what a person waits for is written at
// once and delays no other write.
func TestFlapping(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p Pace
	var writes []time.Duration
	for at := time.Duration(0); at < 5*time.Minute; at += time.Second {
		urgency := Major
		if at == 30*time.Second {
			urgency = Now
		}
		if p.Wait(urgency, start.Add(at)) == 0 {
			p.Wrote(urgency, start.Add(at))
			writes = append(writes, at)
		}
	}
	want := []time.Duration{0, 1, 30, 60, 61, 120, 121, 180, 181, 240, 241}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(writes, want) {
		t.Errorf("writes at %v, not at %v", writes, want)
	}
}

// TestMinor: a text with a number is written once an hour, and not at all right after a write.
func TestMinor(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p Pace
	if wait := p.Wait(Minor, now); wait != 0 {
		t.Errorf("the first write waits %v", wait)
	}
	p.Wrote(Now, now.Add(-time.Second))
	if wait := p.Wait(Minor, now); wait != 0 {
		t.Errorf("after the answer to a request: %v", wait)
	}
	p.Wrote(Minor, now)
	if wait := p.Wait(Minor, now.Add(time.Minute)); wait != Slow-time.Minute {
		t.Errorf("a minute after a write: %v", wait)
	}
	if wait := p.Wait(Major, now.Add(time.Second)); wait != 0 {
		t.Errorf("the second write within a minute waits %v", wait)
	}
}
