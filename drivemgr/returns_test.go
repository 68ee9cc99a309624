package drivemgr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

// TestDriveLeavesAndReturns: each time a drive is back it is read and found sound. That it leaves again and again is a fault.
func TestDriveLeavesAndReturns(t *testing.T) {
	for name, away := range map[string][2][]string{"pulled": {{"vanish"}, {"return"}}, "given up": {{"offline"}, {"heal"}}, "given up, and then removed": {{"offline", "vanish"}, {"heal"}}} {
		onSpec(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindSASHDD}}}, store.Memory(), drivemgr.Options{}, func(r *rig) {
			d := r.mgr.Snapshot().Drives[0]
			found := func() string {
				for _, f := range r.drive(d.ID).Findings {
					if f.Code == "DriveReturns" && f.Severity == drivebay.HealthSuspect {
						return f.Text
					}
				}
				return ""
			}
			flap := func(n int) {
				for range n {
					for _, faults := range away {
						for _, fault := range faults {
							r.inject(d.Serial, fault)
							time.Sleep(30 * time.Second / time.Duration(len(faults)))
						}
					}
				}
			}
			flap(4)
			time.Sleep(time.Hour)
			if got := found(); got != "" {
				r.Errorf("%s 4 times: %q", name, got)
			}
			flap(1)
			if got := found(); !strings.Contains(got, "5 times in 24 h") {
				r.Errorf("%s 5 times: %q", name, got)
			}
			flap(15)
			if got := found(); !strings.Contains(got, "20 times in 24 h") {
				r.Errorf("%s 20 times: %q", name, got)
			}
			if name != "pulled" {
				return
			}
			time.Sleep(23 * time.Hour)
			if got := found(); got == "" {
				r.Errorf("%s, and 23 h later: %+v", name, r.drive(d.ID).Findings)
			}
			time.Sleep(2 * time.Hour)
			if got := found(); got != "" {
				r.Errorf("%s, and a day later: %q", name, got)
			}
		})
	}
}

// TestPutBack: a drive that an operator takes out and puts back did not leave by itself.
func TestPutBack(t *testing.T) {
	onRack(t, 9, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d := r.blank()
		r.takenOut(&d)
		for range 6 {
			r.inject(d.Serial, "return")
			time.Sleep(30 * time.Second)
			r.inject(d.Serial, "vanish")
			time.Sleep(30 * time.Second)
		}
		r.inject(d.Serial, "return")
		time.Sleep(time.Minute)
		for _, f := range r.drive(d.ID).Findings {
			if f.Code == "DriveReturns" {
				r.Errorf("%+v", f)
			}
		}
	})
}
