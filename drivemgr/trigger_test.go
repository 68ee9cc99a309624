package drivemgr_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
)

// TestBadDrivesAreReleased: one at a time, with the finding for a reason; not what an
// operator keeps, nor what was never claimed.
func TestBadDrivesAreReleased(t *testing.T) {
	opt := drivemgr.Options{ReleaseAt: drivebay.HealthBad, Poll: time.Minute}
	onRack(t, 12, store.Memory(), opt, func(r *rig) {
		usage := func(d *drivebay.Drive) drivebay.Usage { synctest.Wait(); return r.drive(d.ID).Usage }
		first, second, unclaimed := r.pick(drivebay.ProtocolNVMe, 1), r.pick(drivebay.ProtocolNVMe, 2), r.pick(drivebay.ProtocolSCSI, 3)
		r.must(r.mgr.Claim(r.Context(), first.ID, true), r.mgr.Claim(r.Context(), second.ID, true))
		r.inject(unclaimed.Serial, "fail")
		r.inject(first.Serial, "critical-warning", "bits=0x04")
		time.Sleep(11 * time.Minute)
		r.inject(second.Serial, "critical-warning", "bits=0x04")
		time.Sleep(3 * time.Minute)
		if is := r.drive(first.ID); is.Usage != drivebay.UsageReleasing || !strings.HasPrefix(is.Leaving.Why, "BAD: ") {
			r.Fatalf("%v, %v, %+v", is.Health, is.Usage, is.Leaving)
		}
		if u, v := usage(second), usage(unclaimed); u != drivebay.UsageInUse || v != drivebay.UsageInUse {
			r.Errorf("while one leaves, another is %v, and an unclaimed one %v", u, v)
		}
		r.must(r.mgr.Operate(r.Context(), first.ID, drivebay.LeaveCancel, ""))
		time.Sleep(5 * time.Minute)
		if u, v := usage(first), usage(second); u != drivebay.UsageInUse || v != drivebay.UsageReleasing {
			r.Errorf("cancelled, the first is %v, the second %v", u, v)
		}
		r.must(r.mgr.Emptied(r.Context(), second.ID))
		r.inject(first.Serial, "critical-warning", "bits=0x0c") // worse than what was accepted
		time.Sleep(5 * time.Minute)
		if u := usage(first); u != drivebay.UsageReleasing {
			r.Errorf("with another finding the first is %v: %+v", u, r.drive(first.ID).Findings)
		}
	})
}

// TestReleaseNeedsTheCause: a drive that was silent for one round, and answers again, is not released while the finding
// of that round lasts.
func TestReleaseNeedsTheCause(t *testing.T) {
	opt := drivemgr.Options{ReleaseAt: drivebay.HealthBad, Poll: time.Minute}
	onRack(t, 12, store.Memory(), opt, func(r *rig) {
		d := r.pick(drivebay.ProtocolNVMe, 1)
		r.must(r.mgr.Claim(r.Context(), d.ID, true))
		r.inject(d.Serial, "hang")
		for range 3000 {
			if time.Sleep(100 * time.Millisecond); r.drive(d.ID).Health == drivebay.HealthBad {
				break
			}
		}
		r.inject(d.Serial, "heal")
		time.Sleep(5 * time.Minute)
		if is := r.drive(d.ID); is.Health != drivebay.HealthBad || is.Usage != drivebay.UsageInUse {
			r.Errorf("after one round the drive is %v, %v: %+v", is.Health, is.Usage, is.Leaving)
		}
		r.inject(d.Serial, "hang")
		time.Sleep(5 * time.Minute)
		if is := r.drive(d.ID); is.Usage != drivebay.UsageReleasing {
			r.Errorf("while it hangs the drive is %v, %v", is.Health, is.Usage)
		}
		r.inject(d.Serial, "heal")
		time.Sleep(time.Minute)
	})
}

// Drives of one enclosure that turn together are left alone: it is hardly the drives.
func TestDrivesThatTurnTogetherStay(t *testing.T) {
	st := store.Memory()
	opt := drivemgr.Options{ReleaseAt: drivebay.HealthBad, Poll: time.Minute}
	onRack(t, 12, st, opt, func(r *rig) {
		a, b := r.pick(drivebay.ProtocolSCSI, 2), r.pick(drivebay.ProtocolSCSI, 3)
		for _, d := range []*drivebay.Drive{a, b} {
			r.must(r.mgr.Claim(r.Context(), d.ID, true))
			r.inject(d.Serial, "fail")
		}
		r.must(r.mgr.Refresh(r.Context()))
		time.Sleep(5 * time.Minute)
		for _, d := range []*drivebay.Drive{a, b} {
			if is := r.drive(d.ID); is.Health != drivebay.HealthBad || is.Usage != drivebay.UsageInUse {
				r.Errorf("it is %v, %v", is.Health, is.Usage)
			}
			r.says(drivebay.EventNotReleased, d.ID, "a cable, a backplane or a controller", d.Slot.Enclosure)
		}
	})
}
