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
