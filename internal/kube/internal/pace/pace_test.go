package pace

import (
	"testing"
	"time"
)

// TestFlapping: a state that changes every second is written twice a minute; what a person waits for is written at
// once, and counts as a write.
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
			p.Wrote(start.Add(at))
			writes = append(writes, at)
		}
	}
	for i, at := range writes {
		if i >= Most && at-writes[i-Most] < Window && at != 30*time.Second {
			t.Errorf("write at %v is the third within a minute: %v", at, writes)
		}
	}
	if len(writes) < 9 || len(writes) > 11 {
		t.Errorf("%d writes in 5 minutes: %v", len(writes), writes)
	}
}

// TestMinor: a text with a number is written once an hour, and not at all right after a write.
func TestMinor(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p Pace
	if wait := p.Wait(Minor, now); wait != 0 {
		t.Errorf("the first write waits %v", wait)
	}
	p.Wrote(now)
	if wait := p.Wait(Minor, now.Add(time.Minute)); wait != Slow-time.Minute {
		t.Errorf("a minute after a write: %v", wait)
	}
	if wait := p.Wait(Major, now.Add(time.Second)); wait != 0 {
		t.Errorf("the second write within a minute waits %v", wait)
	}
}
