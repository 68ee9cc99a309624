package drivemgr_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

// TestSuccessorOfShrunkDrive: a drive that reported too few bytes at its end has not become small. A smaller one does not inherit its claim.
func TestSuccessorOfShrunkDrive(t *testing.T) {
	onRack(t, 12, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 2)
		r.must(r.mgr.Claim(r.Context(), d.ID, true))
		r.inject(d.Serial, "resize", "size=1GB")
		time.Sleep(time.Minute)
		if is := r.drive(d.ID); is.SizeIssue == "" {
			r.Fatalf("%+v", is)
		}
		r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""),
			r.mgr.Emptied(r.Context(), d.ID), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveApprove, ""))
		time.Sleep(5 * time.Second)
		r.inject(d.Serial, "replace", "serial=NEXT", "size=1TB")
		next := r.named("NEXT")
		if next.Claim != nil || next.Succeeds == nil || !next.Succeeds.Taken.IsZero() {
			r.Errorf("a drive of %d bytes took the place of one of %d bytes: %+v, %+v", next.Size, d.Size, next.Claim, next.Succeeds)
		}
	})
}

// TestAcceptedIsReplacedAgain: a drive that was replaced, repaired and accepted is replaced again like any other.
func TestAcceptedIsReplacedAgain(t *testing.T) {
	onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d, spare := r.pick(drivebay.ProtocolATA, 2), r.pick(drivebay.ProtocolATA, 3)
		r.inject(spare.Serial, "vanish")
		r.takenOut(d)
		r.inject(d.Serial, "replace", "serial=NEXT")
		_ = r.named("NEXT")
		r.inject(d.Serial, "move", "to="+spare.Slot.Bay[len("Slot "):])
		_ = r.named(d.Serial)
		r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveAccept, ""))
		synctest.Wait()
		r.takenOut(r.drive(d.ID))
		fault := r.drive(d.ID).Slot.Fault
		if fault != "" && r.reads(fault) != "1" {
			r.Error("the fault light of the bay is not lit")
		}
		r.inject(d.Serial, "replace", "serial=SECOND")
		next := r.named("SECOND")
		if next.Claim == nil || next.Succeeds == nil || next.Succeeds.Of != d.ID || next.Succeeds.Taken.IsZero() {
			r.Errorf("%+v, %+v", next.Claim, next.Succeeds)
		}
	})
}

// TestBackAndNotRead: a drive that is back and does not answer has an unknown content, whatever it had before, and cannot be claimed.
func TestBackAndNotRead(t *testing.T) {
	onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d := r.blank()
		r.inject(d.Serial, "vanish")
		time.Sleep(time.Minute)
		r.inject(d.Serial, "return")
		r.inject(d.Serial, "hang")
		time.Sleep(10 * time.Second)
		is := r.drive(d.ID)
		if is.Status != drivebay.StatusOnline {
			r.Fatal(is.Status)
		}
		defer func() { r.inject(d.Serial, "heal"); time.Sleep(time.Minute) }()
		if is.Content.Kind == drivebay.ContentBlank {
			r.Errorf("not read since it is back, and blank: %+v, %v", is.Content, is.Findings)
		}
		if err := r.mgr.Claim(r.Context(), d.ID, true); err == nil {
			r.Error("it can be claimed")
		}
	})
}

// TestReleaseBeforeAllWereRead: after a restart no drive is released for its health before all were read: which of them turned BAD
// together is not known.
func TestReleaseBeforeAllWereRead(t *testing.T) {
	st := store.Memory()
	opt := drivemgr.Options{ReleaseAt: drivebay.HealthBad, Poll: time.Minute, ReadTimeout: 2 * time.Minute}
	var a, b *drivebay.Drive
	onRack(t, 12, st, opt, func(r *rig) {
		a, b = r.pick(drivebay.ProtocolSCSI, 2), r.pick(drivebay.ProtocolSCSI, 3)
		r.must(r.mgr.Claim(r.Context(), a.ID, true), r.mgr.Claim(r.Context(), b.ID, true))
	})
	as := func(m *hostsim.Machine) host.Machine { // while the daemon was stopped, both turned bad; one answers slowly
		for _, f := range []hostsim.Fault{{Drive: a.Serial, Fault: "fail"}, {Drive: b.Serial, Fault: "fail"}, {Drive: b.Serial, Fault: "slow", Args: hostsim.Args{"delay": "250ms"}}} {
			if err := m.Inject(f); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	onSeen(t, hostsim.Generate(12), st, opt, as, func(r *rig) {
		time.Sleep(5 * time.Minute)
		defer func() { r.inject(b.Serial, "heal"); time.Sleep(time.Minute) }()
		for _, d := range []*drivebay.Drive{a, b} {
			if is := r.drive(d.ID); is.Health != drivebay.HealthBad || is.Usage != drivebay.UsageInUse {
				r.Errorf("%s is %v, %v: %+v", d.ID, is.Health, is.Usage, is.Leaving)
			}
		}
	})
}
