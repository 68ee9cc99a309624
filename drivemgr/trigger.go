package drivemgr

import (
	"slices"

	"github.com/drivebay/drivebay"
)

// followHealth releases a drive whose health reaches ReleaseAt, where the policy allows it.
func (m *replacementT) followHealth() {
	if m.opt.ReleaseAt == drivebay.HealthUnknown || !m.listed || !m.listing.Complete || !m.allRead() {
		return
	}
	var all []badDrive
	busy := false
	for id, t := range m.drives {
		busy = busy || t.rec.Usage == drivebay.UsageReleasing || t.rec.Usage == drivebay.UsageRemoving
		if is, poor := m.turnedBad(t); poor {
			all = append(all, is)
		} else {
			m.drives[id].poor, m.drives[id].heldBack = 0, ""
		}
	}
	v := decide(all, busy)
	for id, why := range v.held {
		if t := m.drives[id]; t.heldBack != why {
			t.heldBack = why
			m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventNotReleased, Drive: id, Cause: why + ": " + describe(&t.drive)})
		}
	}
	if t := m.drives[v.release]; t != nil && m.changeUsage(t, drivebay.UsageRelease, v.why) == nil {
		m.keepRecord(t)
	}
}

// allRead reports whether every drive was read once since the start: before that the manager
// does not know which of them turned bad together.
func (m *replacementT) allRead() bool {
	if !m.inventoried {
		m.inventoried = true
		for _, t := range m.drives {
			m.inventoried = m.inventoried && (!t.present || !t.unasked())
		}
	}
	return m.inventoried
}

// turnedBad returns the state of a drive for the policy, and whether it is at ReleaseAt.
func (m *replacementT) turnedBad(t *tracked) (badDrive, bool) {
	d := &t.drive
	i := slices.IndexFunc(d.Findings, func(f drivebay.Finding) bool { return f.Severity >= m.opt.ReleaseAt })
	if !t.present || i < 0 {
		return badDrive{}, false
	}
	t.poor++
	poor := d.Findings[i:] // worst first; UNKNOWN findings sort among them
	out := badDrive{
		drive: d.ID, why: d.Findings[i].Severity.String() + ": " + d.Findings[i].Text, since: d.Findings[i].Since, rounds: t.poor, behind: sharedParts(d),
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
