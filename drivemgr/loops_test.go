package drivemgr

import (
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host/hosttest"
)

// TestLoopsNotShown: a configuration that ends to show loop devices hides none that is claimed or has volumes: its volumes would be
// missing while they are mounted.
func TestLoopsNotShown(t *testing.T) {
	w := hosttest.Tree{}
	for name, num := range map[string]string{"loop0": "7:0", "loop1": "7:1", "loop2": "7:2"} {
		at := w.Block("sys/devices/virtual/block", name, num, map[string]string{"size": "204800"})
		w[at+"/loop/backing_file"] = "/" + name + ".img\n"
	}
	m := New(w.Machine(t), nil, state.Options{Loop: true})
	list := func() map[string]drivebay.Drive {
		m.tracking.ApplyListing(m.tracking.ListMachine(t.Context(), m.tracking.ListOptions(false)))
		m.publish()
		out := map[string]drivebay.Drive{}
		for _, d := range m.Snapshot().Drives {
			out[d.Serial] = d
		}
		return out
	}
	first := list()
	if len(first) != 3 {
		t.Fatalf("%d loop devices", len(first))
	}
	m.state.Drives[first["/loop0.img"].ID].Rec.Claim = &drivebay.Claim{By: drivebay.ClaimedByOperator}
	m.NamedBy(func() map[string]string { return map[string]string{first["/loop1.img"].ID: "volume a"} })
	m.state.Opt.Loop = false
	for range 2 {
		for serial, want := range map[string]drivebay.Status{"/loop0.img": drivebay.StatusOnline, "/loop1.img": drivebay.StatusOnline, "/loop2.img": drivebay.StatusOffline} {
			if is := list()[serial].Status; is != want {
				t.Errorf("%s is %v, want %v", serial, is, want)
			}
		}
	}
}
