package volume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/drivebay/drivebay/volume"
)

// kinds are the events of a volume of some kinds, as "kind from>to".
func (s *stand) kinds(v drivebay.Volume, kinds ...drivebay.EventKind) []string {
	var out []string
	for _, e := range s.mgr.Events(0, 0) {
		for _, k := range kinds {
			if e.Kind == k && e.Volume == v.ID {
				out = append(out, string(k)+" "+e.From+">"+e.To)
				if e.Cause == "" || e.Drive == "" {
					s.Errorf("%+v", e)
				}
			}
		}
	}
	return out
}

func (s *stand) wantEvents(when string, v drivebay.Volume, kinds []drivebay.EventKind, want ...string) {
	s.Helper()
	if got := s.kinds(v, kinds...); strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.Errorf("%s: events\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestConditionEvents: a volume that turns abnormal, and one that recovers, is told once,
// also when it comes and goes, and when the daemon starts again meanwhile.
func TestConditionEvents(t *testing.T) {
	t.Parallel()
	kinds := []drivebay.EventKind{drivebay.EventVolumeAbnormal, drivebay.EventVolumeRecovered}
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"}})
		well := s.make("well", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingLVM, Wipe: drivebay.WipeZero, FSType: "ext4"}})
		bay := s.drive(v).Slot.Bay
		time.Sleep(time.Minute)
		s.wantEvents("all is well", v, kinds)
		fault := func(what string) { s.must(s.sim.Inject(hostsim.Fault{Bay: bay, Fault: what})) }
		fault("vanish")
		time.Sleep(5 * time.Second)
		want := []string{"VolumeAbnormal >DiskRemoved"}
		s.wantEvents("pulled", v, kinds, want...)
		for range 10 { // a bad contact
			fault("return")
			time.Sleep(7 * time.Second)
			fault("vanish")
			time.Sleep(7 * time.Second)
		}
		if n := len(s.kinds(v, kinds...)); n > 3 {
			s.Errorf("a bad contact makes %d events: %q", n, s.kinds(v, kinds...))
		}
		want = s.kinds(v, kinds...)
		s.restart(func() {})
		time.Sleep(2 * time.Minute)
		s.wantEvents("started again, still pulled", v, kinds)
		fault("return")
		time.Sleep(2 * time.Minute)
		if got := s.of(v).Condition; reasons(got) != "DiskDegrading" {
			s.Errorf("a drive that was back 11 times is in the machine: %q", got.Message())
		}
		s.restart(func() { time.Sleep(25 * time.Hour) })
		time.Sleep(12 * time.Minute)
		after := s.kinds(v, kinds...)
		if len(after) == 0 || !strings.HasPrefix(after[len(after)-1], "VolumeRecovered ") || !strings.HasSuffix(after[len(after)-1], ">") {
			s.Errorf("it is back: %q, before the restart %q", after, want)
		}
		s.restart(func() {})
		time.Sleep(2 * time.Minute)
		s.wantEvents("started again, all well", v, kinds)
		s.wantEvents("never ill", well, kinds)
	})
}

// TestStagingEvents: a volume that was staged or unstaged is told, a replay is not.
func TestStagingEvents(t *testing.T) {
	t.Parallel()
	kinds := []drivebay.EventKind{drivebay.EventVolumeStaged, drivebay.EventVolumeUnstaged}
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		for name, r := range map[string]drivebay.VolumeRequest{
			"fs":    {Class: drivebay.Class{Backing: drivebay.BackingPartition, Wipe: drivebay.WipeZero, FSType: "ext4"}},
			"block": {Block: true, Class: drivebay.Class{Backing: drivebay.BackingLVM, Wipe: drivebay.WipeZero, FSType: "ext4"}},
		} {
			v := s.make(name, r)
			s.must(s.unstage(v))
			s.wantEvents("never staged", v, kinds)
			s.must(s.stage(v), s.stage(v), s.publish(v, "pod"), s.stage(v), s.unpublish(v, "pod"))
			s.wantEvents("staged", v, kinds, "VolumeStaged >VOLUME_READY")
			s.must(s.unstage(v), s.unstage(v))
			s.wantEvents("unstaged", v, kinds, "VolumeStaged >VOLUME_READY", "VolumeUnstaged >CREATED")
		}
	})
}

// TestWorseConditionIsSent: a mirror that loses its second drive as well has the reason that it had with one, and cannot
// be used any more: that is sent once, also when the daemon starts again.
func TestWorseConditionIsSent(t *testing.T) {
	t.Parallel()
	kinds := []drivebay.EventKind{drivebay.EventVolumeAbnormal, drivebay.EventVolumeRecovered}
	onMachine(t, disksInBays(), volume.Options{}, func(s *stand) {
		v := s.make("v", drivebay.VolumeRequest{Class: drivebay.Class{Backing: drivebay.BackingMirror, Wipe: drivebay.WipeZero, FSType: "ext4"}})
		time.Sleep(2 * time.Minute)
		s.wantEvents("all is well", v, kinds)
		pull := func(when string, drive int, want ...string) {
			t.Helper()
			before := len(s.kinds(v, kinds...))
			d, _ := s.mgr.Snapshot().Find(v.Location.Drives[drive])
			s.must(s.sim.Inject(hostsim.Fault{Bay: d.Slot.Bay, Fault: "vanish"}))
			time.Sleep(2 * time.Minute)
			if got := s.kinds(v, kinds...)[before:]; strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: events %q, want %q: %v", when, got, want, s.of(v).Condition)
			}
		}
		const one = "DiskRemoved, PartialActivation, PhysicalVolumeMissing"
		pull("one drive is pulled", 0, "VolumeAbnormal >"+one)
		pull("both are", 1, "VolumeAbnormal "+one+">"+one)
		before := s.kinds(v, kinds...)
		s.restart(func() {})
		time.Sleep(2 * time.Minute)
		if got := s.kinds(v, kinds...); len(got) > 0 {
			t.Errorf("started again: events %q, before %q", got, before)
		}
	})
}
