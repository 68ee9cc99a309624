package drivemgr_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/store"
)

// TestLeave leads drives of every protocol out of the machine and their successors
// in: what an operator has said of the old drive holds for the one in its bay.
func TestLeave(t *testing.T) {
	for _, p := range []drivebay.Protocol{drivebay.ProtocolATA, drivebay.ProtocolSCSI, drivebay.ProtocolNVMe} {
		onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
			d := r.pick(p, 2)
			must := func(errs ...error) {
				r.Helper()
				if err := errors.Join(errs...); err != nil {
					r.Fatal(err)
				}
			}
			usage := func(want drivebay.Usage, why string) {
				r.Helper()
				synctest.Wait() // until it is published
				if is := r.drive(d.ID); is.Usage != want || (is.Leaving == nil) != (why == "") || is.Leaving != nil && !strings.Contains(is.Leaving.Why+is.Leaving.Cause, why) {
					r.Fatalf("%v: it is %v, %+v", p, is.Usage, is.Leaving)
				}
			}
			must(r.mgr.Claim(r.Context(), d.ID, true), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, "it clicks"))
			usage(drivebay.UsageReleasing, "clicks")
			if err := r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveApprove, ""); !errors.Is(err, drivebay.ErrBusy) {
				r.Errorf("%v: taken out while it is released: %v", p, err)
			}
			must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveCancel, ""))
			usage(drivebay.UsageInUse, "")
			must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, "it clicks"), r.mgr.Waiting(r.Context(), d.ID, "volume x is in use", nil))
			usage(drivebay.UsageReleasing, "volume x")
			must(r.mgr.LeaveFailed(r.Context(), d.ID, "a read failed"))
			usage(drivebay.UsageFailed, "a read failed")
			must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRetry, ""), r.mgr.Emptied(r.Context(), d.ID))
			usage(drivebay.UsageReleased, "clicks")
			must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveApprove, ""))
			time.Sleep(5 * time.Second)
			usage(drivebay.UsageRemoved, "clicks")
			if is := r.drive(d.ID); is.Status != drivebay.StatusOffline {
				r.Errorf("%v: taken out, it is %v", p, is.Status)
			}
			if err := r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveAccept, ""); !errors.Is(err, drivebay.ErrInvalid) {
				r.Errorf("%v: accepted while it is out: %v", p, err)
			}

			// The old drive back is nobody's, until somebody says otherwise.
			r.inject(d.Serial, "return")
			time.Sleep(time.Minute)
			usage(drivebay.UsageRemoved, "clicks")
			if why := r.drive(d.ID).Refusals(); len(why) != 1 {
				r.Errorf("%v: back again, it is refused for %q", p, why)
			}
			// A sled that is changed while nobody readings is another drive.
			r.inject(d.Serial, "change-serial", "serial=SUCCESSOR")
			time.Sleep(time.Minute)
			next, ok := r.mgr.Snapshot().Find("SUCCESSOR")
			if !ok || next.Usage != drivebay.UsageInUse || next.Claim == nil || next.Slot.Bay != d.Slot.Bay {
				r.Fatalf("%v: the successor: %+v", p, next)
			}
			must(r.mgr.Claim(r.Context(), next.ID, false))
			time.Sleep(10 * time.Minute)
			if r.drive(next.ID).Claim != nil {
				r.Errorf("%v: it is claimed again by itself", p)
			}
			told := 0
			for _, e := range r.mgr.Events(0, 0) {
				if e.Kind == drivebay.EventUsage && e.Drive == d.ID {
					told++
				}
			}
			if told != 8 {
				r.Errorf("%v: %d moves are told of", p, told)
			}
		})
	}
}

// TestLeaveRefused: what the machine runs from stays.
func TestLeaveRefused(t *testing.T) {
	onRack(t, 24, nil, drivemgr.Options{}, func(r *rig) {
		for _, d := range r.mgr.Snapshot().Drives {
			if d.System {
				if err := r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""); !errors.Is(err, drivebay.ErrRefused) {
					r.Errorf("a system drive: %v", err)
				}
			}
		}
		if err := r.mgr.Operate(r.Context(), "nobody", drivebay.LeaveRelease, ""); !errors.Is(err, drivebay.ErrNotFound) {
			r.Errorf("nobody: %v", err)
		}
	})
}
