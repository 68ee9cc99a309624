package drivemgr_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
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

// ahead is a machine whose clock is a year ahead.
type ahead struct{ *hostsim.Machine }

func (m ahead) Now() time.Time { return m.Machine.Now().AddDate(1, 0, 0) }

// TestForgetWithClockAhead: a daemon that starts with a clock that is ahead, until it is set, does not delete the record of a drive that is
// absent for a short time.
func TestForgetWithClockAhead(t *testing.T) {
	st, serial, id := store.Memory(), "", ""
	onRack(t, 9, st, drivemgr.Options{}, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 0)
		serial, id = d.Serial, d.ID
		r.inject(serial, "vanish")
		time.Sleep(time.Minute)
	})
	vanished := func(m *hostsim.Machine) host.Machine {
		if err := m.Inject(hostsim.Fault{Drive: serial, Fault: "vanish"}); err != nil {
			t.Fatal(err)
		}
		return ahead{m}
	}
	onSeen(t, hostsim.Generate(9), st, drivemgr.Options{}, vanished, func(r *rig) {
		time.Sleep(50 * time.Minute)
		if _, ok := r.mgr.Snapshot().Find(id); !ok {
			r.Error("forgotten within the first hour")
		}
		time.Sleep(30 * time.Minute)
		if _, ok := r.mgr.Snapshot().Find(id); ok {
			r.Error("not forgotten after it")
		}
	})
}
