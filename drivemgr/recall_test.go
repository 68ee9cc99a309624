package drivemgr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/history"
	"github.com/drivebay/drivebay/internal/store"
)

// TestRecall: the record of a drive that was missing for long is gone, but what was measured of it is not: when it is back, its
// growth since then is judged.
func TestRecall(t *testing.T) {
	st := store.Memory()
	recorder := history.NewRecorder(st, history.Step)
	opt := drivemgr.Options{ForgetAfter: time.Hour, Past: recorder.Of}
	onRack(t, 9, st, opt, func(r *rig) {
		d := *r.pick(drivebay.ProtocolATA, 0)
		for range 3 {
			recorder.Observe(r.mgr.Snapshot())
			time.Sleep(30 * time.Minute)
			r.must(recorder.Tick(time.Now()))
		}
		r.inject(d.Serial, "vanish")
		time.Sleep(90 * time.Minute)
		if _, known := r.mgr.Snapshot().Find(d.ID); known {
			r.Fatal("the drive is not forgotten")
		}
		r.inject(d.Serial, "return")
		r.inject(d.Serial, "reallocate", "n=40") // before its first reading
		time.Sleep(time.Minute)
		back, known := r.mgr.Snapshot().Find(d.ID)
		if !known || len(back.Findings) == 0 || !strings.Contains(back.Findings[0].Text, "+40 in 7 days") {
			r.Errorf("known: %v, findings: %+v", known, back.Findings)
		}
		// It is read once: the growth is in the record from now on.
		time.Sleep(time.Hour)
		again, _ := r.mgr.Snapshot().Find(d.ID)
		if len(again.Findings) == 0 || !strings.Contains(again.Findings[0].Text, "+40 in 7 days") {
			r.Errorf("an hour later: %+v", again.Findings)
		}
	})
}
