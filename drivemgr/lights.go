package drivemgr

import (
	"context"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
)

// lightTime is how long an enclosure may take to switch a light.
const lightTime = 10 * time.Second

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
		if _, on := m.lit[slot.Fault]; !on {
			m.lit[slot.Fault] = slot
			m.switchFault(slot, id, true)
		}
	}
	for file, slot := range m.lit {
		if !wanted[file] {
			delete(m.lit, file)
			m.switchFault(slot, "", false)
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

// switchFault switches a fault light beside us, and tells of it.
func (m *Manager) switchFault(slot drivebay.Slot, drive string, on bool) {
	m.jobs = append(m.jobs, func(ctx context.Context) {
		changed, err := m.setLight(ctx, slot.Fault, on)
		if err != nil {
			m.log.Warn("fault light not switched", "op", "light", "drive", drive, "bay", slot.Bay, "err", err)
			return
		}
		_ = m.do(ctx, func() error { // not done: we are stopping
			m.showLight(slot, func(s *drivebay.Slot) { s.FaultLit = on })
			if changed {
				m.keeper.add(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventFaultLight, Drive: drive, To: onOff[on], Cause: "the fault light of bay " + slot.Bay + " is " + onOff[on]})
			}
			return nil
		})
	})
}

var onOff = map[bool]string{true: "on", false: "off"}

// darken puts out both lights of a bay that no hand is needed at any more.
func (m *Manager) darken(slot drivebay.Slot) {
	if slot.Fault != "" {
		m.lit[slot.Fault] = slot // an earlier run may have lit it
	}
	if slot.Locate == "" {
		return
	}
	m.jobs = append(m.jobs, func(ctx context.Context) {
		if _, err := m.setLight(ctx, slot.Locate, false); err != nil {
			m.log.Warn("bay not darkened", "op", "light", "bay", slot.Bay, "err", err)
			return
		}
		_ = m.do(ctx, func() error { m.showLight(slot, func(s *drivebay.Slot) { s.Lit = false }); return nil })
	})
}

// setLight writes to the file of a light and says whether that changed it. The bay's
// enclosure is asked for it and may hang.
func (m *Manager) setLight(ctx context.Context, file string, on bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lightTime)
	defer cancel()
	return lane.Through(ctx, lane.New(), m.machine, func(context.Context) (bool, error) {
		if b, err := m.machine.ReadFile(file); err == nil && lit(strings.TrimSpace(string(b))) == on {
			return false, nil
		}
		return true, translate(m.machine.WriteFile(file, []byte(map[bool]string{true: "1", false: "0"}[on])))
	})
}

// showLight brings a bay and the drive in it up to date, until they are listed again.
func (m *Manager) showLight(slot drivebay.Slot, set func(*drivebay.Slot)) {
	for i := range m.listing.Bays {
		if b := &m.listing.Bays[i]; b.Enclosure == slot.Enclosure && b.Bay == slot.Bay {
			set(&b.Slot)
		}
	}
	for _, t := range m.drives {
		if t.present && t.drive.Slot.Enclosure == slot.Enclosure && t.drive.Slot.Bay == slot.Bay {
			set(&t.drive.Slot)
		}
	}
}
