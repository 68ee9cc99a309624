package backoff

import (
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	b := Backoff{10 * time.Second, 5 * time.Minute}
	for failures, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: 10 * time.Second, 2: 20 * time.Second, 5: 160 * time.Second, 6: 5 * time.Minute, 7: 5 * time.Minute, 1 << 40: 5 * time.Minute,
	} {
		if got := b.Wait(failures); got != want {
			t.Errorf("after %d failures: %v, not %v", failures, got, want)
		}
	}
	if got := (Backoff{time.Hour, time.Minute}).Wait(1); got != time.Minute {
		t.Errorf("at most a minute: %v", got)
	}
}
