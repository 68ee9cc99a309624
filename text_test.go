package drivebay

import (
	"testing"
	"time"
)

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 s", -1: "0 s", 40 * time.Millisecond: "40 ms", 90 * time.Second: "90 s", 3 * time.Minute: "3 min", 50 * time.Hour: "2 d"} {
		if got := DurationText(d); got != want {
			t.Errorf("DurationText(%v) = %q, want %q", d, got, want)
		}
	}
}
