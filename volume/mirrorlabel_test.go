package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// legDamages are damages of a drive that LVM or the daemon does not see through, and the kernel does not notice while it uses the drive.
var legDamages = map[string]func(*split, *drivebay.Drive) (undo func()){
	"label": func(x *split, d *drivebay.Drive) func() {
		flip := func() {
			name := x.find(d.ID).Name
			if strings.HasPrefix(name, "nvme") {
				name += "p"
			}
			x.flip(name+"1", 512, 8)
		}
		flip()
		return flip
	},
	"table": func(x *split, d *drivebay.Drive) func() { return x.zap(x.find(d.ID)) },
}

// TestMirrorWithoutALabel: LVM does not see a leg of an active mirror any more, or the drive has no table, and the kernel goes on to write to it.
// It is not the leg that is behind: when the other one goes, this one has the newest data, and says so when it is seen again.
func TestMirrorWithoutALabel(t *testing.T) {
	t.Parallel()
	for damage, do := range legDamages {
		for name, between := range map[string]func(*split){
			"pulled":                func(x *split) { x.newer(); x.putBack(x.old) },
			"power cut":             func(x *split) { x.newer(); x.sim.PowerCut(); x.putBack(x.old); x.start() },
			"back before the write": func(x *split) { x.pull(x.old); x.putBack(x.old); x.word(x.v, "second"); x.sim.PowerCut(); x.start() },
			"both":                  func(x *split) { x.word(x.v, "second"); x.sim.PowerCut(); x.start() },
		} {
			t.Run(damage+", "+name, func(t *testing.T) {
				t.Parallel()
				onSplit(t, func(x *split) {
					undo := do(x, x.current)
					time.Sleep(12 * time.Minute)
					if m := x.of(x.v).Mirror; m != nil && m.Current == x.old.ID {
						x.Errorf("the leg that LVM does not see counts as behind: %+v", m)
					}
					between(x)
					undo()
					time.Sleep(12 * time.Minute)
					x.serves("second")
				})
			})
		}
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
