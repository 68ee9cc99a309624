package drivemgr

import (
	"context"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
)

const (
	// lightTime is how long an enclosure may take to switch a light.
	lightTime = 10 * time.Second
	// lightRetry is how long a light that could not be switched is left alone.
	lightRetry = time.Minute
)

// lights are those that were switched, by file.
type lights map[string]*light

// light is one light of a bay: the wanted state, and what was last written to it. One
// write at a time is under way, so that the last wish is the last to be written.
type light struct {
	slot   drivebay.Slot
	drive  string // whose fault it shows
	wanted bool
	is     bool
	at     uint64 // the moment of the last write
	busy   bool
	lane   *lane.Lane
	retry  time.Time // not before; zero: the last write went well
}

// light is the entry of a file; it is lit until proved otherwise, since an earlier run
// may have lit it.
func (m *Manager) light(file string, slot drivebay.Slot) *light {
	l := m.lights[file]
	if l == nil {
		l = &light{slot: slot, is: true, wanted: true, lane: lane.New()}
		m.lights[file] = l
	}
	return l
}

// keepLights has the fault lights show which bays wait for a hand: those of drives
// that are to be pulled, or that an operator has to decide about. Other lights are
// left as they are.
func (m *Manager) keepLights() {
	wanted := map[string]bool{}
	for id, t := range m.drives {
		slot := t.drive.Slot
		if slot.Fault == "" || !m.needsHand(id, t) {
			continue
		}
		wanted[slot.Fault] = true
		if m.lights[slot.Fault] == nil {
			m.light(slot.Fault, slot).is = false
		}
		l := m.lights[slot.Fault]
		l.wanted, l.drive = true, id
	}
	for file, l := range m.lights {
		if file == l.slot.Fault {
			l.wanted = wanted[file]
		}
		if l.is != l.wanted && !l.busy && !m.machine.Now().Before(l.retry) && l.lane.Occupied(m.machine.Now()) == 0 {
			m.switchLight(file, l)
		}
	}
}

func (m *Manager) needsHand(id string, t *tracked) bool {
	switch t.rec.Usage {
	case drivebay.UsageFailed, drivebay.UsageRemoving:
		return true
	case drivebay.UsageRemoved:
		return !m.replaced(id)
	}
	return false
}

// switchLight writes the wanted state to a light beside us, and tells of it.
func (m *Manager) switchLight(file string, l *light) {
	on := l.wanted
	l.busy = true
	m.jobs = append(m.jobs, func(ctx context.Context) {
		changed, err := m.setLight(ctx, l.lane, file, on)
		at := m.moment()
		_ = m.do(ctx, func() error { // not done: we are stopping
			l.busy = false
			if err != nil {
				if l.retry.IsZero() {
					m.log.Warn("light not switched", "op", "light", "drive", l.drive, "bay", l.slot.Bay, "err", err)
				}
				l.retry = m.machine.Now().Add(lightRetry)
				return nil
			}
			l.retry = time.Time{}
			m.switched(file, l.slot, on, at)
			if changed && file == l.slot.Fault {
				m.tell(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventFaultLight, Drive: l.drive, To: onOff[on], Cause: "the fault light of bay " + l.slot.Bay + " is " + onOff[on]})
			}
			return nil
		})
	})
}

var onOff = map[bool]string{true: "on", false: "off"}

// switched notes what was written to a light. A listing that began later knows better.
func (m *Manager) switched(file string, slot drivebay.Slot, on bool, at uint64) {
	l := m.light(file, slot)
	if at < l.at {
		return
	}
	l.is, l.at = on, at
	if at < m.lightsRead {
		return
	}
	for i := range m.listing.Bays {
		show(&m.listing.Bays[i].Slot, file, on)
	}
	for _, t := range m.drives {
		if t.present {
			show(&t.drive.Slot, file, on)
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

// keepSwitched corrects a listing by the lights that were switched after it began.
func (m *Manager) keepSwitched(list *Listing) {
	if list.Dark {
		return
	}
	m.lightsRead = list.began
	for file, l := range m.lights {
		if l.at < list.began {
			if !l.busy && !l.wanted && !l.is {
				delete(m.lights, file) // the listing shows it
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

// darken puts out both lights of a bay that no hand is needed at any more.
func (m *Manager) darken(slot drivebay.Slot) {
	for _, file := range []string{slot.Fault, slot.Locate} {
		if file != "" {
			l := m.light(file, slot)
			l.wanted, l.is = false, true // an earlier run may have lit it
		}
	}
}

// setLight writes to the file of a light and says whether that changed it. The bay's
// enclosure is asked for it and may hang.
func (m *Manager) setLight(ctx context.Context, in *lane.Lane, file string, on bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lightTime)
	defer cancel()
	return lane.Through(ctx, in, m.machine, func(context.Context) (bool, error) {
		if b, err := m.machine.ReadFile(file); err == nil && lit(strings.TrimSpace(string(b))) == on {
			return false, nil
		}
		return true, translate(m.machine.WriteFile(file, []byte(map[bool]string{true: "1", false: "0"}[on])))
	})
}
