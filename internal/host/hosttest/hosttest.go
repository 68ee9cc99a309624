// Package hosttest holds the cases that every machine must pass: the real one, a recorded one and the
// simulated one. They keep the simulator faithful.
package hosttest

import (
	"context"
	"testing"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// Options state what the machine must have. What a case finds depends on the machine; each case
// reports how many things it checked.
type Options struct {
	// Min is how many things a case must have checked, by the case's name. A case that checks fewer
	// fails: it proved nothing.
	Min map[string]int
}

// checker runs one case.
type checker struct {
	*testing.T
	host.Machine
	ctx     context.Context
	checked int
}

// patience is how long a case waits for an expected event.
const patience = 10 * time.Second

var cases = []struct {
	name string
	run  func(*checker)
}{
	{"describe", describe},
	{"missing", missing},
	{"sorted", sorted},
	{"canonical", canonical},
	{"inside", inside},
	{"write-missing", writeMissing},
	{"block", blockDevices},
	{"uevent-file", ueventFiles},
	{"stat", stats},
	{"partitions", partitions},
	{"udev", udevDatabase},
	{"scsi", scsiDevices},
	{"nvme", nvmeControllers},
	{"bays", bays},
	{"open-missing", openMissing},
	{"foreign-page", foreignPages},
	{"mounts", mounts},
	{"uevents", uevents},
	{"kernel-log", kernelLog},
	{"clock", clock},
	{"run", run},
}

// Conformance runs all cases on a machine.
func Conformance(t *testing.T, m host.Machine, opt Options) {
	for name := range opt.Min {
		if !known(name) {
			t.Errorf("options ask for a case %q that does not exist", name)
		}
	}
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := &checker{T: t, Machine: m, ctx: ctx}
			k.run(c)
			t.Logf("%d things checked", c.checked)
			if want := opt.Min[k.name]; c.checked < want {
				t.Errorf("only %d things were there to check, want at least %d", c.checked, want)
			}
		})
	}
}

func known(name string) bool {
	for _, k := range cases {
		if k.name == name {
			return true
		}
	}
	return false
}

// check counts a checked thing and reports an error if ok is false.
func (c *checker) check(ok bool, format string, args ...any) {
	c.Helper()
	c.checked++
	if !ok {
		c.Errorf(format, args...)
	}
}
