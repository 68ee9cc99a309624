//go:build lab

package suite

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/hack/lab/emul"
	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

// disk is an emulated hard disk in good health with the usual attributes.
func disk(name string, wwn uint64) emul.Disk {
	return emul.Disk{Name: name, Serial: name, Model: "LAB HDD 4T", Firmware: "LB01", WWN: wwn, Size: 4 << 40, RPM: 7200, PhysicalBlock: 4096,
		Attributes: []emul.Attribute{
			{ID: 1, Flags: 0xF, Value: 118, Worst: 99, Threshold: 6, Raw: 170},
			{ID: 5, Flags: 0x33, Value: 100, Worst: 100, Threshold: 10},
			{ID: 9, Flags: 0x32, Value: 98, Worst: 98, Raw: 12345},
			{ID: 12, Flags: 0x32, Value: 100, Worst: 100, Raw: 42},
			{ID: 187, Flags: 0x32, Value: 100, Worst: 100},
			{ID: 194, Flags: 0x22, Value: 33, Worst: 40, Raw: 0x0007_0000_0028_0000_0021 & 0xFFFFFFFFFFFF},
			{ID: 197, Flags: 0x12, Value: 100, Worst: 100},
			{ID: 198, Flags: 0x10, Value: 100, Worst: 100},
			{ID: 199, Flags: 0x3E, Value: 200, Worst: 200},
		},
		Statistics: []emul.Statistic{{Page: 1, Offset: 8, Value: 42}, {Page: 1, Offset: 16, Value: 12345},
			{Page: 1, Offset: 24, Value: 9_000_000_000}, {Page: 1, Offset: 40, Value: 7_000_000_000}, {Page: 5, Offset: 8, Value: 33}},
	}
}

func ptr[T any](v T) *T { return &v }

// TestLabATAHealth: what a SATA disk says of itself comes out as smartctl reads
// it, from a sound disk, a solid-state one with 4096-byte blocks and a failing one
// with full logs, and what it says at run time is seen within one poll.
func TestLabATAHealth(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	ssd := disk("ATASSD", 0x5000c500d0000001)
	ssd.Model, ssd.RPM, ssd.Block, ssd.FixedSense, ssd.Size = "LAB SSD 960", 1, 4096, true, 960<<30
	ssd.Statistics = append(ssd.Statistics, emul.Statistic{Page: 7, Offset: 8, Value: 17, Normalized: true})
	failing := disk("ATAFAIL", 0x5000c500d0000002)
	failing.Failed = true
	failing.Attributes[1] = emul.Attribute{ID: 5, Flags: 0x33, Value: 8, Worst: 8, Threshold: 10, Raw: 2400}
	failing.Errors = []emul.LoggedError{{Hours: 12000, Error: 0x40, Status: 0x51, LBA: 123456789, Count: 8, Command: 0x25}}
	failing.SelfTests = []emul.SelfTest{{Kind: 1, Hours: 11000}, {Kind: 2, Status: 7, Hours: 12001, LBA: 123456789}}
	e := m.Emulate(emul.Spec{Disks: []emul.Disk{disk("ATAWELL", 0x5000c500d0000000), ssd, failing}})
	d := m.Daemon(quick)
	for _, serial := range []string{"ATAWELL", "ATASSD", "ATAFAIL"} {
		t.Run("smartctl/"+serial, func(t *testing.T) { sameAsSmartctl(t, m.For(t), d.For(t), serial) })
	}
	for serial, want := range map[string]drivebay.Health{"ATAWELL": drivebay.HealthGood, "ATASSD": drivebay.HealthGood, "ATAFAIL": drivebay.HealthBad} {
		if x := d.BySerial(serial); x.Health != want {
			t.Errorf("%s is %s: %s", serial, x.Health, findings(x))
		}
	}
	// One pending sector counts once it was seen twice, in looks that follow each other.
	e.Set("ATAWELL", emul.Change{Attributes: []emul.Attribute{{ID: 197, Flags: 0x12, Value: 100, Worst: 100, Raw: 1}}})
	d.UntilDrive("ATAWELL", "pending sector seen twice", 2*poll, judged(drivebay.HealthSuspect, "ATAPendingSectors"))
	e.Set("ATAWELL", emul.Change{Failed: ptr(true)})
	d.UntilDrive("ATAWELL", "its own verdict seen", poll, judged(drivebay.HealthBad, "OwnVerdict"))

	// The disk's own medium error reaches the kernel's log and the verdict.
	e.Set("ATASSD", emul.Change{ReadErrors: &[]uint64{1000}})
	m.Sh("dd if=/dev/%s of=/dev/null bs=4096 skip=1000 count=1 iflag=direct 2>/dev/null || true", m.Name("ATASSD"))
	d.UntilDrive("ATASSD", "medium error seen", soon, judged(drivebay.HealthSuspect, "KernelMediaErrors"))
}

// TestLabSelectiveSelfTest: of a disk whose long self-test failed, a selective one that smartctl starts ends the
// finding if it reads the address of the failure. The disk is asked for its selective log only then.
func TestLabSelectiveSelfTest(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	failed := disk("SELECTIVE", 0x5000c500d0000000)
	failed.SelfTests = []emul.SelfTest{{Kind: 2, Status: 7, Hours: 12001, LBA: 123456789}}
	e := m.Emulate(emul.Spec{Disks: []emul.Disk{failed}})
	d := m.Daemon(quick + "thresholds: {clearAfter: 1s, clearQuick: 1s}\n")
	d.UntilDrive("SELECTIVE", "failure seen", poll, judged(drivebay.HealthSuspect, "SelfTest"))
	test := func(span string, tests int) *drivebay.Drive {
		m.Sh("smartctl -t select,%s /dev/%s", span, m.Name("SELECTIVE"))
		if got := len(e.State("SELECTIVE").Disk.SelfTests); got != tests {
			t.Fatalf("%d self-tests logged, want %d", got, tests)
		}
		x, _ := d.UntilDrive("SELECTIVE", "selective test seen", 2*poll, func(x *drivebay.Drive) error {
			if n := len(x.Evidence.SelfTests); n != tests {
				return fmt.Errorf("%d self-tests", n)
			}
			return nil
		})
		return x
	}
	if x := test("123456790-123456799", 2); x.Health != drivebay.HealthSuspect || len(x.Evidence.ATA.SelectiveSpans) != 1 {
		t.Errorf("beside the address: it is %s, spans %v", x.Health, x.Evidence.ATA.SelectiveSpans)
	}
	test("123456780-123456799", 3)
	d.UntilDrive("SELECTIVE", "finding ended", 2*poll, func(x *drivebay.Drive) error {
		if x.Health != drivebay.HealthGood {
			return fmt.Errorf("it is %s: %s, spans %v", x.Health, findings(x), x.Evidence.ATA.SelectiveSpans)
		}
		return nil
	})
	sameAsSmartctl(t, m, d, "SELECTIVE")
}

// TestLabStandby: a disk that sleeps is asked for its power mode and for nothing
// else, so it sleeps on, and what was known of it stays known.
func TestLabStandby(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	e := m.Emulate(emul.Spec{Disks: []emul.Disk{disk("SLEEPER", 0x5000c500d0000000), disk("AWAKE", 0x5000c500d0000001)}})
	d := m.Daemon("poll: {evidence: 10s, rescan: 10s, tick: 1s}\n")
	e.Set("SLEEPER", emul.Change{Power: ptr(emul.Standby)})
	for _, name := range []string{"SLEEPER", "AWAKE"} {
		_, err := e.ResetCounts(t.Context(), name)
		m.Must(err)
	}
	asked := e.State("AWAKE").Counts.Total
	time.Sleep(35 * time.Second) // three polls, three rescans, thirty ticks
	s := e.State("SLEEPER")
	if s.Disk.Power != emul.Standby || s.Disk.Wakes != 0 {
		t.Errorf("the disk is %s, woken %d times by %s", s.Disk.Power, s.Disk.Wakes, s.Disk.WokenBy)
	}
	checks := s.Counts.By["ata e5"] // CHECK POWER MODE
	t.Logf("commands to the sleeping disk: %v", s.Counts.By)
	if checks < 3 || s.Counts.Total != checks {
		t.Errorf("the sleeping disk was asked %v, want CHECK POWER MODE (ata e5) alone, three times or more", s.Counts.By)
	}
	if now := e.State("AWAKE").Counts; now.Total-asked < 3*checks {
		t.Errorf("the disk that is awake was asked %v only", now.By)
	}
	x := d.BySerial("SLEEPER")
	if !x.Evidence.Standby || x.Health != drivebay.HealthGood || x.PowerOnHours == nil || *x.PowerOnHours != 12345 {
		t.Errorf("the sleeping disk is %s: %s; standby %v, power-on hours %v", x.Health, findings(x), x.Evidence.Standby, x.PowerOnHours)
	}
	// Who reads it wakes it, and it is looked at again.
	m.Sh("dd if=/dev/%s of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null", m.Name("SLEEPER"))
	d.UntilDrive("SLEEPER", "awake", 2*poll, func(x *drivebay.Drive) error {
		if x.Evidence.Standby {
			return fmt.Errorf("asleep")
		}
		return nil
	})
}

// TestLabSilent: a disk that leaves our questions unanswered, as behind a
// controller that died, holds up nobody else's.
func TestLabSilent(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{Drives: []machine.Drive{nvme("NVWELL")}})
	e := m.Emulate(emul.Spec{Disks: []emul.Disk{disk("SILENT", 0x5000c500d0000000), disk("WELL", 0x5000c500d0000001)}})
	d := m.Daemon(quick)
	began := m.Now()
	e.Set("SILENT", emul.Change{Hang: ptr(emul.HangAll), Deaf: ptr(true)})
	_, took := d.UntilDrive("SILENT", "silent", 45*time.Second, judged(drivebay.HealthSuspect, "KernelSilent"))
	// The next poll asks (10 s), the question waits (silentSuspect, 20 s), a tick judges.
	within(t, "silence seen", took, 34*time.Second)
	for _, serial := range []string{"WELL", "NVWELL"} {
		x := d.BySerial(serial)
		age := m.Now().Sub(x.Evidence.At)
		t.Logf("%s: last looked at %v ago, %v after the hang", serial, age.Round(time.Millisecond), x.Evidence.At.Sub(began).Round(time.Millisecond))
		if age > poll || x.Health != drivebay.HealthGood {
			t.Errorf("%s: last looked at %v ago, %s: %s", serial, age, x.Health, findings(x))
		}
	}
	e.Set("SILENT", emul.Change{Hang: ptr(emul.HangNothing), Deaf: ptr(false)})
	d.UntilDrive("SILENT", "answers again", 45*time.Second, func(x *drivebay.Drive) error {
		if x.Kernel.LaneStuck != 0 || x.Evidence.At.Before(began) {
			return fmt.Errorf("stuck for %v, last looked at %v", x.Kernel.LaneStuck, x.Evidence.At)
		}
		return nil
	})
}

// TestLabEnclosure: the bays of a SES enclosure are listed by their own names,
// and the lights that we switch on are on.
func TestLabEnclosure(t *testing.T) {
	t.Parallel()
	m := lab.Start(t, machine.Spec{})
	e := m.Emulate(emul.Spec{Enclosures: []emul.Enclosure{{Name: "shelf", LogicalID: 0x5000c500e0000000,
		Slots: []emul.Slot{{Name: "Slot 01"}, {Name: "Slot 02"}, {Name: "Bay three", Status: 5}}}},
		Disks: []emul.Disk{disk("DISK", 0x5000c500d0000000)}})
	d := m.Daemon(quick)
	bays, err := d.Bays(t.Context())
	m.Must(err)
	var names []string
	for _, b := range bays {
		names = append(names, b.Bay)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"Bay three", "Slot 01", "Slot 02"}) {
		t.Errorf("bays %q", names)
	}
	for _, b := range bays {
		if want := map[string]string{"Bay three": "not installed", "Slot 01": "OK", "Slot 02": "OK"}[b.Bay]; b.Status != want {
			t.Errorf("bay %s is %q, the enclosure says %q", b.Bay, b.Status, want)
		}
	}
	lights := func() map[string]bool {
		out := map[string]bool{}
		for _, s := range e.State("shelf").Shelf.Slots {
			out[s.Name] = s.Locate
		}
		return out
	}
	for _, on := range []bool{true, false} {
		m.Must(d.Locate(t.Context(), "Slot 02", on))
		want := map[string]bool{"Slot 01": false, "Slot 02": on, "Bay three": false}
		if got := lights(); !maps.Equal(got, want) {
			t.Errorf("lights %v, want %v", got, want)
		}
		d.Until("the light is shown", poll, func(s *drivebay.Snapshot) error {
			if b, ok := s.FindBay("Slot 02"); !ok || b.Lit != on {
				return fmt.Errorf("bay %+v", b)
			}
			return nil
		})
	}
}
