package replacement

import (
	"context"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
)

// This file detects pulled, returned and moved drives.

// pullTime is how long after the start of a removal the manager expects the drive to be
// pulled by hand.
const pullTime = time.Hour

// ReportPull adds an event when another drive vanished than the one to be pulled. Several
// drives that vanish at once were not pulled by hand.
func (m *Replacer) ReportPull(gone []*state.Tracked, now time.Time) {
	if len(gone) != 1 || gone[0].Rec.Usage == drivebay.UsageRemoved {
		return
	}
	wrong := &gone[0].Drive
	for id, t := range m.State.Drives {
		if l := t.Rec.Leaving; t == gone[0] || l == nil || now.Sub(l.Since) > pullTime || !m.awaitsPull(id, t) {
			continue
		}
		m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventWrongPulled, Drive: wrong.ID, From: id,
			Cause: fmt.Sprintf("wrong drive pulled: put the drive with serial %s back into bay %s; the drive to pull is %s: %s", wrong.Serial, wrong.Slot.Bay, id, m.State.Snapshot().Where(&t.Drive))})
	}
}

// awaitsPull reports whether the drive is still in its bay and has to be pulled.
func (m *Replacer) awaitsPull(id string, t *state.Tracked) bool {
	switch {
	case inventory.Place(&t.Drive) == "" || m.State.HasSuccessor(id):
		return false
	case t.Rec.Usage == drivebay.UsageRemoving:
		return true
	case t.Rec.Usage != drivebay.UsageRemoved:
		return false
	}
	for _, o := range m.State.Drives {
		if o != t && o.Present && inventory.Place(&o.Drive) == inventory.Place(&t.Drive) {
			return false
		}
	}
	return true
}

// ReportReturn adds events when a known drive is back, or is in another bay.
func (m *Replacer) ReportReturn(t *state.Tracked, d *drivebay.Drive, now time.Time) {
	addEvent := func(kind drivebay.EventKind, from, cause string) {
		m.State.QueueEvents(drivebay.Event{At: now, Kind: kind, Drive: d.ID, From: from, Cause: cause + ": " + state.Describe(d)})
	}
	if t.Rec.Usage == drivebay.UsageRemoved && t.Drive.Status == drivebay.StatusOffline {
		addEvent(drivebay.EventQuarantined, "", "a removed drive is back: drivebay writes nothing to it; pull it, or use it again with `drivebay accept "+d.ID+"`")
	}
	was, is := inventory.Place(&t.Drive), inventory.Place(d)
	if was == is || was == "" || is == "" {
		return
	}
	t.CameFrom = was
	for id, o := range m.State.Drives {
		switch {
		case o == t:
		case o.CameFrom == is && inventory.Place(&o.Drive) == was:
			addEvent(drivebay.EventSwapped, id, fmt.Sprintf("swapped bays with drive %s; both drives were recognized and keep their records", id))
		case o.Rec.Usage == drivebay.UsageRemoved && inventory.Place(&o.Drive) == is && !m.State.HasSuccessor(id):
			addEvent(drivebay.EventNotReplaced, id, fmt.Sprintf("does not replace drive %s: this drive was known before, in bay %s, and keeps its record", id, t.Drive.Slot.Bay))
		}
	}
}

// ResumeRemovals continues the removals of an earlier run: drives that the kernel was to remove and
// that are still listed, or listed again. The record of such a drive can be older than the volumes on it: the removal
// waits until nothing depends on the drive, unless it was forced.
func (m *Replacer) ResumeRemovals(now time.Time) {
	for _, t := range m.State.Drives {
		if t.Rec.Usage != drivebay.UsageRemoving || !t.Present || t.Asked { // a listing that lacks it may be incomplete
			continue
		}
		why := ""
		if !t.Rec.Forced {
			why = m.State.RemovalBlocked(t.Drive.ID)
		}
		if m.waits(t, why, nil); why != "" {
			continue
		}
		t.Asked = true
		d := t.Drive
		m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventUsage, Drive: d.ID, From: d.Usage.String(), To: d.Usage.String(), Cause: "the removal continues after a restart: " + state.Describe(&d)})
		if err := m.CheckRemovable(t, t.Rec.Forced); err != nil {
			_ = m.State.ChangeUsage(t, drivebay.UsageFail, err.Error()) // REMOVING allows it
			m.State.KeepRecord(t)
			continue
		}
		m.State.Jobs = append(m.State.Jobs, func(ctx context.Context) {
			if err := m.removeFromKernel(ctx, &d); err != nil {
				m.State.Log.Warn("cannot remove a drive", "op", "remove", "drive", d.ID, "err", err)
			}
		})
	}
}
