package drivemgr_test

import (
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/host/hosttest"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

const year = 365 * 24 * time.Hour

// onClock runs a test on a machine whose clock can be set.
func onClock(t *testing.T, opt drivemgr.Options, test func(*rig, *hosttest.Clock)) {
	t.Helper()
	clock := &hosttest.Clock{}
	onSeen(t, hostsim.Generate(12), store.Memory(), opt, func(m *hostsim.Machine) host.Machine { return m }, func(r *rig) { test(r, clock) }, hostsim.WithClock(clock))
}

// TestClockSetWhileReading: a drive that answers slowly has not been silent for a year because the clock was set
// forward, or the machine was suspended, while a request was under way. It is not released for that.
func TestClockSetWhileReading(t *testing.T) {
	t.Parallel()
	onClock(t, drivemgr.Options{ReleaseAt: drivebay.HealthBad, Poll: time.Minute}, func(r *rig, clock *hosttest.Clock) {
		d := r.pick(drivebay.ProtocolNVMe, 1)
		r.must(r.mgr.Claim(r.Context(), d.ID, true))
		r.inject(d.Serial, "slow", "delay=2s")
		for range 30 { // a request is under way at one of these moments
			time.Sleep(5 * time.Second)
			clock.Set(7 * 24 * time.Hour)
			time.Sleep(3 * time.Second)
			if is := r.drive(d.ID); is.Health != drivebay.HealthGood || is.Usage != drivebay.UsageInUse {
				r.Errorf("the drive is %v, %v: %+v", is.Health, is.Usage, is.Findings)
				break
			}
		}
		r.inject(d.Serial, "heal")
		time.Sleep(time.Minute)
	})
}

// TestClockSetBackWhileHung: a drive that hangs is found also where the clock was set back after its last answer.
func TestClockSetBackWhileHung(t *testing.T) {
	t.Parallel()
	onClock(t, drivemgr.Options{Poll: time.Minute}, func(r *rig, clock *hosttest.Clock) {
		d := r.pick(drivebay.ProtocolNVMe, 1)
		r.inject(d.Serial, "hang")
		time.Sleep(90 * time.Second)
		clock.Set(-year)
		time.Sleep(10 * time.Minute)
		if is := r.drive(d.ID); is.Health != drivebay.HealthBad || is.Kernel.LaneStuck < 5*time.Minute {
			r.Errorf("the drive is %v, held for %v: %+v", is.Health, is.Kernel.LaneStuck, is.Findings)
		}
		r.inject(d.Serial, "heal")
		time.Sleep(time.Minute)
	})
}
