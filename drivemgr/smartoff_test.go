package drivemgr_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestHealthNotShownAnyMore: a drive that answers, and refuses to show its health, is not GOOD: an ATA drive whose SMART was turned off, whatever
// else it refuses, and a SAS drive that refuses its list of log pages. It keeps what it had shown before.
func TestHealthNotShownAnyMore(t *testing.T) {
	smartOff := func(refused ...host.Page) pageChange {
		return func(p host.Page, b []byte, err error) ([]byte, error) {
			switch {
			case slices.Contains(refused, p):
				return nil, fmt.Errorf("%s: %w", p, host.ErrUnsupported)
			case p == host.ATAIdentify && err == nil:
				b = slices.Clone(b)
				binary.LittleEndian.PutUint16(b[2*85:], binary.LittleEndian.Uint16(b[2*85:])&^1)
				sum := byte(0)
				for _, c := range b[:511] {
					sum += c
				}
				if b[510] == 0xA5 {
					b[511] = -sum
				}
			}
			return b, err
		}
	}
	refuse := func(refused ...host.Page) pageChange {
		return func(p host.Page, b []byte, err error) ([]byte, error) {
			if slices.Contains(refused, p) {
				return nil, fmt.Errorf("%s: %w", p, host.ErrUnsupported)
			}
			return b, err
		}
	}
	for name, c := range map[string]struct {
		kind   hostsim.Kind
		fault  string
		args   []string
		change pageChange
	}{
		"SMART off":                    {hostsim.KindSATAHDD, "reallocate", []string{"n=5000"}, smartOff()},
		"SMART off, no log directory":  {hostsim.KindSATAHDD, "reallocate", []string{"n=5000"}, smartOff(host.ATALogDirectory)},
		"SMART off, no statistics":     {hostsim.KindSATAHDD, "reallocate", []string{"n=5000"}, smartOff(host.ATADevStats)},
		"SMART off, SSD":               {hostsim.KindSATASSD, "fail", nil, smartOff(host.ATADevStats, host.ATALogDirectory)},
		"no list of log pages":         {hostsim.KindSASHDD, "reallocate", []string{"n=5000"}, refuse(host.SCSILogSupported)},
		"no list, failure predicted":   {hostsim.KindSASHDD, "fail", nil, refuse(host.SCSILogSupported)},
		"no list, self-tests":          {hostsim.KindSASHDD, "selftest-fail", []string{"count=2"}, refuse(host.SCSILogSupported)},
		"NVMe without a health log":    {hostsim.KindNVMe, "fail", nil, refuse(host.NVMeSmartLog, host.NVMeErrorLog)},
		"SMART data alone are refused": {hostsim.KindSATAHDD, "reallocate", []string{"n=5000"}, refuse(host.ATASmartData)},
	} {
		for _, faulty := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", faulty ", faulty), func(t *testing.T) {
				m, opt := &pagesThrough{}, drivemgr.DefaultOptions()
				opt.Tick = time.Minute
				spec := hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: c.kind, Serial: "IT"}}}
				onSeen(t, spec, nil, opt, func(sim *hostsim.Machine) host.Machine {
					m.Machine = sim
					return m
				}, func(r *rig) {
					d := &r.mgr.Snapshot().Drives[0]
					want := drivebay.HealthGood
					if faulty {
						want = drivebay.HealthBad
						r.inject("IT", c.fault, c.args...)
					}
					time.Sleep(30 * time.Minute)
					before := r.drive(d.ID)
					if before.Health != want {
						r.Fatalf("before: %v %+v", before.Health, before.Findings)
					}
					m.change.Store(&c.change)
					time.Sleep(26 * time.Hour)
					if is := r.drive(d.ID); is.Health == drivebay.HealthGood || faulty && is.Health != want {
						r.Errorf("a day without it: %v %+v, %+v", is.Health, is.Findings, is.Evidence.Problems)
					}
				})
			})
		}
	}
}
