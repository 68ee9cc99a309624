package drivemgr

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// oneTracked is a manager on the recorded machine and one of its drives, listed
// and not yet looked at.
func oneTracked(t *testing.T, name string) (*Manager, *tracked) {
	t.Helper()
	machine, err := host.Recorded("../testdata/lab-recording")
	if err != nil {
		t.Fatal(err)
	}
	m := New(machine, nil, Options{})
	m.applyListing(m.listMachine(context.Background(), InventoryOptions{}))
	for _, tr := range m.drives {
		if tr.drive.Name == name {
			return m, tr
		}
	}
	t.Fatalf("no %s in the recording", name)
	return nil, nil
}

// The answer to a question of a former life is about another device.
func TestAnswerOfAFormerLife(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	old := lookResult{of: tr, life: tr.life, looked: looked{err: errors.New("it hung")}}
	tr.looking = true
	tr.present = false // pulled
	tr.begin(m.machine.Now())
	tr.looking = true // asked again
	m.applyLook(old)
	if !tr.looking || tr.openError != "" || tr.failures != 0 {
		t.Errorf("looking %v, open error %q, %d failures", tr.looking, tr.openError, tr.failures)
	}
	m.applyLook(lookResult{of: tr, life: tr.life, looked: looked{err: errors.New("it hangs")}})
	if tr.looking || tr.openError == "" || tr.failures != 1 {
		t.Errorf("its own answer: looking %v, open error %q, %d failures", tr.looking, tr.openError, tr.failures)
	}
}

// A drive that is being pulled cannot be opened a moment before the kernel stops listing it: only a
// second look that finds no device makes it BAD.
func TestNoDeviceCountsTwice(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	m.applyLook(lookResult{of: tr, life: tr.life, looked: looked{evidence: &drivebay.Evidence{Protocol: drivebay.ProtocolATA, Verdict: drivebay.VerdictPassed}}})
	before, health := tr.drive.Evidence, tr.drive.Health
	look := func(err error) {
		tr.nextLook = time.Time{}
		m.applyLook(lookResult{of: tr, life: tr.life, looked: looked{err: err}})
	}
	gone := fmt.Errorf("open /dev/sda: %w: no such device or address", host.ErrGone)
	for range 2 { // the second time after a look that went well
		look(gone)
		if tr.drive.Health != health || tr.drive.Evidence != before || tr.nextLook.Sub(m.machine.Now()) > rereadFirst {
			t.Errorf("after one look: %v, next look in %v", tr.drive.Health, tr.nextLook.Sub(m.machine.Now()))
		}
		tr.nextLook = time.Time{}
		m.applyLook(lookResult{of: tr, life: tr.life, looked: looked{evidence: before}})
	}
	look(gone)
	look(gone)
	if tr.drive.Health != drivebay.HealthBad || tr.openError == "" {
		t.Errorf("after two looks in a row: %v, %q", tr.drive.Health, tr.openError)
	}
}

// Evidence of another serial is not taken for the drive's, and does not accuse it.
func TestAnswerOfAnotherDrive(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	ev := &drivebay.Evidence{Protocol: drivebay.ProtocolATA, Verdict: drivebay.VerdictFailed, Identity: drivebay.Identity{Serial: "OTHER"}}
	m.applyLook(lookResult{of: tr, life: tr.life, looked: looked{evidence: ev}})
	if tr.drive.Evidence == ev || tr.openError != "" || tr.drive.Health == drivebay.HealthBad || tr.drive.Health == drivebay.HealthGood {
		t.Errorf("%v, %q, %+v", tr.drive.Health, tr.openError, tr.drive.Evidence)
	}
	ev.Identity.Serial = tr.drive.Serial
	m.applyLook(lookResult{of: tr, life: tr.life, looked: looked{evidence: ev}})
	if tr.drive.Evidence != ev || tr.drive.Health != drivebay.HealthBad {
		t.Errorf("its own answer: %v, %+v", tr.drive.Health, tr.drive.Evidence)
	}
}

// The kernel's counters of a former life are no measure of growth.
func TestBeginForgetsTheKernelsCounters(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	sample := drivebay.Sample{Counters: map[string]uint64{"kernel.ioErrors": 5, "ata.5": 7}}
	tr.rec.History = []drivebay.Sample{sample}
	tr.begin(m.machine.Now())
	if got := tr.rec.History[0].Counters; len(got) != 1 || got["ata.5"] != 7 {
		t.Errorf("%v", got)
	}
	if len(sample.Counters) != 2 {
		t.Error("the sample that others may be reading was changed")
	}
}

// A drive that answers nonsense says that it is asleep now and then: it is not
// good again by that.
func TestAsleepBetweenFailures(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	good := &drivebay.Evidence{Protocol: drivebay.ProtocolATA, Verdict: drivebay.VerdictPassed, Identity: drivebay.Identity{Serial: tr.drive.Serial}}
	nonsense, asleep := looked{err: errOtherDrive}, looked{evidence: &drivebay.Evidence{Standby: true}}
	for i, l := range []looked{{evidence: good}, nonsense, nonsense, asleep, nonsense} {
		if tr.drive.Health != drivebay.HealthGood && i > 0 {
			t.Errorf("before look %d it is %v", i, tr.drive.Health)
		}
		m.applyLook(lookResult{of: tr, life: tr.life, looked: l})
	}
	if tr.drive.Health != drivebay.HealthUnknown {
		t.Errorf("after three failures it is %v: %+v", tr.drive.Health, tr.drive.Evidence)
	}
}
