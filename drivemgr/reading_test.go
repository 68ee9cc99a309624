package drivemgr

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/evidence"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/poll"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/host"
)

// oneTracked is a manager on the recorded machine and one of its drives, listed
// and not yet looked at.
func oneTracked(t *testing.T, name string) (*Manager, *state.Tracked) {
	t.Helper()
	machine, err := host.Recorded("../testdata/lab-recording")
	if err != nil {
		t.Fatal(err)
	}
	m := New(machine, nil, state.Options{})
	m.tracking.ApplyListing(m.tracking.ListMachine(context.Background(), inventory.Options{}))
	for _, tr := range m.state.Drives {
		if tr.Drive.Name == name {
			return m, tr
		}
	}
	t.Fatalf("no %s in the recording", name)
	return nil, nil
}

// The answer to a question of a former life is about another device.
func TestAnswerOfAFormerLife(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	old := state.Reading{Of: tr, Life: tr.Life, Result: evidence.Result{Err: errors.New("it hung")}}
	tr.Reading = true
	tr.Present = false // pulled
	tr.Begin(m.state.Machine.Now())
	tr.Reading = true // asked again
	m.poll.ApplyReading(old)
	if !tr.Reading || tr.OpenError != "" || tr.Failures != 0 {
		t.Errorf("looking %v, open error %q, %d failures", tr.Reading, tr.OpenError, tr.Failures)
	}
	m.poll.ApplyReading(state.Reading{Of: tr, Life: tr.Life, Result: evidence.Result{Err: errors.New("it hangs")}})
	if tr.Reading || tr.OpenError == "" || tr.Failures != 1 {
		t.Errorf("its own answer: looking %v, open error %q, %d failures", tr.Reading, tr.OpenError, tr.Failures)
	}
}

// A drive that is being pulled cannot be opened a moment before the kernel stops listing it: only a
// second reading that finds no device makes it BAD.
func TestNoDeviceCountsTwice(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	m.poll.ApplyReading(state.Reading{Of: tr, Life: tr.Life, Result: evidence.Result{Evidence: &drivebay.Evidence{Protocol: drivebay.ProtocolATA, Verdict: drivebay.VerdictPassed}}})
	before, health := tr.Drive.Evidence, tr.Drive.Health
	look := func(err error) {
		tr.NextReading = time.Time{}
		m.poll.ApplyReading(state.Reading{Of: tr, Life: tr.Life, Result: evidence.Result{Err: err}})
	}
	gone := fmt.Errorf("open /dev/sda: %w: no such device or address", host.ErrGone)
	for range 2 { // the second time after a reading that went well
		look(gone)
		if tr.Drive.Health != health || tr.Drive.Evidence != before || tr.NextReading.Sub(m.state.Machine.Now()) > poll.RereadFirst {
			t.Errorf("after one look: %v, next look in %v", tr.Drive.Health, tr.NextReading.Sub(m.state.Machine.Now()))
		}
		tr.NextReading = time.Time{}
		m.poll.ApplyReading(state.Reading{Of: tr, Life: tr.Life, Result: evidence.Result{Evidence: before}})
	}
	look(gone)
	look(gone)
	if tr.Drive.Health != drivebay.HealthBad || tr.OpenError == "" {
		t.Errorf("after two looks in a row: %v, %q", tr.Drive.Health, tr.OpenError)
	}
}

// Evidence of another serial is not taken for the drive's, and does not accuse it.
func TestAnswerOfAnotherDrive(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	ev := &drivebay.Evidence{Protocol: drivebay.ProtocolATA, Verdict: drivebay.VerdictFailed, Identity: drivebay.Identity{Serial: "OTHER"}}
	m.poll.ApplyReading(state.Reading{Of: tr, Life: tr.Life, Result: evidence.Result{Evidence: ev}})
	if tr.Drive.Evidence == ev || tr.OpenError != "" || tr.Drive.Health == drivebay.HealthBad || tr.Drive.Health == drivebay.HealthGood {
		t.Errorf("%v, %q, %+v", tr.Drive.Health, tr.OpenError, tr.Drive.Evidence)
	}
	ev.Identity.Serial = tr.Drive.Serial
	m.poll.ApplyReading(state.Reading{Of: tr, Life: tr.Life, Result: evidence.Result{Evidence: ev}})
	if tr.Drive.Evidence != ev || tr.Drive.Health != drivebay.HealthBad {
		t.Errorf("its own answer: %v, %+v", tr.Drive.Health, tr.Drive.Evidence)
	}
}

// The kernel's counters of a former life are no measure of growth.
func TestBeginForgetsTheKernelsCounters(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	sample := drivebay.Sample{Counters: map[string]uint64{"kernel.ioErrors": 5, "ata.5": 7}}
	tr.Rec.History = []drivebay.Sample{sample}
	tr.Begin(m.state.Machine.Now())
	if got := tr.Rec.History[0].Counters; len(got) != 1 || got["ata.5"] != 7 {
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
	good := &drivebay.Evidence{Protocol: drivebay.ProtocolATA, Verdict: drivebay.VerdictPassed, Identity: drivebay.Identity{Serial: tr.Drive.Serial}}
	nonsense, asleep := evidence.Result{Err: state.ErrOtherDrive}, evidence.Result{Evidence: &drivebay.Evidence{Standby: true}}
	for i, l := range []evidence.Result{{Evidence: good}, nonsense, nonsense, asleep, nonsense} {
		if tr.Drive.Health != drivebay.HealthGood && i > 0 {
			t.Errorf("before look %d it is %v", i, tr.Drive.Health)
		}
		m.poll.ApplyReading(state.Reading{Of: tr, Life: tr.Life, Result: l})
	}
	if tr.Drive.Health != drivebay.HealthUnknown {
		t.Errorf("after three failures it is %v: %+v", tr.Drive.Health, tr.Drive.Evidence)
	}
}

// A self-test that was started while the clock was ahead is not in progress until the clock has passed that
// time: no drive of the machine would be tested until then.
func TestSelfTestOfAClockAhead(t *testing.T) {
	m, tr := oneTracked(t, "sda")
	now := m.state.Machine.Now()
	tr.ReadingBegan = now.Add(-time.Minute)
	for ahead, want := range map[time.Duration]bool{-time.Second: true, time.Minute: true, -2 * time.Hour: false, 87600 * time.Hour: false} {
		if tr.Rec.LastLong = now.Add(ahead); tr.Testing(now) != want {
			t.Errorf("started %v from now: in progress is %v", ahead, !want)
		}
	}
}
