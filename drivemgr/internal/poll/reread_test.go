package poll

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/kernellog"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
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

// TestProofWaits: errors of a drive that a reading may end are not read again at once, whatever the reading met. Another drive that
// answered had the drive read without a pause until the next listing.
func TestProofWaits(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, err := range map[string]error{"read": nil, "another drive answered": fmt.Errorf("sda: %w", state.ErrOtherDrive), "it is gone": host.ErrGone, "it hangs": context.DeadlineExceeded} {
		for _, proved := range []*kernellog.Proved{nil, {}, {All: true}} {
			tr := &state.Tracked{Present: true}
			tr.Drive.Kernel = &drivebay.Kernel{}
			tr.Kernlog.Add(kernellog.IO, kernellog.Error{At: now, Sector: 8, Placed: true}, host.LogLine{})
			if !tr.ProofDue(now) {
				t.Fatal("no proof is due")
			}
			tr.TakeProof(state.Reading{Of: tr, Proof: tr.Kernlog.ProofOf(), Result: evidence.Result{Err: err, Proved: proved}}, now)
			if tr.ProofDue(now.Add(time.Second)) {
				t.Errorf("%s, %+v: the next proof is due at once", name, proved)
			}
		}
	}
}
