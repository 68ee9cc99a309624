package drivemgr

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestCopyEventFollowsTheSnapshot: a reader of an event about a copy finds the drive as the
// event describes it.
func TestCopyEventFollowsTheSnapshot(t *testing.T) {
	sim, err := hostsim.New(hostsim.Generate(2))
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	m := New(sim, nil, state.Options{})
	for _, id := range []string{"a", "b"} {
		content := drivebay.Content{Kind: drivebay.ContentOurs, Signatures: []drivebay.Signature{{Format: "gpt", UUID: "g", Label: "drivebay-x"}}}
		m.state.Drives[id] = &state.Tracked{Drive: drivebay.Drive{ID: id, Name: id, Status: drivebay.StatusOnline, Content: content}}
	}
	m.state.Listed = true
	m.tracking.FindCopies()
	if early, _ := m.state.Keeper.Since(0, 0); len(early) > 0 {
		t.Errorf("%d events before the snapshot", len(early))
	}
	m.publish()
	if events, _ := m.state.Keeper.Since(0, 0); len(events) != 2 || m.state.Snapshot().Drives[0].Copy == "" {
		t.Errorf("events %+v, drives %+v", events, m.state.Snapshot().Drives)
	}
}
