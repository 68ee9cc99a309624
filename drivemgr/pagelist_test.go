package drivemgr_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestSpoiledListOfLogPages: a SAS drive of whose log pages only the list is spoiled has not shown its health:
// it is UNKNOWN, not GOOD, and keeps what it had shown before.
func TestSpoiledListOfLogPages(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"all zeros":        func(b []byte) []byte { return make([]byte, len(b)) },
		"no answer":        func([]byte) []byte { return nil },
		"the header alone": func(b []byte) []byte { return b[:4] },
		"truncated":        func(b []byte) []byte { return b[:6] },
		"another page":     func(b []byte) []byte { return append([]byte{0x0D}, b[1:]...) },
	} {
		for _, fault := range []string{"", "reallocate", "fail"} {
			t.Run(name+" "+fault, func(t *testing.T) {
				opt := drivemgr.DefaultOptions()
				opt.Tick = time.Minute
				m := &pagesThrough{}
				change := pageChange(func(p host.Page, b []byte, err error) ([]byte, error) {
					if err == nil && p == host.SCSILogSupported {
						b = spoil(b)
					}
					return b, err
				})
				if fault == "" {
					m.change.Store(&change) // from the beginning
				}
				spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindSASHDD, Serial: "IT"}}}
				onSeen(t, spec, nil, opt, func(sim *hostsim.Machine) host.Machine {
					m.Machine = sim
					return m
				}, func(r *rig) {
					if fault != "" {
						r.inject("IT", fault)
					}
					time.Sleep(30 * time.Minute)
					d := &r.mgr.Snapshot().Drives[0]
					before := d.Health
					m.change.Store(&change)
					time.Sleep(26 * time.Hour)
					is := r.drive(d.ID)
					if is.Health == drivebay.HealthGood || is.Health.Rank() < before.Rank() {
						r.Errorf("before %v, after %v %+v, %+v", before, is.Health, is.Findings, is.Evidence.Problems)
					}
				})
			})
		}
	}
}
