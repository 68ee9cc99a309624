package drivemgr

import (
	"context"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

// This file detects pulled, returned and moved drives.

// pullTime is how long after the start of a removal the manager expects the drive to be
// pulled by hand.
const pullTime = time.Hour

// reportPull adds an event when another drive vanished than the one to be pulled. Several
// drives that vanish at once were not pulled by hand.
func (m *replacementT) reportPull(gone []*tracked, now time.Time) {
	if len(gone) != 1 || gone[0].rec.Usage == drivebay.UsageRemoved {
		return
	}
	wrong := &gone[0].drive
	for id, t := range m.drives {
		if l := t.rec.Leaving; t == gone[0] || l == nil || now.Sub(l.Since) > pullTime || !m.awaitsPull(id, t) {
			continue
		}
		m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventWrongPulled, Drive: wrong.ID, From: id,
			Cause: fmt.Sprintf("wrong drive pulled: put serial %s back into bay %s; the one to be pulled is %s: %s", wrong.Serial, wrong.Slot.Bay, id, m.Snapshot().Where(&t.drive))})
	}
}

// awaitsPull reports whether the drive is still in its bay and has to be pulled.
func (m *replacementT) awaitsPull(id string, t *tracked) bool {
	switch {
	case place(&t.drive) == "" || m.hasSuccessor(id):
		return false
	case t.rec.Usage == drivebay.UsageRemoving:
		return true
	case t.rec.Usage != drivebay.UsageRemoved:
		return false
	}
	for _, o := range m.drives {
		if o != t && o.present && place(&o.drive) == place(&t.drive) {
			return false
		}
	}
	return true
}

// reportReturn adds events when a known drive is back, or is in another bay.
func (m *replacementT) reportReturn(t *tracked, d *drivebay.Drive, now time.Time) {
	tell := func(kind drivebay.EventKind, from, cause string) {
		m.queueEvents(drivebay.Event{At: now, Kind: kind, Drive: d.ID, From: from, Cause: cause + ": " + describe(d)})
	}
	if t.rec.Usage == drivebay.UsageRemoved && t.drive.Status == drivebay.StatusOffline {
		tell(drivebay.EventQuarantined, "", "it was taken out and is back: nothing is written to it; pull it, or take it into use with `drivebay accept "+d.ID+"`")
	}
	was, is := place(&t.drive), place(d)
	if was == is || was == "" || is == "" {
		return
	}
	t.cameFrom = was
	for id, o := range m.drives {
		switch {
		case o == t:
		case o.cameFrom == is && place(&o.drive) == was:
			tell(drivebay.EventSwapped, id, fmt.Sprintf("it and drive %s have changed bays; both are known and stay what they are", id))
		case o.rec.Usage == drivebay.UsageRemoved && place(&o.drive) == is && !m.hasSuccessor(id):
			tell(drivebay.EventNotReplaced, id, fmt.Sprintf("it does not take the place of drive %s: it is known, was in bay %s, and stays what it is", id, t.drive.Slot.Bay))
		}
	}
}

// resumeRemovals continues the removals of an earlier run: drives that the kernel was to remove and
// that are still listed, or listed again.
func (m *replacementT) resumeRemovals(now time.Time) {
	for _, t := range m.drives {
		if t.rec.Usage != drivebay.UsageRemoving || !t.present {
			continue
		}
		d := t.drive
		m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventUsage, Drive: d.ID, From: d.Usage.String(), To: d.Usage.String(), Cause: "its removal continues after a restart: " + describe(&d)})
		if err := m.checkRemovable(t, t.rec.Forced); err != nil {
			_ = m.changeUsage(t, drivebay.UsageFail, err.Error()) // REMOVING allows it
			m.keepRecord(t)
			continue
		}
		m.jobs = append(m.jobs, func(ctx context.Context) {
			if err := m.removeFromKernel(ctx, &d); err != nil {
				m.log.Warn("not taken out", "op", "take out", "drive", d.ID, "err", err)
			}
		})
	}
}
