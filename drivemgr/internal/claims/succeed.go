package claims

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
)

// A new drive may be in the bay of a drive that is absent. If the old drive was removed with
// drivebay, the new one replaces it and inherits its claim. Otherwise the new drive inherits
// nothing, because the old one may come back. A drive that was known before replaces no other
// drive, whatever bay it is in.

// Predecessor returns the drive that was last in the bay of a new drive and is not listed
// now.
func (m *Claims) Predecessor(d *drivebay.Drive, seen map[string]bool) *drivebay.Succession {
	var last *state.Tracked
	for id, t := range m.State.Drives {
		if seen[id] || inventory.Place(d) == "" || inventory.Place(&t.Drive) != inventory.Place(d) || m.State.HasSuccessor(id) {
			continue
		}
		if t.Rec.Usage == drivebay.UsageInUse && t.Rec.Claim == nil {
			continue // it held no drivebay data
		}
		if last == nil || t.Drive.LastSeen.After(last.Drive.LastSeen) {
			last = t
		}
	}
	if last == nil {
		return nil
	}
	return &drivebay.Succession{Of: last.Drive.ID}
}

// succeed makes a drive the successor of its predecessor, or records why it is not.
func (m *Claims) succeed(t *state.Tracked) {
	s := t.Rec.Succeeds
	if s == nil || !s.Taken.IsZero() || !t.Present {
		return
	}
	before := m.State.Drives[s.Of]
	if before == nil || inventory.Place(&before.Drive) != inventory.Place(&t.Drive) { // forgotten, or one of them was moved
		t.Rec.Succeeds, t.Drive.Succeeds = nil, nil
		m.State.KeepRecord(t)
		return
	}
	why, sure := m.refusalToSucceed(before, t)
	switch {
	case !sure || why != "" && why == s.Against:
		return
	case why == "":
		m.inherit(t, before)
	default:
		t.Rec.Succeeds = &drivebay.Succession{Of: s.Of, Against: why}
		m.State.QueueEvents(drivebay.Event{At: m.State.Machine.Now(), Kind: drivebay.EventNotReplaced, Drive: t.Drive.ID, From: s.Of,
			Cause: "does not replace drive " + s.Of + ": " + why + ": " + state.Describe(&t.Drive)})
	}
	t.Drive.Succeeds = t.Rec.Succeeds
	m.State.KeepRecord(t)
}

// FollowPredecessors tries again for each drive that is not a successor yet: the obstacle may have
// been the state of the other drive.
func (m *Claims) FollowPredecessors() {
	for _, t := range m.State.Drives {
		m.succeed(t)
	}
}

// refusalToSucceed returns why a drive does not replace another one; sure is false while too
// little is known.
func (m *Claims) refusalToSucceed(before, t *state.Tracked) (why string, sure bool) {
	id, claim := before.Drive.ID, before.Rec.Claim
	switch {
	case before.Rec.Usage == drivebay.UsageInUse:
		return fmt.Sprintf("drive %s was in this bay, is absent and was not released: put it back, or replace it with `drivebay replace %s`", id, id), before.Drive.Status == drivebay.StatusOffline
	case before.Rec.Usage != drivebay.UsageRemoved:
		return fmt.Sprintf("drive %s was in this bay and is %v: `drivebay replace %s` continues its replacement", id, before.Rec.Usage, id), true
	case claim == nil || t.Rec.Claim != nil: // no claim to inherit, or the drive has one already
		return "", true
	case t.Drive.Content.Kind == drivebay.ContentUnknown && t.Drive.Content.Reason == "":
		return "", false
	}
	reasons := append(missingToReplace(before, &t.Drive), t.Drive.Refusals()...)
	if claim.By == drivebay.ClaimedByConfig && !m.State.Opt.Claim.Match(&t.Drive) {
		reasons = append(reasons, "the configuration selects the old drive and not this one")
	}
	if len(reasons) == 0 {
		return "", true
	}
	return strings.Join(reasons, "; ") + fmt.Sprintf("; drivebay writes nothing to this drive until `drivebay claim %s`", t.Drive.ID), true
}

// missingToReplace returns what a drive lacks to replace another one. A drive that fails can show fewer
// bytes than it has, or none: the old drive counts with the most that it ever had.
func missingToReplace(before *state.Tracked, d *drivebay.Drive) (reasons []string) {
	if full := max(before.Rec.FullSize, before.Drive.Size); d.Size < full {
		reasons = append(reasons, fmt.Sprintf("has %d bytes, the old drive %d", d.Size, full))
	}
	if was := before.Drive.Type; d.Type != was && d.Type != drivebay.TypeUnknown && was != drivebay.TypeUnknown {
		reasons = append(reasons, fmt.Sprintf("is of type %v, the old drive of type %v", d.Type, was))
	}
	return reasons
}

func (m *Claims) inherit(t, before *state.Tracked) {
	now := m.State.Machine.Now()
	cause := "replaces drive " + before.Drive.ID
	if before.Rec.Claim != nil && t.Rec.Claim == nil {
		m.setClaim(t, drivebay.ClaimedByOperator, "in the bay of drive "+before.Drive.ID+", which was removed")
		cause += " and inherits its claim"
	}
	t.Rec.Succeeds = &drivebay.Succession{Of: before.Drive.ID, Taken: now}
	m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventReplaced, Drive: t.Drive.ID, From: before.Drive.ID, To: t.Drive.ID, Cause: cause + ": " + state.Describe(&t.Drive)})
	m.Lights.TurnOffLights(t.Drive.Slot)
}
