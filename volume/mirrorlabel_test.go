package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// TestMirrorWithoutALabel: LVM does not see a leg of an active mirror any more, and the kernel goes on to write to it. It is not the leg that is
// behind: when the other one goes, this one has the newest data, and says so when LVM sees it again.
func TestMirrorWithoutALabel(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*split){
		"pulled":    func(x *split) { x.newer(); x.putBack(x.old) },
		"power cut": func(x *split) { x.newer(); x.sim.PowerCut(); x.putBack(x.old); x.start() },
		"both":      func(x *split) { x.sim.PowerCut(); x.start() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onSplit(t, func(x *split) {
				label := func() {
					name := x.find(x.current.ID).Name
					if strings.HasPrefix(name, "nvme") {
						name += "p"
					}
					x.flip(name+"1", 512, 8)
				}
				label()
				time.Sleep(12 * time.Minute)
				if m := x.of(x.v).Mirror; m != nil && m.Current == x.old.ID {
					x.Errorf("the leg that LVM does not see counts as behind: %+v", m)
				}
				between(x)
				label()
				time.Sleep(12 * time.Minute)
				want := "second"
				if name == "both" {
					want = "first"
				}
				x.serves(want)
			})
		})
	}
}

// find is a drive as it is listed now.
func (s *stand) find(id string) drivebay.Drive {
	s.Helper()
	d, ok := s.mgr.Snapshot().Find(id)
	if !ok {
		s.Fatalf("drive %s is not listed", id)
	}
	return *d
}
