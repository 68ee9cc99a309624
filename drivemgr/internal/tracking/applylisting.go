package tracking

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/claims"
	"github.com/drivebay/drivebay/drivemgr/internal/inventory"
	"github.com/drivebay/drivebay/drivemgr/internal/lights"
	"github.com/drivebay/drivebay/drivemgr/internal/poll"
	"github.com/drivebay/drivebay/drivemgr/internal/replacement"
	"github.com/drivebay/drivebay/drivemgr/internal/state"
	"github.com/drivebay/drivebay/internal/lane"
)

// Tracker applies listings to the drives that are known.
type Tracker struct {
	State       *state.State
	Lights      *lights.Lights
	Claims      *claims.Claims
	Poll        *poll.Poller
	Replacement *replacement.Replacer

	named         atomic.Pointer[func() map[string]string] // of NamedBy
	Listings      chan inventory.Listing
	ListedAt      time.Time // time of the last listing
	DrivesChanged bool      // drives came or went since enclosures were read
}

// ApplyListing makes a listing the state of the machine. A missing drive counts as gone only when
// the listing is complete: a failed read is not a pulled drive. ApplyListing ignores a listing
// that began before the last one that it applied.
func (m *Tracker) ApplyListing(l inventory.Listing) {
	if l.Began < m.State.Listing.Began {
		m.DrivesChanged = m.DrivesChanged || !l.EnclosuresSkipped // its reading of the enclosures has to be repeated
		return
	}
	now := m.State.Machine.Now()
	l.Bays = keepSlots(m.State.Listing.Bays, l.Bays)
	m.DrivesChanged = l.EnclosuresSkipped && (m.DrivesChanged || !slices.EqualFunc(m.State.Listing.Drives, l.Drives, func(a, b drivebay.Drive) bool { return a.ID == b.ID }))
	if l.EnclosuresSkipped {
		keepEnclosureState(m.State.Listing.Bays, &l)
	}
	m.Lights.CorrectLights(&l)
	share := m.keepIDs(&l)
	m.State.Listing, m.ListedAt = l, now
	seen := map[string]bool{}
	for i := range l.Drives {
		seen[l.Drives[i].ID] = true
	}
	m.dropAliases(l.Drives, seen)
	for i := range l.Drives {
		m.applyDrive(&l.Drives[i], seen, now)
	}
	for id, why := range share.inDoubt {
		m.setUnidentified(m.State.Drives[id], why, now)
	}
	for id, is := range share.duplicates {
		if t := m.State.Drives[id]; t.Rec.Duplicate != is {
			t.Rec.Duplicate = is
			m.State.KeepRecord(t)
		}
	}
	if l.Complete {
		var gone []*state.Tracked
		for id, t := range m.State.Drives {
			if !seen[id] && share.inDoubt[id] == "" && m.SetOffline(id, t, now) {
				gone = append(gone, t)
			}
		}
		m.Replacement.ReportPull(gone, now)
		m.showNamed(now)
	}
	m.Replacement.ResumeRemovals(now)
	m.State.Listed = true
	m.Poll.AddUnlisted(l.Began)
	m.fillBays()
}

// seenAt returns when a drive was seen last. A rounded time, or one by a clock that was set back, can lie before
// the time when the drive was seen first: it is not before that one.
func seenAt(d *drivebay.Drive, at time.Time) time.Time {
	if at.Before(d.FirstSeen) {
		return d.FirstSeen
	}
	return at
}

// applyDrive updates the record of one listed drive, or makes one.
func (m *Tracker) applyDrive(d *drivebay.Drive, seen map[string]bool, now time.Time) {
	t := m.State.Drives[d.ID]
	if t == nil {
		t = m.claimAlias(d, seen)
	}
	if t == nil {
		t = &state.Tracked{Lane: lane.New(), Fresh: true}
		t.Rec.Usage, _ = drivebay.UsageUnknown.Next(drivebay.UsageSeen)
		t.Drive.FirstSeen = now
		t.Rec.Succeeds = m.Claims.Predecessor(d, seen)
		m.State.Drives[d.ID] = t
		m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventAppeared, Drive: d.ID, To: d.Name, Cause: "found: " + state.Describe(d)})
	} else {
		keepBay(t, d)
		m.State.QueueEvents(state.Changes(&t.Drive, d, now)...)
		m.Replacement.ReportReturn(t, d, now)
	}
	if away := !t.Absent.IsZero() || t.Present && !t.IsDevice(d); away && t.Rec.Usage != drivebay.UsageRemoved { // a removed drive was taken out by hand
		t.Kernlog.AddReturn(now)
	}
	t.Absent = time.Time{}
	if !t.Present || !t.IsDevice(d) { // new, or back, maybe since the last listing: its known state is old
		t.Begin(now)
	}
	before := t.Drive
	t.Drive = merge(before, *d)
	t.Drive.LastSeen = seenAt(&t.Drive, now.Truncate(time.Minute))
	t.Drive.Usage, t.Drive.Leaving, t.Drive.Cordoned, t.Drive.Claim, t.Drive.Succeeds = t.Rec.Usage, t.Rec.Leaving, t.Rec.Cordoned, t.Rec.Claim, t.Rec.Succeeds
	_, used := inventory.ForeignUse(t.Drive.Uses)
	unused := inventory.FromUses(t.Drive.Content) && !used
	if unused {
		t.Drive.Content = drivebay.Content{Reason: drivebay.NotRead}
	}
	if before.Size != t.Drive.Size || unused {
		t.Fresh, t.NextReading = true, now
	}
	if !slices.Equal(before.Uses, t.Drive.Uses) { // other filesystems: their error counters have to be read
		t.FSErrorsRead = time.Time{}
	}
	m.Poll.RefreshKernel(t, now)
	m.Poll.Assess(t)
	if before.Status != t.Drive.Status || before.Size != t.Drive.Size || before.IdentityIssue != d.IdentityIssue || before.Slot != d.Slot {
		m.State.KeepRecord(t)
	}
}

// keepBay gives a drive that is still the same device the bay that it had, if the listing shows none: to change
// its bay, a drive has to leave. The kernel removes the link from an enclosure's bay before the device of a SCSI
// disk (drivers/scsi/scsi_sysfs.c, __scsi_remove_device), and the bay is where a missing drive is looked for.
func keepBay(t *state.Tracked, d *drivebay.Drive) {
	if t.Present && d.Slot.Bay == "" && t.IsDevice(d) {
		d.Slot = t.Drive.Slot
	}
}

// claimAlias finds the record that drive d has under an -at- id. The drive gets the id of its
// own names when its duplicates are gone and no drive had that id.
func (m *Tracker) claimAlias(d *drivebay.Drive, seen map[string]bool) *state.Tracked {
	for id, t := range m.State.Drives {
		old := &t.Drive
		if t.BaseOf() == id || seen[id] || !t.Present || old.Serial != d.Serial || old.WWN != d.WWN || old.Size != d.Size || !state.SamePlace(old, d) {
			continue
		}
		delete(m.State.Drives, id)
		m.State.Keeper.Forget(id)
		m.State.Drives[d.ID] = t
		return t
	}
	return nil
}

// merge combines a new listing of a drive with its known state. The listing has what
// the drive is and where; what was read from the drive itself stays.
func merge(old, d drivebay.Drive) drivebay.Drive {
	d.Status = drivebay.StatusOnline
	d.Denied = old.Denied
	d.Evidence, d.Findings, d.Health = old.Evidence, old.Findings, old.Health
	d.Kernel = old.Kernel
	d.Temperature, d.PowerOnHours, d.Wear, d.SelfTest = old.Temperature, old.PowerOnHours, old.Wear, old.SelfTest
	d.FirstSeen = old.FirstSeen
	// The content read from the drive is more exact than that of sysfs, until sysfs reports
	// another kind.
	if d.Content.Kind == drivebay.ContentUnknown || d.Content.Kind == old.Content.Kind {
		d.Content = old.Content
	}
	state.FillIdentity(&d)
	return d
}

// missedFor is how long this manager itself has to miss a drive before it deletes the record: a clock that is ahead, until it is set, makes
// each absence look long.
const missedFor = time.Hour

// SetOffline sets a drive OFFLINE that a complete listing lacks, and reports whether it left
// just now.
func (m *Tracker) SetOffline(id string, t *state.Tracked, now time.Time) bool {
	t.Present = false
	if t.Absent.IsZero() {
		t.Absent = now
	}
	if t.Drive.Status != drivebay.StatusOffline {
		was := t.Drive
		t.Kernlog.MarkLeft(now)
		t.Drive.Status = drivebay.StatusOffline
		if t.BaseOf() == id { // its duplicates do not matter while it is away
			t.Drive.IdentityIssue = ""
		}
		t.Drive.Kernel, t.Drive.Uses, t.Drive.Slot.Lit, t.Drive.Slot.FaultLit, t.Drive.Slot.Status = nil, nil, false, false, ""
		t.Drive.LastSeen = seenAt(&t.Drive, now.Truncate(time.Second))
		m.State.QueueEvents(drivebay.Event{At: now, Kind: drivebay.EventVanished, Drive: id,
			From: was.Status.String(), To: t.Drive.Status.String(),
			Cause: "absent from the machine: " + state.Describe(&was)})
		if t.Rec.Usage == drivebay.UsageRemoving {
			_ = m.State.ChangeUsage(t, drivebay.UsageTakenOut, "safe to pull: the kernel has removed the device: "+m.State.Snapshot().Where(&was)) // REMOVING allows it
		}
		m.Poll.Assess(t)
		m.State.KeepRecord(t)
		return true
	}
	if now.Sub(t.Drive.LastSeen) > m.State.Opt.ForgetAfter && now.Sub(t.Absent) >= missedFor && m.mayForget(t) {
		m.State.DeleteRecord(t, fmt.Sprintf("absent since %s", t.Drive.LastSeen.UTC().Format(time.RFC3339)))
	}
	return false
}

// mayForget reports whether the record of a missing drive may be removed without an
// operator: nothing is lost with it when the drive returns as a new one.
func (m *Tracker) mayForget(t *state.Tracked) bool {
	switch {
	case t.Rec.Usage == drivebay.UsageRemoved:
	case t.Rec.Usage != drivebay.UsageInUse, t.Rec.Claim != nil, t.Rec.Cordoned:
		return false
	}
	owners, known := m.namedDrives()
	return known && owners[t.Drive.ID] == ""
}

// keepSlots keeps PCI slots in the list of bays that had a drive before: the kernel does not show
// whether an empty slot is for a drive.
func keepSlots(old, bays []drivebay.Bay) []drivebay.Bay {
	for _, b := range old {
		if b.Enclosure == "" && !slices.ContainsFunc(bays, func(o drivebay.Bay) bool { return o.Enclosure == "" && o.Bay == b.Bay }) {
			bays = append(bays, drivebay.Bay{Slot: b.Slot})
		}
	}
	return bays
}

// keepEnclosureState copies the state of enclosure bays from the last listing that read it.
func keepEnclosureState(old []drivebay.Bay, l *inventory.Listing) {
	last := map[string]drivebay.Slot{}
	for _, b := range old {
		last[b.Enclosure+"/"+b.Bay] = b.Slot
	}
	keep := func(s *drivebay.Slot) {
		if s.Enclosure != "" {
			was := last[s.Enclosure+"/"+s.Bay]
			s.Lit, s.FaultLit, s.Status = was.Lit, was.FaultLit, was.Status
		}
	}
	for i := range l.Bays {
		keep(&l.Bays[i].Slot)
	}
	for i := range l.Drives {
		keep(&l.Drives[i].Slot)
	}
}

// fillBays records which drive is in which bay.
func (m *Tracker) fillBays() {
	byPlace := map[string]string{}
	for id, t := range m.State.Drives {
		if t.Present && t.Drive.Slot.Bay != "" {
			byPlace[inventory.Place(&t.Drive)] = id
		}
	}
	for i := range m.State.Listing.Bays {
		b := &m.State.Listing.Bays[i]
		b.Drive = byPlace[b.Enclosure+"/"+b.Bay]
	}
}
