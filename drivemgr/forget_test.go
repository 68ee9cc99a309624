package drivemgr_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
)

// TestForgetAfter: the record of a drive that is missing for ForgetAfter is removed with an
// event, and stays while a claim, a cordon, an unfinished removal or a volume needs it.
func TestForgetAfter(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(r *rig, id string)
		forgets bool
	}{
		"nothing needs it": {func(*rig, string) {}, true},
		"claimed":          {func(r *rig, id string) { r.must(r.mgr.Claim(r.Context(), id, true)) }, false},
		"cordoned":         {func(r *rig, id string) { r.must(r.mgr.Cordon(r.Context(), id, true)) }, false},
		"being released":   {func(r *rig, id string) { r.must(r.mgr.Operate(r.Context(), id, drivebay.LeaveRelease, "")) }, false},
		"has a volume": {func(r *rig, id string) {
			r.mgr.NamedBy(func() map[string]string { return map[string]string{id: "volume v"} })
		}, false},
		"taken out": {func(r *rig, id string) { r.takenOut(r.drive(id)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			onRack(t, 9, store.Memory(), drivemgr.Options{ForgetAfter: time.Hour}, func(r *rig) {
				d := *r.pick(drivebay.ProtocolATA, 0)
				c.prepare(r, d.ID)
				if name != "taken out" {
					r.inject(d.Serial, "vanish")
				}
				time.Sleep(50 * time.Minute)
				if _, ok := r.mgr.Snapshot().Find(d.ID); !ok {
					r.Fatal("forgotten too early")
				}
				time.Sleep(30 * time.Minute)
				_, known := r.mgr.Snapshot().Find(d.ID)
				if told := r.told(drivebay.EventForgotten, d.ID); known == c.forgets || len(told) == 1 != c.forgets {
					r.Errorf("known: %v, events: %q", known, told)
				}
			})
		})
	}
}
