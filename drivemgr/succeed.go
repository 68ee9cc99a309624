package drivemgr

import (
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
)

// A drive that is new in the machine may be in the bay of one that is gone. Was that
// one taken out, the new one takes its place, with what an operator has said of it.
// Was it not, the new one takes nothing: the other may come back. Drives that are
// known take nobody's place, wherever they are.

// predecessor finds the drive that was in the bay of a new one last, and is not seen
// elsewhere.
func (m *Manager) predecessor(d *drivebay.Drive, seen map[string]bool) *drivebay.Succession {
	var last *tracked
	for id, t := range m.drives {
		if seen[id] || place(d) == "" || place(&t.drive) != place(d) || m.replaced(id) {
			continue
		}
		if t.rec.Usage == drivebay.UsageInUse && t.rec.Claim == nil {
			continue // nothing of ours was on it
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

// replaced says whether a drive's place is taken.
func (m *Manager) replaced(id string) bool {
	for _, t := range m.drives {
		if s := t.rec.Succeeds; s != nil && s.Of == id && !s.Taken.IsZero() {
			return true
		}
	}
	return false
}

// succeed lets a drive take the place of the one before it, or says why it does not.
func (m *Manager) succeed(t *tracked) {
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
	why, sure := m.against(before, t)
	switch {
	case !sure || why != "" && why == s.Against:
		return
	case why == "":
		m.takePlace(t, before)
	default:
		t.rec.Succeeds = &drivebay.Succession{Of: s.Of, Against: why}
		m.tell(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventNotReplaced, Drive: t.drive.ID, From: s.Of,
			Cause: "it does not take the place of drive " + s.Of + ": " + why + ": " + describe(&t.drive)})
	}
	t.drive.Succeeds = t.rec.Succeeds
	m.keepRecord(t)
}

// followPredecessors looks again where a place is not taken yet: what stood against it
// may have been the other drive.
func (m *Manager) followPredecessors() {
	for _, t := range m.drives {
		m.succeed(t)
	}
}

// against says why a drive does not take the place of another one; sure is false
// while not enough is known.
func (m *Manager) against(before, t *tracked) (why string, sure bool) {
	id, claim := before.drive.ID, before.rec.Claim
	switch {
	case before.rec.Usage == drivebay.UsageInUse:
		return fmt.Sprintf("drive %s was in this bay, is missing and was not released: put it back, or let go of it with `drivebay replace %s`", id, id), before.drive.Status == drivebay.StatusOffline
	case before.rec.Usage != drivebay.UsageRemoved:
		return fmt.Sprintf("drive %s was in this bay and is %v: `drivebay replace %s` leads it on", id, before.rec.Usage, id), true
	case claim == nil || t.rec.Claim != nil: // nothing to take over, or somebody has said so
		return "", true
	case t.drive.Content.Kind == drivebay.ContentUnknown && t.drive.Content.Reason == "":
		return "", false
	}
	reasons := append(unfit(&before.drive, &t.drive), t.drive.Refusals()...)
	if claim.By == drivebay.ClaimedByConfig && !m.opt.Claim.Match(&t.drive) {
		reasons = append(reasons, "the configuration means that drive, and not this one")
	}
	if len(reasons) == 0 {
		return "", true
	}
	return strings.Join(reasons, "; ") + fmt.Sprintf("; nothing is written to it until `drivebay claim %s`", t.drive.ID), true
}

// unfit says what a drive lacks to stand in for another one.
func unfit(before, d *drivebay.Drive) (reasons []string) {
	if d.Size < before.Size {
		reasons = append(reasons, fmt.Sprintf("it has %d bytes, and that one has %d", d.Size, before.Size))
	}
	if d.Type != before.Type && d.Type != drivebay.TypeUnknown && before.Type != drivebay.TypeUnknown {
		reasons = append(reasons, fmt.Sprintf("it is of type %v, and that one of type %v", d.Type, before.Type))
	}
	return reasons
}

func (m *Manager) takePlace(t, before *tracked) {
	now := m.machine.Now()
	cause := "it takes the place of drive " + before.drive.ID
	if before.rec.Claim != nil && t.rec.Claim == nil {
		m.setClaim(t, drivebay.ClaimedByOperator, "it is in the bay of drive "+before.drive.ID+", which was taken out")
		cause += ", and its claim"
	}
	t.rec.Succeeds = &drivebay.Succession{Of: before.drive.ID, Taken: now}
	m.tell(drivebay.Event{At: now, Kind: drivebay.EventReplaced, Drive: t.drive.ID, From: before.drive.ID, To: t.drive.ID, Cause: cause + ": " + describe(&t.drive)})
	m.darken(t.drive.Slot)
}
