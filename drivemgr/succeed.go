package drivemgr

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// A new drive may be in the bay of one that is gone. If the old drive was taken out, the
// new one takes its place and its claim. If it was not, the new drive takes nothing: the
// old one may come back. Known drives take no other drive's place, whatever bay they are
// in.

// predecessor returns the drive that was last in the bay of a new drive and is not listed
// now.
func (m *claimsT) predecessor(d *drivebay.Drive, seen map[string]bool) *drivebay.Succession {
	var last *tracked
	for id, t := range m.drives {
		if seen[id] || place(d) == "" || place(&t.drive) != place(d) || m.hasSuccessor(id) {
			continue
		}
		if t.rec.Usage == drivebay.UsageInUse && t.rec.Claim == nil {
			continue // it held no drivebay data
		}
		if last == nil || t.drive.LastSeen.After(last.drive.LastSeen) {
			last = t
		}
	}
	if last == nil {
		return nil
	}
	return &drivebay.Succession{Of: last.drive.ID}
}

// hasSuccessor reports whether another drive has taken a drive's place.
func (m *fleetT) hasSuccessor(id string) bool {
	for _, t := range m.drives {
		if s := t.rec.Succeeds; s != nil && s.Of == id && !s.Taken.IsZero() {
			return true
		}
	}
	return false
}

// succeed gives a drive the place of its predecessor, or records why it does not.
func (m *claimsT) succeed(t *tracked) {
	s := t.rec.Succeeds
	if s == nil || !s.Taken.IsZero() || !t.present {
		return
	}
	before := m.drives[s.Of]
	if before == nil || place(&before.drive) != place(&t.drive) { // forgotten, or one of them was moved
		t.rec.Succeeds, t.drive.Succeeds = nil, nil
		m.keepRecord(t)
		return
	}
	why, sure := m.refusalToSucceed(before, t)
	switch {
	case !sure || why != "" && why == s.Against:
		return
	case why == "":
		m.inherit(t, before)
	default:
		t.rec.Succeeds = &drivebay.Succession{Of: s.Of, Against: why}
		m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventNotReplaced, Drive: t.drive.ID, From: s.Of,
			Cause: "it does not take the place of drive " + s.Of + ": " + why + ": " + describe(&t.drive)})
	}
	t.drive.Succeeds = t.rec.Succeeds
	m.keepRecord(t)
}

// followPredecessors tries again where a place is not taken yet: the obstacle may have been
// the state of the other drive.
func (m *claimsT) followPredecessors() {
	for _, t := range m.drives {
		m.succeed(t)
	}
}

// refusalToSucceed returns why a drive does not take the place of another one; sure is false
// while too little is known.
func (m *claimsT) refusalToSucceed(before, t *tracked) (why string, sure bool) {
	id, claim := before.drive.ID, before.rec.Claim
	switch {
	case before.rec.Usage == drivebay.UsageInUse:
		return fmt.Sprintf("drive %s was in this bay, is missing and was not released: put it back, or let go of it with `drivebay replace %s`", id, id), before.drive.Status == drivebay.StatusOffline
	case before.rec.Usage != drivebay.UsageRemoved:
		return fmt.Sprintf("drive %s was in this bay and is %v: `drivebay replace %s` leads it on", id, before.rec.Usage, id), true
	case claim == nil || t.rec.Claim != nil: // no claim to take over, or the drive has one already
		return "", true
	case t.drive.Content.Kind == drivebay.ContentUnknown && t.drive.Content.Reason == "":
		return "", false
	}
	reasons := append(missingToReplace(&before.drive, &t.drive), t.drive.Refusals()...)
	if claim.By == drivebay.ClaimedByConfig && !m.opt.Claim.Match(&t.drive) {
		reasons = append(reasons, "the configuration means that drive, and not this one")
	}
	if len(reasons) == 0 {
		return "", true
	}
	return strings.Join(reasons, "; ") + fmt.Sprintf("; nothing is written to it until `drivebay claim %s`", t.drive.ID), true
}

// missingToReplace returns what a drive lacks to replace another one.
func missingToReplace(before, d *drivebay.Drive) (reasons []string) {
	if d.Size < before.Size {
		reasons = append(reasons, fmt.Sprintf("it has %d bytes, and that one has %d", d.Size, before.Size))
	}
	if d.Type != before.Type && d.Type != drivebay.TypeUnknown && before.Type != drivebay.TypeUnknown {
		reasons = append(reasons, fmt.Sprintf("it is of type %v, and that one of type %v", d.Type, before.Type))
	}
	return reasons
}

func (m *claimsT) inherit(t, before *tracked) {
	now := m.machine.Now()
	cause := "it takes the place of drive " + before.drive.ID
	if before.rec.Claim != nil && t.rec.Claim == nil {
		m.setClaim(t, drivebay.ClaimedByOperator, "it is in the bay of drive "+before.drive.ID+", which was taken out")
		cause += ", and its claim"
	}
	t.rec.Succeeds = &drivebay.Succession{Of: before.drive.ID, Taken: now}
	m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventReplaced, Drive: t.drive.ID, From: before.drive.ID, To: t.drive.ID, Cause: cause + ": " + describe(&t.drive)})
	m.turnOffLights(t.drive.Slot)
}
