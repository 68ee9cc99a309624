package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

// TestServerIsNamed: the simulated server is named wherever a drive of it fails.
func TestServerIsNamed(t *testing.T) {
	r, client := rack(t, 3)
	const server = "server ACME S2400, serial SIM-RACK"
	s, err := client.Drives(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if h := s.Machine.Hardware; h.Server() != server || h.Version != "" || h.SKU != "" || h.Chassis.AssetTag != "" || h.Board.Serial != "" || h.BIOS.Version != "1.8.2" {
		t.Errorf("%+v", h)
	}
	d := inBay(t, client, "Slot 02")[0]
	if d.NUMANode == nil || *d.NUMANode != 0 {
		t.Errorf("NUMA node %v", d.NUMANode)
	}
	r.fault(t, "2", "vanish")
	var vanished *drivebay.Event
	eventually(t, patience, func() bool {
		all, err := client.Events(t.Context(), 0, 0)
		i := slices.IndexFunc(all, func(e drivebay.Event) bool { return e.Kind == drivebay.EventVanished && e.Drive == d.ID })
		if i >= 0 {
			vanished = &all[i]
		}
		return err == nil && i >= 0
	}, r.err.String)
	if vanished.Place != server+", bay Slot 02" {
		t.Errorf("the event is at %q", vanished.Place)
	}
	for _, args := range [][]string{{"explain", d.ID}, {"events", "-o", "json"}, {"drives", "-o", "json"}} {
		out, errs, code := call(t, r.env, args...)
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "SIM-RACK") {
			t.Errorf("%v: exit %d, %s\n%s", args, code, errs, out)
		}
	}
	if out, _, _ := call(t, r.env, "explain", d.ID); !strings.Contains(out, "in "+server+", bay Slot 02\n") {
		t.Errorf("explain:\n%s", out)
	}
	if out, _, _ := call(t, r.env, "drives", "-o", "wide"); !strings.Contains(out, "NUMA") {
		t.Errorf("drives -o wide:\n%s", out)
	}
}
