package drivemgr

import (
	"context"
	"fmt"
	"time"

	"github.com/drivebay/drivebay"
)

// What people do at the rack, as far as it can be told from what is seen.

// pullTime is how long after a drive was taken out somebody may be expected to stand
// before the rack to pull it.
const pullTime = time.Hour

// tellOfPull says when another drive left than the one that is to be pulled. Several
// that leave at once are no hand's doing.
func (m *Manager) tellOfPull(gone []*tracked, now time.Time) {
	if len(gone) != 1 || gone[0].rec.Usage == drivebay.UsageRemoved {
		return
	}
	wrong := &gone[0].drive
	for id, t := range m.drives {
		if l := t.rec.Leaving; t == gone[0] || l == nil || now.Sub(l.Since) > pullTime || !m.awaitsPull(id, t) {
			continue
		}
		m.tell(drivebay.Event{At: now, Kind: drivebay.EventWrongPulled, Drive: wrong.ID, From: id,
			Cause: fmt.Sprintf("wrong drive pulled: put serial %s back into bay %s; the one to be pulled is %s: %s", wrong.Serial, wrong.Slot.Bay, id, m.Snapshot().Where(&t.drive))})
	}
}

// awaitsPull says whether the bay of a drive is one at which a hand is expected.
func (m *Manager) awaitsPull(id string, t *tracked) bool {
	switch {
	case place(&t.drive) == "" || m.replaced(id):
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

// tellOfReturn says what it means that a known drive is back, or in another bay.
func (m *Manager) tellOfReturn(t *tracked, d *drivebay.Drive, now time.Time) {
	tell := func(kind drivebay.EventKind, from, cause string) {
		m.tell(drivebay.Event{At: now, Kind: kind, Drive: d.ID, From: from, Cause: cause + ": " + describe(d)})
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
		case o.rec.Usage == drivebay.UsageRemoved && place(&o.drive) == is && !m.replaced(id):
			tell(drivebay.EventNotReplaced, id, fmt.Sprintf("it does not take the place of drive %s: it is known, was in bay %s, and stays what it is", id, t.drive.Slot.Bay))
		}
	}
}

// goOn takes up what an earlier run did not bring to its end: a drive that the kernel
// was to let go of, and still has or has again.
func (m *Manager) goOn(now time.Time) {
	for _, t := range m.drives {
		if t.rec.Usage != drivebay.UsageRemoving || !t.present {
			continue
		}
		d := t.drive
		m.tell(drivebay.Event{At: now, Kind: drivebay.EventUsage, Drive: d.ID, From: d.Usage.String(), To: d.Usage.String(), Cause: "it goes on being taken out after a restart: " + describe(&d)})
		if err := m.mayGo(t, false); err != nil {
			_ = m.move(t, drivebay.UsageFail, err.Error()) // from REMOVING it may
			m.keepRecord(t)
			continue
		}
		m.jobs = append(m.jobs, func(ctx context.Context) {
			if err := m.takeOut(ctx, &d); err != nil {
				m.log.Warn("not taken out", "op", "take out", "drive", d.ID, "err", err)
			}
		})
	}
}
