package lab

import (
	"testing"
	"time"
)

func TestLate(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for end, want := range map[string]bool{"": false, "soon": false, "1700000001": false, "1700000000": true, "1": true} {
		if got := late(end, now); got != want {
			t.Errorf("until %q: %v", end, got)
		}
	}
}
