package drivemgr

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/replacement"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/hostsim"
)

// TestForcedRemovalOfAUsedDrive: force ignores the devices of drivebay volumes, and nothing
// that is mounted or in use on them.
func TestForcedRemovalOfAUsedDrive(t *testing.T) {
	for kind, may := range map[string]bool{
		"partition": true, "lvm": true, "crypt": true, "dm": true,
		"mount": false, "btrfs": false, "zfs": false, "swap": false, "md": false, "bcache": false, "multipath": false, "holder": false, "new kind": false,
	} {
		for _, ours := range []bool{true, false} {
			for what, made := range map[string]bool{"drivebay-pvc--1": true, "drivebay--3f--pvc": true, "vm--disk-root": false, "": false} { // the others: made on a block volume
				d := &state.Tracked{Drive: drivebay.Drive{ID: "d", Uses: []drivebay.Use{{Kind: "partition", Device: "sda1", Ours: true}, {Kind: kind, Device: "dm-0", What: what, Ours: ours}}}}
				m := &replacement.Replacer{State: &state.State{Drives: map[string]*state.Tracked{"d": d}}}
				if err := m.CheckRemovable(d, true); (err == nil) != (may && ours && (made || kind == "partition")) || err != nil && !errors.Is(err, drivebay.ErrBusy) {
					t.Errorf("a use %q of kind %q, of drivebay: %v: %v", what, kind, ours, err)
				}
			}
		}
	}
}

// TestForcedRemovalGoesOn: a removal that continues after a restart is checked as it was
// begun: by force, or without.
func TestForcedRemovalGoesOn(t *testing.T) {
	for event, want := range map[drivebay.UsageEvent]drivebay.Usage{drivebay.UsageForce: drivebay.UsageRemoving, drivebay.UsageApprove: drivebay.UsageFailed} {
		sim, err := hostsim.New(hostsim.Generate(2))
		if err != nil {
			t.Fatal(err)
		}
		m := New(sim, nil, state.Options{})
		d := &state.Tracked{Present: true, Rec: drivebay.Record{Usage: drivebay.UsageReleased},
			Drive: drivebay.Drive{ID: "d", Uses: []drivebay.Use{{Kind: "partition", Device: "sda1", Ours: true}, {Kind: "lvm", Device: "dm-0", What: "drivebay--d-drivebay--v", Ours: true}}}}
		if err := m.state.ChangeUsage(d, event, "it is dead"); err != nil {
			t.Fatal(err)
		}
		m.state.KeepRecord(d)
		restarted := New(sim, nil, state.Options{})
		restarted.state.Drives["d"] = &state.Tracked{Present: true, Rec: *m.state.Keeper.Records["d"], Drive: d.Drive}
		restarted.replacement.ResumeRemovals(time.Now())
		if is := restarted.state.Drives["d"]; is.Rec.Usage != want || (len(restarted.state.Jobs) == 1) != (want == drivebay.UsageRemoving) {
			t.Errorf("%v: it is %v, %d jobs", event, is.Rec.Usage, len(restarted.state.Jobs))
		}
		sim.Close()
	}
}

// TestRemovalOfOneActuator: a disk with two actuators is two drives in one bay. Neither is safe to pull before the other one is.
func TestRemovalOfOneActuator(t *testing.T) {
	unit := func(lun string, usage drivebay.Usage) *state.Tracked {
		return &state.Tracked{Present: true, Rec: drivebay.Record{Usage: usage}, Drive: drivebay.Drive{ID: "unit" + lun, Identity: drivebay.Identity{Serial: "DUAL1"}, Transport: drivebay.TransportSAS,
			Slot: drivebay.Slot{Enclosure: "e", Bay: "3"}, Paths: []drivebay.Path{{Address: "1:0:1:" + lun}}}}
	}
	for usage, may := range map[drivebay.Usage]bool{drivebay.UsageInUse: false, drivebay.UsageReleasing: false, drivebay.UsageFailed: false,
		drivebay.UsageReleased: true, drivebay.UsageRemoving: true, drivebay.UsageRemoved: true} {
		d, o := unit("0", drivebay.UsageReleased), unit("1", usage)
		m := &replacement.Replacer{State: &state.State{Drives: map[string]*state.Tracked{"unit0": d, "unit1": o}}}
		for _, forced := range []bool{false, true} {
			if err := m.CheckRemovable(d, forced); (err == nil) != may || err != nil && !errors.Is(err, drivebay.ErrRefused) {
				t.Errorf("while the other one is %v: %v", usage, err)
			}
		}
		if o.Drive.Serial = "ANOTHER"; m.CheckRemovable(d, false) != nil { // a virtual controller
			t.Error("another disk of one target counts")
		}
	}
}

// TestRemovalOfNamespaces: the namespaces of an SSD are removed with their controller. One goes when the others may go with it.
func TestRemovalOfNamespaces(t *testing.T) {
	namespace := func(id string, usage drivebay.Usage) *state.Tracked {
		return &state.Tracked{Present: true, Rec: drivebay.Record{Usage: usage}, Drive: drivebay.Drive{ID: id, Transport: drivebay.TransportNVMe, Paths: []drivebay.Path{{Address: "0000:01:00.0"}}}}
	}
	mounted := drivebay.Use{Kind: "mount", What: "/data"}
	for name, c := range map[string]struct {
		usage drivebay.Usage
		uses  []drivebay.Use
		err   error
	}{
		"the other one is in use":    {usage: drivebay.UsageInUse, err: drivebay.ErrRefused},
		"the other one is free":      {usage: drivebay.UsageReleased},
		"it was removed before":      {usage: drivebay.UsageRemoved},
		"a mount uses the other one": {usage: drivebay.UsageReleased, uses: []drivebay.Use{mounted}, err: drivebay.ErrBusy},
		"the machine runs from it":   {usage: drivebay.UsageReleased, err: drivebay.ErrRefused},
	} {
		d, o := namespace("one", drivebay.UsageReleased), namespace("two", c.usage)
		o.Drive.Uses, o.Drive.System = c.uses, name == "the machine runs from it"
		m := &replacement.Replacer{State: &state.State{Drives: map[string]*state.Tracked{"one": d, "two": o}}}
		for _, forced := range []bool{false, true} {
			if err := m.CheckRemovable(d, forced); !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
