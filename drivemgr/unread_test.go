package drivemgr

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestReread: a drive that cannot be read is asked again within seconds, and one that
// sleeps is left alone.
func TestReread(t *testing.T) {
	tr := &tracked{}
	failed := lookResult{of: tr, readContent: true, looked: looked{evidence: &drivebay.Evidence{}, content: &drivebay.Content{}}}
	var sum time.Duration
	for range 5 {
		tr.noteReading(failed)
		if wait := rereadAfter(tr.unread); wait > 10*time.Second {
			t.Errorf("after %d failures: %v", tr.unread, wait)
		} else {
			sum += wait
		}
	}
	if !tr.fresh || sum > time.Minute {
		t.Errorf("read five times in %v, to be read: %v", sum, tr.fresh)
	}
	tr.unread = 1000
	if wait := rereadAfter(tr.unread); wait > time.Minute {
		t.Errorf("a drive that stays unreadable is read again after %v", wait)
	}
	tr.noteReading(lookResult{of: tr, readContent: true, looked: looked{evidence: &drivebay.Evidence{}, content: &drivebay.Content{Kind: drivebay.ContentBlank}}})
	if tr.unread != 0 {
		t.Errorf("read, and %d failures are counted", tr.unread)
	}
	tr.noteReading(lookResult{of: tr, readContent: true, looked: looked{evidence: &drivebay.Evidence{Standby: true}}})
	if tr.unread != 0 || !tr.fresh {
		t.Errorf("a drive that sleeps: %d failures, to be read: %v", tr.unread, tr.fresh)
	}
}
