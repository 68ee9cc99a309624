package tracking

import (
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/lane"
)

// NamedBy sets named, which returns the drives that the records of volumes name, with one owner of each. It returns
// nil while these records are not known.
func (m *Tracker) NamedBy(named func() map[string]string) { m.named.Store(&named) }

// namedDrives returns what NamedBy set; known is false while the records of volumes are not known.
func (m *Tracker) namedDrives() (owners map[string]string, known bool) {
	named := m.named.Load()
	if named == nil {
		return nil, true // the machine has no volumes
	}
	owners = (*named)()
	return owners, owners != nil
}

// showNamed makes a record of each drive that volumes are on, that a complete listing lacks, and that has no record: its
// record was damaged or lost. Without a record nothing would wait for such a drive.
func (m *Tracker) showNamed(now time.Time) {
	owners, _ := m.namedDrives()
	for id, owner := range owners {
		if m.State.Drives[id] != nil {
			continue
		}
		t := &state.Tracked{Lane: lane.New(), Fresh: true}
		t.Rec.Usage, _ = drivebay.UsageUnknown.Next(drivebay.UsageSeen)
		t.Drive = drivebay.Drive{ID: id, Name: state.NoName, Status: drivebay.StatusOffline, Usage: t.Rec.Usage, FirstSeen: now, LastSeen: now}
		m.State.Drives[id] = t
		m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventVanished, Drive: id, From: drivebay.StatusUnknown.String(), To: t.Drive.Status.String(),
			Cause: "absent from the machine, and no record of the drive can be found, but " + owner + " is on it"})
		m.Poll.Assess(t)
		m.State.KeepRecord(t)
	}
}
