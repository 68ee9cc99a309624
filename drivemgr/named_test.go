package drivemgr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
)

// TestNamedDriveWithoutRecord: a drive that volumes are on and that has no record is OFFLINE, not absent, once all drives
// are listed. It is not forgotten, and is the same drive when it is back.
func TestNamedDriveWithoutRecord(t *testing.T) {
	st := store.Memory()
	onRack(t, 9, st, drivemgr.Options{ForgetAfter: time.Hour}, func(r *rig) {
		d := *r.pick(drivebay.ProtocolATA, 0)
		r.inject(d.Serial, "vanish")
		time.Sleep(time.Minute)
		r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveForget, ""))
		r.mgr.NamedBy(func() map[string]string { return map[string]string{d.ID: "volume v"} })
		r.must(r.mgr.Refresh(r.Context()))
		time.Sleep(3 * time.Hour)
		is, known := r.mgr.Snapshot().Find(d.ID)
		if !known || is.Status != drivebay.StatusOffline || is.Health != drivebay.HealthUnknown || is.Usage != drivebay.UsageInUse || is.Claim != nil || is.Name != "unknown" || len(is.Refusals()) == 0 {
			r.Fatalf("known %v: %+v", known, is)
		}
		if stored, err := st.Records(); err != nil || stored[d.ID].Drive.Status != drivebay.StatusOffline {
			r.Errorf("stored: %+v, %v", stored[d.ID], err)
		}
		vanished := r.told(drivebay.EventVanished, d.ID)
		if len(vanished) != 2 || !strings.Contains(vanished[1], "volume v is on it") {
			r.Errorf("events: %q", vanished)
		}
		r.inject(d.Serial, "return")
		time.Sleep(time.Hour)
		if is := r.drive(d.ID); is.Status != drivebay.StatusOnline || is.Health != drivebay.HealthGood || is.Serial != d.Serial || is.SizeIssue != "" || is.Slot.Bay != d.Slot.Bay {
			r.Errorf("back: %+v", is)
		}
		for _, kind := range []drivebay.EventKind{drivebay.EventRenamed, drivebay.EventMoved, drivebay.EventResized} {
			if told := r.told(kind, d.ID); len(told) > 0 {
				r.Errorf("%v: %q", kind, told)
			}
		}
	})
}
