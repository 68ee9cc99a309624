package drivemgr_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

func (r *rig) must(errs ...error) {
	r.Helper()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
}

// takenOut claims a drive and leads it out.
func (r *rig) takenOut(d *drivebay.Drive) {
	r.Helper()
	r.must(r.mgr.Claim(r.Context(), d.ID, true), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""),
		r.mgr.Emptied(r.Context(), d.ID), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveApprove, ""))
	time.Sleep(5 * time.Second)
	if is := r.drive(d.ID); is.Usage != drivebay.UsageRemoved || is.Status != drivebay.StatusOffline {
		r.Fatalf("it is %v, %v: %+v", is.Usage, is.Status, is.Leaving)
	}
}

// told returns the causes of the events of a kind about a drive.
func (r *rig) told(kind drivebay.EventKind, drive string) (causes []string) {
	for _, e := range r.mgr.Events(0, 0) {
		if e.Kind == kind && e.Drive == drive {
			causes = append(causes, e.Cause)
		}
	}
	return causes
}

// says wants one event of a kind about a drive, with some words in it.
func (r *rig) says(kind drivebay.EventKind, drive string, words ...string) {
	r.Helper()
	causes := r.told(kind, drive)
	if len(causes) != 1 {
		r.Errorf("%s: %q are told of drive %s, want one", kind, causes, drive)
		return
	}
	for _, w := range words {
		if !strings.Contains(causes[0], w) {
			r.Errorf("%s: %q is not in %q", kind, w, causes[0])
		}
	}
}

func (r *rig) named(serial string) *drivebay.Drive {
	r.Helper()
	time.Sleep(time.Minute)
	return r.drive(serial)
}

func (r *rig) reads(file string) string {
	r.Helper()
	b, err := r.sim.ReadFile(file)
	r.must(err)
	return strings.TrimSpace(string(b))
}

var spoken = []drivebay.Protocol{drivebay.ProtocolATA, drivebay.ProtocolNVMe}

// The successor in the bay takes over the claim, once, and the lights go out.
func TestSuccessor(t *testing.T) {
	for _, p := range spoken {
		onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
			d := r.pick(p, 2)
			r.takenOut(d)
			r.says(drivebay.EventVanished, d.ID)
			left, right := r.pick(p, 1), r.pick(p, 3)
			if causes := r.told(drivebay.EventUsage, d.ID); !strings.Contains(strings.Join(causes, "\n"), "safe to pull: the kernel has removed the device: bay "+d.Slot.Bay) ||
				!strings.Contains(causes[len(causes)-1], left.Serial) || !strings.Contains(causes[len(causes)-1], right.Serial) {
				r.Errorf("%v: %q", p, causes)
			}
			if d.Slot.Fault != "" && r.reads(d.Slot.Fault) != "1" {
				r.Errorf("%v: the fault light is not lit", p)
			}
			r.inject(d.Serial, "replace", "serial=NEXT")
			next := r.named("NEXT")
			if next.Claim == nil || next.Claim.By != drivebay.ClaimedByOperator || next.Succeeds == nil || next.Succeeds.Of != d.ID || next.Succeeds.Taken.IsZero() {
				r.Fatalf("%v: %+v, %+v", p, next.Claim, next.Succeeds)
			}
			r.says(drivebay.EventReplaced, next.ID, "replaces drive "+d.ID, "claim")
			if r.reads(next.Slot.Locate) != "0" || next.Slot.Lit || d.Slot.Fault != "" && r.reads(d.Slot.Fault) != "0" {
				r.Errorf("%v: a light is lit", p)
			}
		})
	}
}

// The old drive back after it was replaced is kept apart.
func TestOldDriveBack(t *testing.T) {
	onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d, spare := r.pick(drivebay.ProtocolATA, 2), r.pick(drivebay.ProtocolATA, 3)
		r.inject(spare.Serial, "vanish")
		r.takenOut(d)
		r.inject(d.Serial, "replace", "serial=NEXT")
		next := r.named("NEXT")
		r.inject(d.Serial, "move", "to="+spare.Slot.Bay[len("Slot "):])
		back := r.named(d.Serial)
		if back.Status != drivebay.StatusOnline || back.Usage != drivebay.UsageRemoved || len(back.Refusals()) == 0 {
			r.Errorf("it is %v, %v", back.Status, back.Usage)
		}
		r.says(drivebay.EventQuarantined, d.ID, "writes nothing to it", "drivebay accept "+d.ID)
		if next = r.drive(next.ID); next.Claim == nil || next.Succeeds.Taken.IsZero() {
			r.Errorf("the successor: %+v", next)
		}
		r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveAccept, ""))
		synctest.Wait()
		if back = r.drive(d.ID); back.Usage != drivebay.UsageInUse {
			r.Errorf("accepted, it is %v", back.Usage)
		}
	})
}

// What is put into the bay and does not fit inherits nothing until an operator says so.
func TestUnfitSuccessor(t *testing.T) {
	for _, tc := range []struct {
		name, args, why string
		claimable       bool
	}{
		{"smaller", "size=4TB", "bytes, the old drive", true},
		{"another type", "kind=sata-ssd", "is of type SSD, the old drive of type HDD", true},
		{"foreign", "content=ext4", "foreign content: ext4", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onRack(t, 12, store.Memory(), drivemgr.Options{}, func(r *rig) {
				d := r.pick(drivebay.ProtocolATA, 2)
				r.takenOut(d)
				r.inject(d.Serial, "replace", "serial=NEXT", tc.args)
				next := r.named("NEXT")
				if next.Claim != nil || next.Succeeds == nil || !next.Succeeds.Taken.IsZero() || !strings.Contains(next.Succeeds.Against, tc.why) {
					r.Fatalf("%+v, %+v", next.Claim, next.Succeeds)
				}
				time.Sleep(5 * time.Minute)
				r.says(drivebay.EventNotReplaced, next.ID, tc.why, "drivebay claim "+next.ID)
				if r.reads(d.Slot.Fault) != "1" {
					r.Error("the fault light is out")
				}
				err := r.mgr.Claim(r.Context(), next.ID, true)
				synctest.Wait()
				next = r.drive(next.ID)
				if (err == nil) != tc.claimable || next.Succeeds.Taken.IsZero() == tc.claimable || (r.reads(d.Slot.Fault) == "0") != tc.claimable {
					r.Errorf("claimed: %v, %+v", err, next.Succeeds)
				}
			})
		})
	}
}

// Another drive in the bay of one that is only missing takes nothing: that one is
// expected back, until an operator lets go of it.
func TestAnotherDriveInTheBayOfAMissingOne(t *testing.T) {
	for _, back := range []bool{true, false} {
		onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
			d, other := r.pick(drivebay.ProtocolATA, 2), r.pick(drivebay.ProtocolATA, 3)
			r.must(r.mgr.Claim(r.Context(), d.ID, true))
			r.inject(other.Serial, "vanish")
			r.inject(d.Serial, "replace", "serial=NEXT")
			next := r.named("NEXT")
			if next.Claim != nil || next.Succeeds == nil || !next.Succeeds.Taken.IsZero() {
				r.Fatalf("%+v, %+v", next.Claim, next.Succeeds)
			}
			r.says(drivebay.EventNotReplaced, next.ID, "absent and was not released", "put it back", "drivebay replace "+d.ID)
			if back {
				r.inject(d.Serial, "move", "to="+other.Slot.Bay[len("Slot "):])
				if is := r.named(d.Serial); is.Claim == nil || is.Usage != drivebay.UsageInUse || r.drive(next.ID).Succeeds != nil {
					r.Errorf("back in another bay: %+v, the other %+v", is, r.drive(next.ID).Succeeds)
				}
				return
			}
			r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveForce, "it is lost"))
			if next := r.named("NEXT"); next.Claim == nil || next.Succeeds.Taken.IsZero() || r.drive(d.ID).Usage != drivebay.UsageRemoved {
				r.Errorf("let go: %+v, %+v", next.Claim, next.Succeeds)
			}
		})
	}
}

// A hand at the wrong sled is told which one to put back.
func TestWrongDrivePulled(t *testing.T) {
	for _, p := range spoken {
		onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
			d, wrong := r.pick(p, 2), r.pick(p, 3)
			r.takenOut(d)
			r.inject(wrong.Serial, "vanish")
			time.Sleep(5 * time.Second)
			r.says(drivebay.EventWrongPulled, wrong.ID, "put the drive with serial "+wrong.Serial+" back into bay "+wrong.Slot.Bay, "the drive to pull is "+d.ID, d.Serial)
			r.inject(wrong.Serial, "return")
			if is := r.named(wrong.Serial); is.Status != drivebay.StatusOnline || is.Usage != drivebay.UsageInUse {
				r.Errorf("%v: back, it is %v, %v", p, is.Status, is.Usage)
			}
			// With the successor in the bay nobody is expected to pull anything.
			r.inject(d.Serial, "replace", "serial=NEXT")
			time.Sleep(time.Minute)
			r.inject(wrong.Serial, "vanish")
			time.Sleep(time.Minute)
			r.says(drivebay.EventWrongPulled, wrong.ID)
		})
	}
}

// Drives that change their bays stay what they are.
func TestSwapped(t *testing.T) {
	for _, p := range spoken {
		onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
			a, b := r.pick(p, 2), r.pick(p, 3)
			r.must(r.mgr.Claim(r.Context(), a.ID, true))
			r.sim.Inject(hostsim.Fault{Drive: a.Serial, Fault: "swap", Args: hostsim.Args{"with": strings.TrimPrefix(b.Slot.Bay, "Slot ")}})
			time.Sleep(time.Minute)
			isA, isB := r.drive(a.ID), r.drive(b.ID)
			if isA.Slot.Bay != b.Slot.Bay || isB.Slot.Bay != a.Slot.Bay || isA.Claim == nil || isB.Claim != nil || isA.Succeeds != nil || isB.Succeeds != nil {
				r.Errorf("%v: %+v\n%+v", p, isA, isB)
			}
			if n := len(r.told(drivebay.EventSwapped, a.ID)) + len(r.told(drivebay.EventSwapped, b.ID)); n != 1 {
				r.Errorf("%v: %d events tell of it", p, n)
			}
		})
	}
}

// A drive that is known takes nobody's place.
func TestKnownDriveInTheBay(t *testing.T) {
	onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d, other := r.pick(drivebay.ProtocolATA, 2), r.pick(drivebay.ProtocolATA, 3)
		r.takenOut(d)
		r.inject(other.Serial, "move", "to="+d.Slot.Bay[len("Slot "):])
		if is := r.named(other.Serial); is.Claim != nil || is.Succeeds != nil || is.Slot.Bay != d.Slot.Bay {
			r.Errorf("%+v", is)
		}
		r.says(drivebay.EventNotReplaced, other.ID, "does not replace drive "+d.ID, "known before")
	})
}

// Power that is lost while a drive is taken out: it is taken out when there is power again.
func TestPowerLostWhileRemoving(t *testing.T) {
	st := store.Memory()
	var id string
	onRack(t, 24, st, drivemgr.Options{}, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 2)
		id = d.ID
		r.must(r.mgr.Claim(r.Context(), id, true), r.mgr.Operate(r.Context(), id, drivebay.LeaveRelease, "it clicks"), r.mgr.Emptied(r.Context(), id))
	})
	records, err := st.Records()
	if err != nil {
		t.Fatal(err)
	}
	rec := records[id] // as it is on disk in the moment before the kernel is told
	if rec.Usage, err = rec.Usage.Next(drivebay.UsageApprove); err != nil {
		t.Fatal(err)
	}
	if err := st.PutRecords(map[string]drivebay.Record{id: rec}); err != nil {
		t.Fatal(err)
	}
	onRack(t, 24, st, drivemgr.Options{}, func(r *rig) {
		if is := r.drive(id); is.Usage != drivebay.UsageRemoved || is.Status != drivebay.StatusOffline || is.Leaving.Why != "it clicks" {
			r.Errorf("it is %v, %v: %+v", is.Usage, is.Status, is.Leaving)
		}
		if causes := strings.Join(r.told(drivebay.EventUsage, id), "\n"); !strings.Contains(causes, "removal continues after a restart") {
			r.Error(causes)
		}
		d := r.drive(id)
		r.inject(d.Serial, "replace", "serial=NEXT")
		if next := r.named("NEXT"); next.Claim == nil {
			r.Errorf("the successor: %+v", next.Succeeds)
		}
	})
}

// By force a drive goes with what is on it, but not from under a mount, and never the
// machine's own.
func TestForce(t *testing.T) {
	onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d := r.pick(drivebay.ProtocolSCSI, 2)
		force := func() error { return r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveForce, "it is dead") }
		if err := force(); !errors.Is(err, drivebay.ErrInvalid) {
			r.Errorf("a drive in use: %v", err)
		}
		r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""), r.mgr.LeaveFailed(r.Context(), d.ID, "it cannot be read"))
		synctest.Wait()
		if time.Sleep(time.Second); r.reads(d.Slot.Fault) != "1" || !r.drive(d.ID).Slot.FaultLit {
			r.Error("the fault light of a FAILED drive is not lit")
		}
		r.must(force())
		time.Sleep(5 * time.Second)
		if is := r.drive(d.ID); is.Usage != drivebay.UsageRemoved || is.Status != drivebay.StatusOffline {
			r.Errorf("it is %v, %v", is.Usage, is.Status)
		}
		for _, o := range r.mgr.Snapshot().Drives {
			if err := r.mgr.Operate(r.Context(), o.ID, drivebay.LeaveForce, ""); o.System && !errors.Is(err, drivebay.ErrRefused) {
				r.Errorf("a system drive: %v", err)
			}
		}
	})
}

// The lights of NPEM are those of the port, so they stay when the drive is gone.
func TestLightsOfPorts(t *testing.T) {
	spec := hostsim.Spec{Enclosures: []hostsim.Enclosure{{Name: "flash", Kind: hostsim.EnclosurePCI, Bays: 4, NPEM: true}},
		Drives: []hostsim.Group{{Bays: "0-3", Kind: hostsim.KindNVMe, Serial: "NV{n}"}}}
	onSpec(t, spec, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d := r.drive("NV0002")
		if !strings.HasSuffix(d.Slot.Locate, ":enclosure:locate/brightness") || !strings.HasSuffix(d.Slot.Fault, ":enclosure:fail/brightness") {
			r.Fatalf("%+v", d.Slot)
		}
		r.takenOut(d)
		if r.reads(d.Slot.Locate) != "1" || r.reads(d.Slot.Fault) != "1" || !strings.Contains(r.mgr.Snapshot().Light(r.drive(d.ID)), "its light and its fault light are lit") {
			r.Errorf("%s", r.mgr.Snapshot().Light(r.drive(d.ID)))
		}
		r.inject(d.Serial, "replace", "serial=NEXT")
		if next := r.named("NEXT"); r.reads(next.Slot.Locate) != "0" || r.reads(next.Slot.Fault) != "0" || next.Slot.Lit || next.Slot.FaultLit {
			r.Errorf("a light is lit: %+v", next.Slot)
		}
		told := 0
		for _, e := range r.mgr.Events(0, 0) {
			if e.Kind == drivebay.EventFaultLight {
				told++
			}
		}
		if told != 2 {
			r.Errorf("%d events of fault lights", told)
		}
	})
}

// A drive that was put into the bay of a missing one, and out again, is no successor.
func TestNewcomerGoesElsewhere(t *testing.T) {
	onRack(t, 24, store.Memory(), drivemgr.Options{}, func(r *rig) {
		d, other := r.pick(drivebay.ProtocolATA, 2), r.pick(drivebay.ProtocolATA, 3)
		r.must(r.mgr.Claim(r.Context(), d.ID, true))
		r.inject(other.Serial, "vanish")
		r.inject(d.Serial, "replace", "serial=NEXT")
		r.inject("NEXT", "move", "to="+other.Slot.Bay[len("Slot "):])
		r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveForce, ""))
		if next := r.named("NEXT"); next.Claim != nil || next.Succeeds != nil {
			r.Errorf("%+v, %+v", next.Claim, next.Succeeds)
		}
	})
}
