package lights

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/lane"
)

// Lights holds the lights of bays and their wanted state.
type Lights struct {
	State *state.State

	Lights ByBay
	// lightsRead is the moment of the last listing that read the enclosures.
	lightsRead uint64
}

const (
	// lightTime is how long an enclosure may take to switch a light.
	lightTime = 10 * time.Second
	// lightRetry is how long after a failure a light is not switched again.
	lightRetry = time.Minute
)

// ByBay holds the lights that the manager switches, by file.
type ByBay map[string]*light

// light is one light of a bay: the wanted state, and the state last written. Only one write
// is under way at a time, so that the last wanted state is written last.
type light struct {
	slot   drivebay.Slot
	drive  string // the drive whose fault it shows
	wanted bool
	is     bool
	at     uint64 // moment (State.NextMoment) of the last write
	busy   bool
	lane   *lane.Lane
	retry  time.Time // no write before; zero: the last write succeeded
}

// light returns the entry of a file. A new entry counts as lit, since an earlier run may
// have lit it.
func (m *Lights) light(file string, slot drivebay.Slot) *light {
	l := m.Lights[file]
	if l == nil {
		l = &light{slot: slot, is: true, wanted: true, lane: lane.New()}
		m.Lights[file] = l
	}
	return l
}

// KeepLights lights the fault lights of the bays that need an operator: those of drives to be
// pulled, and of drives that wait for an operator's decision. It leaves other lights as
// they are.
func (m *Lights) KeepLights() {
	wanted := map[string]bool{}
	for id, t := range m.State.Drives {
		slot := t.Drive.Slot
		if slot.Fault == "" || !m.needsOperator(id, t) {
			continue
		}
		wanted[slot.Fault] = true
		if m.Lights[slot.Fault] == nil {
			m.light(slot.Fault, slot).is = false
		}
		l := m.Lights[slot.Fault]
		l.wanted, l.drive = true, id
	}
	for file, l := range m.Lights {
		if file == l.slot.Fault {
			l.wanted = wanted[file]
		}
		if l.is != l.wanted && !l.busy && !m.State.Machine.Now().Before(l.retry) && l.lane.Occupied(m.State.Machine.Now()) == 0 {
			m.switchLight(file, l)
		}
	}
}

func (m *Lights) needsOperator(id string, t *state.Tracked) bool {
	switch t.Rec.Usage {
	case drivebay.UsageFailed, drivebay.UsageRemoving:
		return true
	case drivebay.UsageRemoved:
		return !m.State.HasSuccessor(id)
	}
	return false
}

// switchLight writes the wanted state of a light in the background, and adds an event.
func (m *Lights) switchLight(file string, l *light) {
	on := l.wanted
	l.busy = true
	m.State.Jobs = append(m.State.Jobs, func(ctx context.Context) {
		changed, err := m.setLight(ctx, l.lane, file, on)
		at := m.State.NextMoment()
		_ = m.State.Do(ctx, func() error { // an error means that the manager stops
			l.busy = false
			if err != nil {
				if l.retry.IsZero() {
					m.State.Log.Warn("cannot switch a light", "op", "light", "drive", l.drive, "bay", l.slot.Bay, "err", err)
				}
				l.retry = m.State.Machine.Now().Add(lightRetry)
				return nil
			}
			l.retry = time.Time{}
			m.noteLight(file, l.slot, on, at)
			if changed && file == l.slot.Fault {
				m.State.QueueEvents(drivebay.Event{At: m.State.Machine.Now(), Kind: drivebay.EventFaultLight, Drive: l.drive, To: onOff[on], Cause: "the fault light of bay " + l.slot.Bay + " is " + onOff[on]})
			}
			return nil
		})
	})
}

var onOff = map[bool]string{true: "on", false: "off"}

// noteLight records what was written to a light, unless a later listing has read it.
func (m *Lights) noteLight(file string, slot drivebay.Slot, on bool, at uint64) {
	l := m.light(file, slot)
	if at < l.at {
		return
	}
	l.is, l.at = on, at
	if at < m.lightsRead {
		return
	}
	for i := range m.State.Listing.Bays {
		show(&m.State.Listing.Bays[i].Slot, file, on)
	}
	for _, t := range m.State.Drives {
		if t.Present {
			show(&t.Drive.Slot, file, on)
		}
	}
}

func show(s *drivebay.Slot, file string, on bool) {
	if s.Fault == file {
		s.FaultLit = on
	}
	if s.Locate == file {
		s.Lit = on
	}
}

// CorrectLights corrects a listing by the lights that were switched after it began.
func (m *Lights) CorrectLights(list *inventory.Listing) {
	if list.EnclosuresSkipped {
		return
	}
	m.lightsRead = list.Began
	for file, l := range m.Lights {
		if l.at < list.Began {
			if !l.busy && !l.wanted && !l.is {
				delete(m.Lights, file) // the listing shows its state
			}
			continue
		}
		for i := range list.Bays {
			show(&list.Bays[i].Slot, file, l.is)
		}
		for i := range list.Drives {
			show(&list.Drives[i].Slot, file, l.is)
		}
	}
}

// TurnOffLights turns off both lights of a bay that no longer needs an operator.
func (m *Lights) TurnOffLights(slot drivebay.Slot) {
	for _, file := range []string{slot.Fault, slot.Locate} {
		if file != "" {
			l := m.light(file, slot)
			l.wanted, l.is = false, true // an earlier run may have lit it
		}
	}
}

// setLight writes to the file of a light and reports whether the state changed. The read
// and the write go to the enclosure and may hang.
func (m *Lights) setLight(ctx context.Context, in *lane.Lane, file string, on bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lightTime)
	defer cancel()
	return lane.Through(ctx, in, m.State.Machine, func(context.Context) (bool, error) {
		if b, err := m.State.Machine.ReadFile(file); err == nil && inventory.Lit(strings.TrimSpace(string(b))) == on {
			return false, nil
		}
		return true, state.Translate(m.State.Machine.WriteFile(file, []byte(map[bool]string{true: "1", false: "0"}[on])))
	})
}

// Locate turns the light of a bay on or off, and reads it back.
func (m *Lights) Locate(ctx context.Context, bay string, on bool) error {
	b, err := m.State.FindBay(bay)
	if err != nil {
		return err
	}
	if b.Locate == "" {
		return fmt.Errorf("bay %s: %w: the kernel has no file for a light of this bay; drive %q", b.Bay, drivebay.ErrNoSupport, b.Drive)
	}
	want := map[bool]string{true: "1", false: "0"}[on]
	if err := m.State.Machine.WriteFile(b.Locate, []byte(want)); err != nil {
		return fmt.Errorf("bay %s: switch the light: %w", b.Bay, state.Translate(err))
	}
	is, err := m.State.Machine.ReadFile(b.Locate)
	if err != nil {
		return fmt.Errorf("bay %s: read the light back: %w", b.Bay, state.Translate(err))
	}
	if got := strings.TrimSpace(string(is)) != "0"; got != on {
		return fmt.Errorf("bay %s: the light was set to %s, but its file shows %q", b.Bay, want, strings.TrimSpace(string(is)))
	}
	at := m.State.NextMoment()
	return m.State.Do(ctx, func() error {
		m.light(b.Locate, b.Slot).wanted = on
		m.noteLight(b.Locate, b.Slot, on, at)
		m.State.QueueEvents(drivebay.Event{At: m.State.Machine.Now(), Kind: drivebay.EventLocate, Drive: b.Drive, To: want, Cause: "an operator switched the light of bay " + b.Bay})
		return nil
	})
}
