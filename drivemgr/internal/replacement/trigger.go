package replacement

import (
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/policy"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
)

// FollowHealth releases a drive whose health reaches ReleaseAt, where the policy allows it.
func (m *Replacer) FollowHealth() {
	if m.State.Opt.ReleaseAt == drivebay.HealthUnknown || !m.State.Listed || !m.State.Listing.Complete || !m.allRead() {
		return
	}
	var all []policy.BadDrive
	busy := false
	for id, t := range m.State.Drives {
		busy = busy || t.Rec.Usage == drivebay.UsageReleasing || t.Rec.Usage == drivebay.UsageRemoving
		if is, poor := m.releaseCandidate(t); poor {
			all = append(all, is)
		} else {
			m.State.Drives[id].RoundsAtRelease, m.State.Drives[id].HeldBack = 0, ""
		}
	}
	v := policy.DecideRelease(all, busy)
	for id, why := range v.Held {
		if t := m.State.Drives[id]; t.HeldBack != why {
			t.HeldBack = why
			m.State.QueueEvents(drivebay.Event{At: m.State.Machine.Now(), Kind: drivebay.EventNotReleased, Drive: id, Cause: why + ": " + state.Describe(&t.Drive)})
		}
	}
	if t := m.State.Drives[v.Release]; t != nil && m.State.ChangeUsage(t, drivebay.UsageRelease, v.Why) == nil {
		m.State.KeepRecord(t)
	}
}

// allRead reports whether every drive was read once since the start: before that the manager
// does not know which of them turned bad together.
func (m *Replacer) allRead() bool {
	if !m.inventoried {
		m.inventoried = true
		for _, t := range m.State.Drives {
			m.inventoried = m.inventoried && (!t.Present || !t.NotReadYet() && !t.Recalled)
		}
	}
	return m.inventoried
}

// releaseCandidate returns the state of a drive for the policy, and whether it is at ReleaseAt.
func (m *Replacer) releaseCandidate(t *state.Tracked) (policy.BadDrive, bool) {
	d := &t.Drive
	i := slices.IndexFunc(d.Findings, func(f drivebay.Finding) bool { return f.Severity >= m.State.Opt.ReleaseAt })
	if !t.Present || i < 0 {
		return policy.BadDrive{}, false
	}
	poor := d.Findings[i:] // worst first; UNKNOWN findings sort among them
	// A finding whose cause is gone says nothing new.
	if slices.ContainsFunc(poor, func(f drivebay.Finding) bool { return f.Severity >= m.State.Opt.ReleaseAt && f.Gone.IsZero() }) {
		t.RoundsAtRelease++
	}
	out := policy.BadDrive{
		Drive: d.ID, Why: d.Findings[i].Severity.String() + ": " + d.Findings[i].Text, Since: d.Findings[i].Since, Rounds: t.RoundsAtRelease, Behind: policy.SharedParts(d),
		May: t.Rec.Claim != nil && t.Rec.Usage == drivebay.UsageInUse && !d.System, Kept: true,
	}
	for _, f := range poor {
		if f.Severity < m.State.Opt.ReleaseAt {
			continue
		}
		if f.Since.Before(out.Since) {
			out.Since = f.Since
		}
		out.Kept = out.Kept && slices.Contains(t.Rec.Kept, f.Severity.String()+" "+f.Code)
	}
	return out, true
}
