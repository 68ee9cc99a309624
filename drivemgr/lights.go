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
	// lightRetry is how long after a failure a light is not switched again.
	lightRetry = time.Minute
)

// lights holds the lights that the manager switches, by file.
type lights map[string]*light

// light is one light of a bay: the wanted state, and the state last written. Only one write
// is under way at a time, so that the last wanted state is written last.
type light struct {
	slot   drivebay.Slot
	drive  string // the drive whose fault it shows
	wanted bool
	is     bool
	at     uint64 // Manager.moment of the last write
	busy   bool
	lane   *lane.Lane
	retry  time.Time // no write before; zero: the last write succeeded
}

// light returns the entry of a file. A new entry counts as lit, since an earlier run may
// have lit it.
func (m *lightsT) light(file string, slot drivebay.Slot) *light {
	l := m.lights[file]
	if l == nil {
		l = &light{slot: slot, is: true, wanted: true, lane: lane.New()}
		m.lights[file] = l
	}
	return l
}

// keepLights lights the fault lights of the bays that need an operator: those of drives to be
// pulled, and of drives that wait for an operator's decision. It leaves other lights as
// they are.
func (m *lightsT) keepLights() {
	wanted := map[string]bool{}
	for id, t := range m.drives {
		slot := t.drive.Slot
		if slot.Fault == "" || !m.needsOperator(id, t) {
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

func (m *lightsT) needsOperator(id string, t *tracked) bool {
	switch t.rec.Usage {
	case drivebay.UsageFailed, drivebay.UsageRemoving:
		return true
	case drivebay.UsageRemoved:
		return !m.hasSuccessor(id)
	}
	return false
}

// switchLight writes the wanted state of a light in the background, and adds an event.
func (m *lightsT) switchLight(file string, l *light) {
	on := l.wanted
	l.busy = true
	m.jobs = append(m.jobs, func(ctx context.Context) {
		changed, err := m.setLight(ctx, l.lane, file, on)
		at := m.nextMoment()
		_ = m.do(ctx, func() error { // an error means that the manager stops
			l.busy = false
			if err != nil {
				if l.retry.IsZero() {
					m.log.Warn("light not switched", "op", "light", "drive", l.drive, "bay", l.slot.Bay, "err", err)
				}
				l.retry = m.machine.Now().Add(lightRetry)
				return nil
			}
			l.retry = time.Time{}
			m.noteLight(file, l.slot, on, at)
			if changed && file == l.slot.Fault {
				m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventFaultLight, Drive: l.drive, To: onOff[on], Cause: "the fault light of bay " + l.slot.Bay + " is " + onOff[on]})
			}
			return nil
		})
	})
}

var onOff = map[bool]string{true: "on", false: "off"}

// noteLight records what was written to a light, unless a later listing has read it.
func (m *lightsT) noteLight(file string, slot drivebay.Slot, on bool, at uint64) {
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

// correctLights corrects a listing by the lights that were switched after it began.
func (m *lightsT) correctLights(list *Listing) {
	if list.Dark {
		return
	}
	m.lightsRead = list.began
	for file, l := range m.lights {
		if l.at < list.began {
			if !l.busy && !l.wanted && !l.is {
				delete(m.lights, file) // the listing shows its state
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

// turnOffLights turns off both lights of a bay that no longer needs an operator.
func (m *lightsT) turnOffLights(slot drivebay.Slot) {
	for _, file := range []string{slot.Fault, slot.Locate} {
		if file != "" {
			l := m.light(file, slot)
			l.wanted, l.is = false, true // an earlier run may have lit it
		}
	}
}

// setLight writes to the file of a light and reports whether the state changed. The read
// and the write go to the enclosure and may hang.
func (m *lightsT) setLight(ctx context.Context, in *lane.Lane, file string, on bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lightTime)
	defer cancel()
	return lane.Through(ctx, in, m.machine, func(context.Context) (bool, error) {
		if b, err := m.machine.ReadFile(file); err == nil && lit(strings.TrimSpace(string(b))) == on {
			return false, nil
		}
		return true, translate(m.machine.WriteFile(file, []byte(map[bool]string{true: "1", false: "0"}[on])))
	})
}
