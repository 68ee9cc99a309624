package poll

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
)

// TestReread: a drive that cannot be read is asked again within seconds, and one that
// sleeps is left alone.
func TestReread(t *testing.T) {
	tr := &state.Tracked{}
	failed := state.Reading{Of: tr, ReadContent: true, Result: evidence.Result{Evidence: &drivebay.Evidence{}, Content: &drivebay.Content{}}}
	var sum time.Duration
	for range 5 {
		tr.NoteReading(failed)
		if wait := rereadAfter(tr.Unread); wait > 10*time.Second {
			t.Errorf("after %d failures: %v", tr.Unread, wait)
		} else {
			sum += wait
		}
	}
	if !tr.Fresh || sum > time.Minute {
		t.Errorf("read five times in %v, to be read: %v", sum, tr.Fresh)
	}
	tr.Unread = 1000
	if wait := rereadAfter(tr.Unread); wait > time.Minute {
		t.Errorf("a drive that stays unreadable is read again after %v", wait)
	}
	tr.NoteReading(state.Reading{Of: tr, ReadContent: true, Result: evidence.Result{Evidence: &drivebay.Evidence{}, Content: &drivebay.Content{Kind: drivebay.ContentBlank}}})
	if tr.Unread != 0 {
		t.Errorf("read, and %d failures are counted", tr.Unread)
	}
	tr.NoteReading(state.Reading{Of: tr, ReadContent: true, Result: evidence.Result{Evidence: &drivebay.Evidence{Standby: true}}})
	if tr.Unread != 0 || !tr.Fresh {
		t.Errorf("a drive that sleeps: %d failures, to be read: %v", tr.Unread, tr.Fresh)
	}
}
