package drivemgr_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
)

func selectors(t *testing.T, text string) drivebay.Selectors {
	t.Helper()
	var s drivebay.Selectors
	if err := s.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

// Without a word of the administrator nothing is claimed; a claim outlives the
// daemon and an absence of the drive, and is taken back by who gave it.
func TestClaim(t *testing.T) {
	st := store.Memory()
	var id string
	onRack(t, 24, st, drivemgr.Options{}, func(r *rig) {
		for _, d := range r.mgr.Snapshot().Drives {
			if d.Claim != nil {
				r.Fatalf("%s is claimed by %s", d.ID, d.Claim.By)
			}
			err := r.mgr.Claim(r.Context(), d.ID, true)
			if refused := len(d.Refusals()) > 0; refused != errors.Is(err, drivebay.ErrRefused) || (!refused && err != nil) {
				r.Errorf("%s: %q, but: %v", d.ID, d.Refusals(), err)
			}
			if err == nil {
				id = d.ID
			}
		}
		if id == "" {
			r.Fatal("no drive could be claimed")
		}
		r.inject(r.drive(id).Name, "vanish")
		time.Sleep(3 * time.Second)
		if d := r.drive(id); d.Status != drivebay.StatusOffline || d.Claim == nil {
			r.Errorf("pulled it is %s, claim %v", d.Status, d.Claim)
		}
	})
	onRack(t, 24, st, drivemgr.Options{}, func(r *rig) {
		d := r.drive(id)
		if d.Claim == nil || d.Claim.By != drivebay.ClaimedByOperator {
			r.Fatalf("after a restart its claim is %v", d.Claim)
		}
		err := r.mgr.Claim(r.Context(), id, false)
		time.Sleep(time.Second)
		if err != nil || r.drive(id).Claim != nil {
			r.Errorf("taken back: %v, claim %v", err, r.drive(id).Claim)
		}
	})
}

// The configuration claims what it means and what is blank, lets go of what it
// means no more, and its claims are not an operator's to take back.
func TestClaimByConfiguration(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{Claim: selectors(t, "type=nvme")}, func(r *rig) {
		claimed := 0
		for _, d := range r.mgr.Snapshot().Drives {
			if d.Claim != nil {
				claimed++
				if d.Type != drivebay.TypeNVMe || d.Claim.By != drivebay.ClaimedByConfig || len(d.Refusals()) > 0 {
					r.Errorf("%s, %v, is claimed by %s: %q", d.ID, d.Type, d.Claim.By, d.Refusals())
				}
			} else if d.Type == drivebay.TypeNVMe && len(d.Refusals()) == 0 {
				r.Errorf("%s is not claimed", d.ID)
			}
		}
		if claimed == 0 {
			r.Fatal("nothing is claimed")
		}
		nvme := r.pick(drivebay.ProtocolNVMe, 0)
		if err := r.mgr.Claim(r.Context(), nvme.ID, false); !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "configuration") {
			r.Errorf("an operator took the configuration's claim back: %v", err)
		}
		if err := r.mgr.Configure(r.Context(), drivemgr.Options{Claim: selectors(t, "type=ssd")}); err != nil {
			r.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, d := range r.mgr.Snapshot().Drives {
			if (d.Claim != nil) != (d.Type == drivebay.TypeSSD && len(d.Refusals()) == 0) {
				r.Errorf("%s, %v: claim %v, against it %q", d.ID, d.Type, d.Claim, d.Refusals())
			}
		}
		kinds := map[string]int{}
		for _, e := range r.mgr.Events(0, 0) {
			if e.Kind == drivebay.EventClaim {
				kinds[e.From+">"+e.To]++
			}
		}
		if kinds[">configuration"] < claimed || kinds["configuration>"] != claimed {
			r.Errorf("events %v of %d claims", kinds, claimed)
		}
	})
}

// TestUnclaimSelected: a drive that an operator claimed and that the configuration selects keeps its claim: the configuration would claim it again
// after the operator was told that it has none.
func TestUnclaimSelected(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{Claim: selectors(t, "type=nvme")}, func(r *rig) {
		id := r.pick(drivebay.ProtocolNVMe, 0).ID
		if err := r.mgr.Claim(r.Context(), id, true); err != nil {
			r.Fatal(err)
		}
		err := r.mgr.Claim(r.Context(), id, false)
		time.Sleep(20 * time.Minute)
		if c := r.drive(id).Claim; !errors.Is(err, drivebay.ErrRefused) || !strings.Contains(err.Error(), "configuration") || c == nil {
			r.Errorf("taken back: %v; later its claim is %v", err, c)
		}
		if err := r.mgr.Configure(r.Context(), drivemgr.Options{}); err != nil {
			r.Fatal(err)
		}
		if err := r.mgr.Claim(r.Context(), id, false); err != nil || r.drive(id).Claim != nil {
			r.Errorf("without the selector: %v, claim %v", err, r.drive(id).Claim)
		}
	})
}
