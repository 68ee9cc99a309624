package drivemgr_test

import (
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// resolution is how close until readings.
const resolution = 10 * time.Millisecond

// until waits for something that must be true within a time, and says how long
// that took.
func (r *rig) until(what string, within time.Duration, is func() bool) time.Duration {
	r.Helper()
	for took := time.Duration(0); took <= within+resolution; took += resolution {
		if is() {
			return took
		}
		time.Sleep(resolution)
	}
	r.Fatalf("not %s within %v", what, within)
	return 0
}

// A drive that nobody uses and that answers nothing is found out by our next
// question, silentSuspect and a tick after it was asked, however seldom drives are
// asked and however long they may take.
func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		poll, timeout, suspect time.Duration
	}{
		"as configured by default": {10 * time.Minute, 30 * time.Second, 20 * time.Second},
		"asked often":              {10 * time.Second, 30 * time.Second, 20 * time.Second},
		"with patience":            {time.Minute, 10 * time.Minute, 20 * time.Second},
		"without":                  {time.Minute, 30 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			opt := drivemgr.DefaultOptions()
			opt.Poll, opt.ReadTimeout, opt.Thresholds.SilentSuspect = c.poll, c.timeout, c.suspect
			onRack(t, 9, nil, opt, func(r *rig) {
				hung := *r.pick(drivebay.ProtocolATA, 0)
				opens := func() int {
					all := r.sim.Stats().Drives
					return all[slices.IndexFunc(all, func(d hostsim.DriveStats) bool { return d.Serial == hung.Serial })].Opens
				}
				time.Sleep(resolution / 2) // readings that began at this very moment are over
				before := opens()
				r.inject(hung.Serial, "hang")
				defer r.inject(hung.Serial, "heal")
				asked := r.until("asked", c.poll+opt.Tick, func() bool { return opens() > before })
				took := r.until("found silent", c.suspect+opt.Tick, func() bool {
					return slices.ContainsFunc(r.drive(hung.ID).Findings, func(f drivebay.Finding) bool { return f.Code == "KernelSilent" })
				})
				r.Logf("asked %v after the hang, found silent %v after that", asked, took)
				if took < c.suspect-resolution {
					r.Errorf("found silent after %v, before it was for %v", took, c.suspect)
				}
			})
		})
	}
}

// A drive that takes three seconds for each page is slow, not silent, though its
// reading takes half a minute.
func TestSlowIsNotSilent(t *testing.T) {
	opt := drivemgr.DefaultOptions()
	opt.Poll, opt.ReadTimeout = 10*time.Second, 5*time.Minute
	onRack(t, 9, nil, opt, func(r *rig) {
		slow := *r.pick(drivebay.ProtocolATA, 0)
		r.inject(slow.Serial, "slow", "delay=3s")
		longest := time.Duration(0)
		for range 1200 {
			time.Sleep(100 * time.Millisecond)
			d := r.drive(slow.ID)
			longest = max(longest, r.mgr.Snapshot().At.Sub(d.Evidence.At))
			if d.Health != drivebay.HealthGood {
				r.Fatalf("it is %v: %+v", d.Health, d.Findings)
			}
		}
		if longest < 25*time.Second {
			r.Errorf("its looks were %v apart at most: it was not slow", longest)
		}
	})
}
