package watch

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestScrubDueAfterSmallerBurst: a burst of errors is a reason for an early check even if there were more
// errors on an earlier day.
func TestScrubDueAfterSmallerBurst(t *testing.T) {
	at := time.Unix(1<<30, 0)
	r := &drivebay.VolumeRecord{Volume: drivebay.Volume{ID: "v"}, Scrub: &drivebay.Scrub{At: at}}
	s := scrubs{Begun: map[string]time.Time{"v": at}, Cause: map[string]Suspicion{"v": {io: 100}}}
	for _, c := range []struct {
		after time.Duration
		io    uint64
		want  bool
	}{{2 * time.Hour, 100, false}, {20 * time.Hour, 100, false}, {25 * time.Hour, 0, false}, {30 * time.Hour, 50, true}} {
		if got := s.due(r, Suspicion{io: c.io}, at.Add(c.after)); got != c.want {
			t.Errorf("%d errors after %v: due is %v", c.io, c.after, got)
		}
	}
}

// TestScrubDueAfterAClockAhead: a check, or a creation, of a clock that was years ahead does not end the
// checks until the clock has passed that time.
func TestScrubDueAfterAClockAhead(t *testing.T) {
	now := time.Unix(1<<30, 0)
	const ahead = 10 * 365 * 24 * time.Hour
	for name, r := range map[string]*drivebay.VolumeRecord{
		"checked then": {Volume: drivebay.Volume{ID: "v", Created: now.Add(-ahead)}, Scrub: &drivebay.Scrub{At: now.Add(ahead)}},
		"created then": {Volume: drivebay.Volume{ID: "v", Created: now.Add(ahead)}},
	} {
		if s := (scrubs{}); !s.due(r, Suspicion{}, now) {
			t.Errorf("%s: no check is due", name)
		}
	}
}
