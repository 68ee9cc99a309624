package drivemgr

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

// TestStateSeq: counters of a drive in use change with each look. Who waits for something else to happen can tell it from that.
func TestStateSeq(t *testing.T) {
	w := hosttest.Tree{}
	a := w.SATA(1, "sda", map[string]string{"serial": "A1", "wwid": "naa.5000c500a0000001"})
	w["sys/dev/block/8:0"] = "-> " + a
	m := New(w.Machine(t), nil, state.Options{})
	m.tracking.ApplyListing(inventory.Observe(m.state.Machine, nil, inventory.Options{}))
	m.publish()
	first := m.state.Snapshot()
	if first.Seq == 0 || first.StateSeq == 0 || len(first.Drives) != 1 {
		t.Fatalf("%+v", first)
	}
	d := &m.state.Drives[first.Drives[0].ID].Drive
	kernel := func(change func(k *drivebay.Kernel)) func() {
		return func() {
			k := *d.Kernel
			change(&k)
			d.Kernel = &k
		}
	}
	now, warm := time.Now(), 40
	for _, c := range []struct {
		what       string
		do         func()
		seq, state uint64
	}{
		{"nothing", func() {}, 0, 0},
		{"a read", kernel(func(k *drivebay.Kernel) { k.At, k.Completed, k.Waited = now, k.Completed+1, k.Waited+1 }), 1, 0},
		{"a write", kernel(func(k *drivebay.Kernel) { k.Changed++ }), 1, 0},
		{"the temperature", func() { d.Temperature = &warm }, 1, 0},
		{"a reading", func() { d.Evidence = &drivebay.Evidence{At: now} }, 1, 0},
		{"a listing", func() { d.LastSeen = now }, 1, 0},
		{"a request that hangs", kernel(func(k *drivebay.Kernel) { k.LaneStuck = time.Second }), 1, 1},
		{"it hangs on", kernel(func(k *drivebay.Kernel) { k.LaneStuck = time.Minute }), 1, 0},
		{"it is answered", kernel(func(k *drivebay.Kernel) { k.LaneStuck = 0 }), 1, 1},
		{"an error", kernel(func(k *drivebay.Kernel) { k.MediaErrors24h++ }), 1, 1},
		{"a finding", func() { d.Findings = []drivebay.Finding{{Code: "x"}} }, 1, 1},
		{"its size", func() { d.Size++ }, 1, 1},
		{"a problem", func() { m.problems = []string{"p"} }, 1, 1},
	} {
		was := m.state.Snapshot()
		c.do()
		m.publish()
		if is := m.state.Snapshot(); is.Seq-was.Seq != c.seq || is.StateSeq-was.StateSeq != c.state {
			t.Errorf("%s: %d and %d, want %d and %d", c.what, is.Seq-was.Seq, is.StateSeq-was.StateSeq, c.seq, c.state)
		}
	}
}
