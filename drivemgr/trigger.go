package drivemgr

import (
	"slices"

	"github.com/drivebay/drivebay"
)

// followHealth releases a drive whose health turned, where the policy says so.
func (m *Manager) followHealth() {
	if m.opt.ReleaseAt == drivebay.HealthUnknown || !m.listed || !m.listing.Complete || !m.asked() {
		return
	}
	var all []turned
	busy := false
	for id, t := range m.drives {
		busy = busy || t.rec.Usage == drivebay.UsageReleasing || t.rec.Usage == drivebay.UsageRemoving
		if is, poor := m.turnedSince(t); poor {
			all = append(all, is)
		} else {
			m.drives[id].poor, m.drives[id].heldBack = 0, ""
		}
	}
	v := decide(all, busy)
	for id, why := range v.held {
		if t := m.drives[id]; t.heldBack != why {
			t.heldBack = why
			m.tell(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventNotReleased, Drive: id, Cause: why + ": " + describe(&t.drive)})
		}
	}
	if t := m.drives[v.release]; t != nil && m.move(t, drivebay.UsageRelease, v.why) == nil {
		m.keepRecord(t)
	}
}

// asked says whether every drive was asked once since we started: before that it is not
// known which of them turned together.
func (m *Manager) asked() bool {
	if !m.inventoried {
		m.inventoried = true
		for _, t := range m.drives {
			m.inventoried = m.inventoried && (!t.present || !t.unasked())
		}
	}
	return m.inventoried
}

// turnedSince says whether a drive is as bad as the policy says, and how it is then.
func (m *Manager) turnedSince(t *tracked) (turned, bool) {
	d := &t.drive
	i := slices.IndexFunc(d.Findings, func(f drivebay.Finding) bool { return f.Severity >= m.opt.ReleaseAt })
	if !t.present || i < 0 {
		return turned{}, false
	}
	t.poor++
	poor := d.Findings[i:] // worst first; those of severity UNKNOWN sort among them
	out := turned{
		drive: d.ID, why: d.Findings[i].Severity.String() + ": " + d.Findings[i].Text, since: d.Findings[i].Since, rounds: t.poor, behind: behind(d),
		may: t.rec.Claim != nil && t.rec.Usage == drivebay.UsageInUse && !d.System, kept: true,
	}
	for _, f := range poor {
		if f.Severity < m.opt.ReleaseAt {
			continue
		}
		if f.Since.Before(out.since) {
			out.since = f.Since
		}
		out.kept = out.kept && slices.Contains(t.rec.Kept, f.Severity.String()+" "+f.Code)
	}
	return out, true
}
