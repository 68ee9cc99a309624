package backoff

import "time"

// Backoff is the wait between two attempts: First after one failure, twice as long after each failure that
// follows in a row, and Most at last.
type Backoff struct{ First, Most time.Duration }

// Wait returns the wait after that many failures in a row.
func (b Backoff) Wait(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	return min(b.First<<min(failures-1, 16), b.Most)
}
