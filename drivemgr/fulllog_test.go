package drivemgr_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestFailedSelfTestInFullLog: a long self-test that failed stands until a long one has passed. Short tests that passed
// since push it out of the log of the drive, which has room for about 20.
func TestFailedSelfTestInFullLog(t *testing.T) {
	for name, kind := range map[string]hostsim.Kind{"SATA": hostsim.KindSATAHDD, "SAS": hostsim.KindSASHDD, "NVMe": hostsim.KindNVMe} {
		t.Run(name, func(t *testing.T) {
			opt := drivemgr.DefaultOptions()
			opt.Tick, opt.Poll, opt.Rescan = 10*time.Minute, 6*time.Hour, 6*time.Hour
			onSpec(t, hostsim.Spec{Drives: []hostsim.Group{{Count: 1, Kind: kind, Serial: "IT"}}}, nil, opt, func(r *rig) {
				time.Sleep(time.Hour)
				id := r.mgr.Snapshot().Drives[0].ID
				test := func(kind string, takes time.Duration) {
					if err := r.mgr.SelfTest(r.Context(), id, kind); err != nil {
						r.Fatalf("%s: %v", kind, err)
					}
					time.Sleep(takes)
				}
				r.inject("IT", "selftest-fail", "count=0")
				test("long", 4*24*time.Hour)
				r.inject("IT", "selftest-fail", "count=0", "further=false")
				for range 25 {
					test("short", 26*time.Hour)
				}
				is := r.drive(id)
				for _, t := range is.Evidence.SelfTests {
					if t.Result != drivebay.SelfTestPassed {
						r.Fatalf("the log still has %+v", t)
					}
				}
				if is.Health == drivebay.HealthGood {
					r.Errorf("pushed out of the log: %v %+v %+v", is.Health, is.Findings, is.Evidence.SelfTests)
				}
				test("long", 4*24*time.Hour)
				if is := r.drive(id); is.Health != drivebay.HealthGood {
					r.Errorf("a long test has passed: %v %+v %+v", is.Health, is.Findings, is.Evidence.SelfTests)
				}
			})
		})
	}
}
