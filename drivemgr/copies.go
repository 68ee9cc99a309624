package drivemgr

import (
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// findCopies records for every drive whether another drive has the same identity written
// on it, and adds an event for each change.
func (m *trackingT) findCopies() {
	drives := make([]drivebay.Drive, 0, len(m.drives))
	for _, t := range m.drives {
		drives = append(drives, t.drive)
	}
	slices.SortFunc(drives, func(a, b drivebay.Drive) int { return strings.Compare(a.ID, b.ID) })
	copies := drivebay.Copies(drives)
	for id, t := range m.drives {
		why := copies[id]
		if why == t.drive.Copy {
			continue
		}
		cause := why
		if why == "" {
			cause = "no other drive has the same content any more"
		}
		t.drive.Copy = why
		m.queueEvents(drivebay.Event{At: m.machine.Now(), Kind: drivebay.EventIdentity, Drive: id, From: id, To: id, Cause: cause})
	}
}
