package state

import (
	"fmt"

	"github.com/drivebay/drivebay"
)

// BlockUnclaim sets why: a drive keeps its claim while why returns a reason, for example a copy
// that cannot be stopped without another write.
func (m *State) BlockUnclaim(why func(drive string) string) { m.unclaimBlock.Store(&why) }

// UnclaimBlocked returns why a drive has to keep its claim, "" when it may be dropped.
func (m *State) UnclaimBlocked(t *Tracked) string {
	if why := m.unclaimBlock.Load(); why != nil {
		return (*why)(t.Drive.ID)
	}
	return ""
}

// BlockRemoval sets why: a drive that is RELEASED, or that a restarted daemon is to remove, is not removed while why
// returns a reason.
func (m *State) BlockRemoval(why func(drive string) string) { m.removalBlock.Store(&why) }

// RemovalBlocked returns why a released drive may not be removed, "" when it may.
func (m *State) RemovalBlocked(drive string) string {
	if why := m.removalBlock.Load(); why != nil {
		return (*why)(drive)
	}
	return ""
}

// DeleteRecord removes the record of a drive that is OFFLINE.
func (m *State) DeleteRecord(t *Tracked, why string) {
	t.Life++ // the result of a reading under way is ignored
	delete(m.Drives, t.Drive.ID)
	m.Keeper.Forget(t.Drive.ID)
	m.QueueEvents(drivebay.Event{At: m.Machine.Now(), Kind: drivebay.EventForgotten, Drive: t.Drive.ID, From: t.Rec.Usage.String(), Cause: why + ": " + Describe(&t.Drive)})
}

// ChangeUsage makes one usage transition, with its event.
func (m *State) ChangeUsage(t *Tracked, e drivebay.UsageEvent, cause string) error {
	from := t.Rec.Usage
	to, err := from.Next(e)
	if err != nil {
		return fmt.Errorf("drive %s (%s): %w", t.Drive.ID, t.Drive.Name, err)
	}
	now := m.Machine.Now()
	t.Rec.Usage, t.Rec.Forced, t.Asked = to, e == drivebay.UsageForce, to == drivebay.UsageRemoving
	if to == drivebay.UsageInUse {
		t.Rec.Kept = findingKeys(t.Drive.Findings) // kept despite these
	}
	switch was := t.Rec.Leaving; {
	case to == drivebay.UsageInUse:
		t.Rec.Leaving = nil
	case was == nil:
		t.Rec.Leaving = &drivebay.Leaving{Since: now, Why: cause}
	case e == drivebay.UsageFail:
		t.Rec.Leaving = &drivebay.Leaving{Since: now, Why: was.Why, Cause: cause}
	default:
		t.Rec.Leaving = &drivebay.Leaving{Since: now, Why: was.Why}
	}
	t.Drive.Usage, t.Drive.Leaving = to, t.Rec.Leaving
	m.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventUsage, Drive: t.Drive.ID, From: from.String(), To: to.String(), Cause: cause + ": " + Describe(&t.Drive)})
	return nil
}

// findingKeys returns a key for each finding, by which it is recognized later.
func findingKeys(findings []drivebay.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Severity.String()+" "+f.Code)
	}
	return out
}
