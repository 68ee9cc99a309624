package drivemgr_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestSpoiledLogDirectory: a drive is asked only for the logs that its directory lists. What the device statistics have shown stands while
// the directory is spoiled, as it does while it cannot be read.
func TestSpoiledLogDirectory(t *testing.T) {
	withoutWear := func(b []byte) []byte { // the drive shows its wear in the device statistics alone
		for e := b[2:]; len(e) > 150; e = e[12:] {
			if e[0] == 177 {
				e[0] = 0
			}
		}
		b[511] = 0
		for _, c := range b[:511] {
			b[511] -= c
		}
		return b
	}
	for name, spoil := range map[string]func([]byte) []byte{
		"all zeros": func(b []byte) []byte { return make([]byte, len(b)) },
		"no answer": func([]byte) []byte { return nil },
		"cut short": func(b []byte) []byte { return b[:6] },
		"all ones": func(b []byte) []byte {
			for i := range b {
				b[i] = 0xFF
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			opt := drivemgr.DefaultOptions()
			opt.Tick = time.Minute
			m := &pagesThrough{}
			set := func(spoil func([]byte) []byte) {
				m.change.Store(new(pageChange(func(p host.Page, b []byte, err error) ([]byte, error) {
					switch {
					case err != nil:
					case p == host.ATASmartData:
						b = withoutWear(b)
					case p == host.ATALogDirectory && spoil != nil:
						b = spoil(b)
					}
					return b, err
				})))
			}
			set(nil)
			spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: hostsim.KindSATASSD, Serial: "IT"}}}
			onSeen(t, spec, nil, opt, func(sim *hostsim.Machine) host.Machine {
				m.Machine = sim
				return m
			}, func(r *rig) {
				r.inject("IT", "wear")
				time.Sleep(30 * time.Minute)
				d := &r.mgr.Snapshot().Drives[0]
				if d.Health != drivebay.HealthSuspect {
					r.Fatalf("a worn drive is %v %+v", d.Health, d.Findings)
				}
				set(spoil)
				time.Sleep(26 * time.Hour)
				if is := r.drive(d.ID); is.Health != drivebay.HealthSuspect {
					r.Errorf("%v %+v, %+v", is.Health, is.Findings, is.Evidence.Problems)
				}
				set(nil)
				time.Sleep(time.Hour)
				if is := r.drive(d.ID); len(is.Evidence.Problems) > 0 {
					r.Errorf("a sound directory: %+v", is.Evidence.Problems)
				}
			})
		})
	}
}
