package drivemgr_test

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/internal/store"
)

// slowEnclosure takes a moment to read and to write its lights, as SES does.
type slowEnclosure struct {
	host.Machine
	slow        func(file string) bool
	read, write time.Duration
}

func isFault(name string) bool { return strings.HasSuffix(name, "/fault") }

func isLight(name string) bool {
	return isFault(name) || strings.HasSuffix(name, "/locate")
}

func (s slowEnclosure) ReadFile(name string) ([]byte, error) {
	b, err := s.Machine.ReadFile(name)
	if s.slow(name) {
		time.Sleep(s.read)
	}
	return b, err
}

func (s slowEnclosure) WriteFile(name string, b []byte) error {
	if s.slow(name) {
		time.Sleep(s.write)
		defer time.Sleep(s.write)
	}
	return s.Machine.WriteFile(name, b)
}

// TestSwitchedLightBeatsOlderListing: a listing that read a light before it was switched
// does not say that it is off, however slow the enclosure is.
func TestSwitchedLightBeatsOlderListing(t *testing.T) {
	const moment = 5 * time.Millisecond
	for _, e := range []slowEnclosure{
		{nil, isLight, 0, moment}, {nil, isLight, moment, 0}, {nil, isLight, moment, moment}, {nil, isLight, 20 * moment, moment},
		{nil, isFault, moment, 0}, {nil, isFault, moment, moment}, {nil, isFault, moment, 3 * moment}, {nil, isFault, 20 * moment, 10 * moment},
	} {
		slow := func(m *hostsim.Machine) host.Machine { e.Machine = m; return e }
		onSeen(t, hostsim.Generate(17), store.Memory(), drivemgr.Options{Rescan: 30 * time.Second}, slow, func(r *rig) {
			d := r.pick(drivebay.ProtocolATA, 2)
			r.takenOut(d)
			for after := time.Duration(0); after < 3*time.Minute; after += 5 * time.Second {
				s := r.mgr.Snapshot()
				is, _ := s.Find(d.ID)
				if text := s.Light(is); r.reads(d.Slot.Fault) != "1" || !strings.Contains(text, "its fault light are lit") {
					r.Fatalf("reads take %v, writes %v, after %v: the file says %s, the snapshot %q", e.read, e.write, after, r.reads(d.Slot.Fault), text)
				}
				time.Sleep(5 * time.Second)
			}
			o := r.pick(drivebay.ProtocolATA, 4)
			for range 20 { // a listing is under way in some of these moments
				go r.mgr.Refresh(r.Context())
				time.Sleep(moment / 2)
				for _, on := range []bool{true, false} {
					r.must(r.mgr.Locate(r.Context(), o.Slot.Bay, on))
					time.Sleep(time.Second)
					if lit := r.drive(o.ID).Slot.Lit; lit != on || (r.reads(o.Slot.Locate) == "1") != on {
						r.Fatalf("reads take %v, writes %v: the light is %s, the snapshot says %v", e.read, e.write, r.reads(o.Slot.Locate), lit)
					}
				}
			}
			time.Sleep(time.Minute) // the last listing has ended
		})
	}
}

// TestLightIsTriedAgain: a fault light that could not be switched is switched when the
// enclosure answers again.
func TestLightIsTriedAgain(t *testing.T) {
	var deaf *deafEnclosure
	as := func(m *hostsim.Machine) host.Machine { deaf = &deafEnclosure{Machine: m}; return deaf }
	onSeen(t, hostsim.Generate(24), store.Memory(), drivemgr.Options{}, as, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 2)
		deaf.on.Store(true)
		r.takenOut(d)
		time.Sleep(time.Minute)
		if r.reads(d.Slot.Fault) == "1" {
			r.Fatal("it was lit without an answer")
		}
		deaf.on.Store(false)
		time.Sleep(2 * time.Minute)
		if s := r.mgr.Snapshot(); r.reads(d.Slot.Fault) != "1" || !strings.Contains(s.Light(r.drive(d.ID)), "fault light is lit") {
			r.Error("it is not lit after the enclosure answers again")
		}
	})
}

type deafEnclosure struct {
	host.Machine
	on atomic.Bool
}

func (e *deafEnclosure) WriteFile(name string, b []byte) error {
	if e.on.Load() && isLight(name) {
		return host.ErrTimeout
	}
	return e.Machine.WriteFile(name, b)
}

// slowSysfs is a machine in which a listing can be held up before it reads the last
// drive.
type slowSysfs struct {
	host.Machine
	last string
	file string       // that is held up; "": size
	hold atomic.Int64 // for how long, once
}

func (s *slowSysfs) ReadFile(name string) ([]byte, error) {
	if s.hold.Load() > 0 && strings.HasSuffix(name, "/block/"+s.last+"/"+cmp.Or(s.file, "size")) {
		time.Sleep(time.Duration(s.hold.Swap(0)))
	}
	return s.Machine.ReadFile(name)
}

// TestOlderListingIsNotTaken: a listing that began before another one, and ends after
// it, does not bring back what left meanwhile.
func TestOlderListingIsNotTaken(t *testing.T) {
	slow := &slowSysfs{}
	as := func(m *hostsim.Machine) host.Machine { slow.Machine = m; return slow }
	onSeen(t, hostsim.Generate(24), store.Memory(), drivemgr.Options{}, as, func(r *rig) {
		d := r.pick(drivebay.ProtocolATA, 2)
		o := r.pick(drivebay.ProtocolATA, 3)
		r.must(r.mgr.Claim(r.Context(), d.ID, true), r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveRelease, ""), r.mgr.Emptied(r.Context(), d.ID))
		for _, x := range r.mgr.Snapshot().Drives {
			if x.Protocol == drivebay.ProtocolATA || x.Protocol == drivebay.ProtocolSCSI {
				slow.last = max(slow.last, x.Name)
			}
		}
		slow.hold.Store(int64(10 * time.Second))
		go r.mgr.Refresh(r.Context()) // has read both, and is held up
		time.Sleep(time.Second)
		r.must(r.mgr.Operate(r.Context(), d.ID, drivebay.LeaveApprove, ""))
		r.inject(o.Serial, "vanish")
		time.Sleep(time.Minute)
		if is := r.drive(d.ID); is.Status != drivebay.StatusOffline || is.Usage != drivebay.UsageRemoved {
			r.Errorf("it is %v, %v", is.Status, is.Usage)
		}
		for _, kind := range []drivebay.EventKind{drivebay.EventQuarantined, drivebay.EventReturned} {
			for _, id := range []string{d.ID, o.ID} {
				if told := r.told(kind, id); len(told) > 0 {
					r.Errorf("drive %s: %s: %q", id, kind, told)
				}
			}
		}
	})
}

// TestEventsAreInTheSnapshot: who hears of something finds it in the snapshot, and so
// does who did it. An event is heard in the log first.
func TestEventsAreInTheSnapshot(t *testing.T) {
	var hear func(kind drivebay.EventKind, drive string)
	log := slog.New(listener{slog.DiscardHandler, func(kind drivebay.EventKind, drive string) {
		if hear != nil {
			hear(kind, drive)
		}
	}})
	onRack(t, 24, store.Memory(), drivemgr.Options{Log: log}, func(r *rig) {
		d, o := r.pick(drivebay.ProtocolATA, 2), r.pick(drivebay.ProtocolATA, 3)
		heard := map[drivebay.EventKind]int{}
		hear = func(kind drivebay.EventKind, drive string) {
			heard[kind]++
			is, known := r.mgr.Snapshot().Find(drive)
			if !known || kind == drivebay.EventVanished && is.Status != drivebay.StatusOffline || kind == drivebay.EventCordon && !is.Cordoned {
				r.Errorf("%s of drive %s is told, and the snapshot has %+v", kind, drive, is)
			}
		}
		r.must(r.mgr.Cordon(r.Context(), d.ID, true))
		if !r.drive(d.ID).Cordoned {
			r.Error("it is cordoned and the snapshot does not say so")
		}
		r.inject(o.Serial, "replace", "serial=NEXT")
		time.Sleep(time.Minute)
		hear = nil
		if heard[drivebay.EventCordon] != 1 || heard[drivebay.EventVanished] != 1 || heard[drivebay.EventAppeared] != 1 {
			r.Errorf("told: %v", heard)
		}
	})
}

// listener hears of events by the log.
type listener struct {
	slog.Handler
	hear func(kind drivebay.EventKind, drive string)
}

func (l listener) Enabled(context.Context, slog.Level) bool { return true }

func (l listener) Handle(_ context.Context, r slog.Record) error {
	var kind drivebay.EventKind
	var drive string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "kind":
			kind, _ = a.Value.Any().(drivebay.EventKind)
		case "drive":
			drive = a.Value.String()
		}
		return true
	})
	if kind != "" {
		l.hear(kind, drive)
	}
	return nil
}

// TestKeepsItsBay: a drive that stays in the kernel keeps its bay while the link from its bay is gone, also after
// it has left; a missing drive is looked for in that bay.
func TestKeepsItsBay(t *testing.T) {
	var bayless *noBays
	as := func(m *hostsim.Machine) host.Machine { bayless = &noBays{Machine: m}; return bayless }
	onSeen(t, hostsim.Generate(24), store.Memory(), drivemgr.Options{}, as, func(r *rig) {
		for _, p := range []drivebay.Protocol{drivebay.ProtocolATA, drivebay.ProtocolNVMe} {
			d := r.pick(p, 2)
			bayless.on.Store(true)
			r.must(r.mgr.Refresh(r.Context()))
			if is := r.drive(d.ID); is.Slot.Bay != d.Slot.Bay || d.Slot.Bay == "" {
				r.Errorf("%s: in bay %q, was in %q", is.Name, is.Slot.Bay, d.Slot.Bay)
			}
			r.inject(d.Serial, "vanish")
			r.must(r.mgr.Refresh(r.Context()))
			if is := r.drive(d.ID); is.Status != drivebay.StatusOffline || is.Slot.Bay != d.Slot.Bay {
				r.Errorf("%s: %v, last in bay %q, was in %q", is.Name, is.Status, is.Slot.Bay, d.Slot.Bay)
			}
			bayless.on.Store(false)
		}
	})
}

// noBays shows no bays while it is on.
type noBays struct {
	host.Machine
	on atomic.Bool
}

func (n *noBays) ReadDir(name string) ([]string, error) {
	if n.on.Load() && (name == "sys/class/enclosure" || name == "sys/bus/pci/slots" || name == "sys/class/sas_device") {
		return nil, nil
	}
	return n.Machine.ReadDir(name)
}
