package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

func rack(t *testing.T) *hostsim.Machine {
	t.Helper()
	m, err := hostsim.LoadFile("../../examples/rack24.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// A recording wakes no drive: those that sleep are left out, and say so.
func TestRecordingWakesNothing(t *testing.T) {
	m := rack(t)
	asleep := 0
	for _, d := range m.View() {
		if m.Inject(hostsim.Fault{Bay: d.Bay, Fault: "standby"}) == nil {
			asleep++
		}
	}
	if asleep < 5 {
		t.Fatalf("only %d drives sleep", asleep)
	}
	r, err := collect(context.Background(), m, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Stats().Drives {
		if d.Wakeups > 0 {
			t.Errorf("%s was woken %d times", d.Name, d.Wakeups)
		}
	}
	said := map[string]bool{}
	for name, b := range r.files {
		if strings.HasPrefix(name, "pages/") && strings.HasSuffix(name, ".err") && string(b) == "standby\n" {
			said[filepath.Dir(name)] = true
		}
	}
	if len(said) < asleep {
		t.Errorf("%d drives sleep, %d are recorded as asleep", asleep, len(said))
	}
}

// seen is what a look at a machine must find again in its recording.
type seen struct {
	Bay, Model, Firmware string
	Size                 uint64
	Type                 drivebay.Type
	Health               drivebay.Health
	System               bool
	Paths                int
}

func look(t *testing.T, m host.Machine) []drivebay.Drive {
	t.Helper()
	s, err := drivemgr.ReadOnce(t.Context(), m, drivemgr.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return s.Drives
}

func count(drives []drivebay.Drive) map[seen]int {
	out := map[seen]int{}
	for _, d := range drives {
		out[seen{d.Slot.Bay, d.Model, d.Firmware, d.Size, d.Type, d.Health, d.System, len(d.Paths)}]++
	}
	return out
}

// The recording of a rack shows the rack: the same drives in the same bays, as
// healthy as they were, under other names.
func TestRecordedRack(t *testing.T) {
	m := rack(t)
	live := look(t, m)
	r, err := collect(context.Background(), m, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	scrubbed := r.scrubbed()
	for name, b := range scrubbed.files {
		for _, d := range live {
			if strings.Contains(string(b), d.Serial) || strings.Contains(string(b), string(swapped(d.Serial))) {
				t.Errorf("%s still holds the serial %s", name, d.Serial)
			}
		}
	}
	for name, r := range map[string]*recording{"plain": r, "scrubbed": scrubbed} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "recording")
			if err := r.write(dir); err != nil {
				t.Fatal(err)
			}
			rec, err := host.Recorded(dir)
			if err != nil {
				t.Fatal(err)
			}
			drives := look(t, rec)
			got, want := count(drives), count(live)
			for s, n := range want {
				if got[s] != n {
					t.Errorf("%d of %+v, want %d", got[s], s, n)
				}
			}
			ids := map[string]bool{}
			for _, d := range drives {
				ids[d.ID] = true
			}
			if len(drives) != len(live) || len(ids) != len(live) {
				t.Errorf("%d drives with %d ids, want %d", len(drives), len(ids), len(live))
			}
		})
	}
}
