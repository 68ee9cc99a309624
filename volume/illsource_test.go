package volume_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume"
)

// legsByLVM returns the drives that have a leg of a mirror by LVM.
func (s *stand) legsByLVM(v drivebay.Volume, drives ...string) (on []string) {
	s.Helper()
	var devs []string
	at := map[string]string{}
	for _, id := range drives {
		if d, ok := s.mgr.Snapshot().Find(id); ok && d.Status == drivebay.StatusOnline {
			dev := "/dev/" + d.Name + "p1"
			devs = append(devs, dev)
			at[dev] = id
		}
	}
	r, err := lvm.New(s.sim, "").Read(s.Context(), devs)
	s.must(err)
	g := r.Group(v.Location.VG)
	if g == nil {
		return nil
	}
	for _, pv := range g.PhysicalVolumesOf(v.Location.LV) {
		for _, p := range g.PVs {
			if p.UUID == pv {
				on = append(on, at[p.Device])
			}
		}
	}
	return on
}

// TestHealthyLegLeavesLast: one drive of a mirror is BAD (it may not be readable everywhere). The other one, which is healthy, is
// released, alone or together with it. The healthy leg does not leave while a BAD drive has the only other one.
func TestHealthyLegLeavesLast(t *testing.T) {
	t.Parallel()
	for _, both := range []bool{false, true} {
		for bad := range 2 {
			var s *stand
			var v drivebay.Volume
			var all []string
			var seen []string
			opt := volume.Options{After: func(_, step string) error {
				if s != nil && strings.HasPrefix(step, "move ") {
					seen = append(seen, fmt.Sprint(s.legsByLVM(v, all...)))
				}
				return nil
			}}
			onMachine(t, sameDrives(4), opt, func(st *stand) {
				v = st.make("v", requests()["a mirror"])
				s = st
				all = nil
				for _, d := range s.mgr.Snapshot().Drives {
					all = append(all, d.ID)
				}
				ill, well := v.Location.Drives[bad], v.Location.Drives[1-bad]
				s.inject(ill, "critical-warning")
				s.must(s.mgr.Refresh(s.Context()))
				time.Sleep(time.Minute)
				if d, _ := s.mgr.Snapshot().Find(ill); d.Health != drivebay.HealthBad {
					t.Fatal(d.Health)
				}
				s.must(s.mgr.Operate(s.Context(), well, drivebay.LeaveRelease, ""))
				if both {
					s.must(s.mgr.Operate(s.Context(), ill, drivebay.LeaveRelease, ""))
				}
				for range 1200 {
					time.Sleep(time.Second)
					on := s.of(v).Location.Drives
					if slices.Contains(on, ill) && !slices.Contains(on, well) {
						t.Errorf("both %v, bad %d: the healthy leg on %s has left, the BAD one on %s is the source: %v; %v", both, bad, well, ill, on, seen)
						s = nil
						return
					}
				}
				if both && (slices.Contains(s.of(v).Location.Drives, ill) || slices.Contains(s.of(v).Location.Drives, well)) {
					t.Errorf("it did not leave")
				}
				s = nil
			})
		}
	}
}
