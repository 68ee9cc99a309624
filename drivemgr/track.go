package drivemgr

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/lane"
)

// applyListing makes a listing the state of the machine. A missing drive counts as gone only when
// the listing is complete: a failed read is not a pulled drive. take ignores a listing that
// began before the last one it took.
func (m *trackingT) applyListing(l Listing) {
	if l.began < m.listing.began {
		m.drivesChanged = m.drivesChanged || !l.Dark // its reading of the enclosures has to be repeated
		return
	}
	now := m.machine.Now()
	l.Bays = keepSlots(m.listing.Bays, l.Bays)
	m.drivesChanged = l.Dark && (m.drivesChanged || !slices.EqualFunc(m.listing.Drives, l.Drives, func(a, b drivebay.Drive) bool { return a.ID == b.ID }))
	if l.Dark {
		keepAnswers(m.listing.Bays, &l)
	}
	m.correctLights(&l)
	share := m.keepIDs(&l)
	m.listing, m.listedAt = l, now
	seen := map[string]bool{}
	for i := range l.Drives {
		seen[l.Drives[i].ID] = true
	}
	m.dropAliases(l.Drives, seen)
	for i := range l.Drives {
		m.applyDrive(&l.Drives[i], seen, now)
	}
	for id, why := range share.inDoubt {
		m.setUnidentified(m.drives[id], why, now)
	}
	for id, is := range share.duplicates {
		if t := m.drives[id]; t.rec.Duplicate != is {
			t.rec.Duplicate = is
			m.keepRecord(t)
		}
	}
	if l.Complete {
		var gone []*tracked
		for id, t := range m.drives {
			if !seen[id] && share.inDoubt[id] == "" && m.setOffline(id, t, now) {
				gone = append(gone, t)
			}
		}
		m.reportPull(gone, now)
	}
	if !m.listed {
		m.resumeRemovals(now)
	}
	m.listed = true
	m.fillBays()
}

// applyDrive updates the record of one listed drive, or makes one.
func (m *trackingT) applyDrive(d *drivebay.Drive, seen map[string]bool, now time.Time) {
	t := m.drives[d.ID]
	if t == nil {
		t = m.claimAlias(d, seen)
	}
	if t == nil {
		t = &tracked{lane: lane.New(), fresh: true}
		t.rec.Usage, _ = drivebay.UsageUnknown.Next(drivebay.UsageSeen)
		t.drive.FirstSeen = now
		t.rec.Succeeds = m.predecessor(d, seen)
		m.drives[d.ID] = t
		m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventAppeared, Drive: d.ID, To: d.Name, Cause: "found " + describe(d)})
	} else {
		m.queueEvents(changes(&t.drive, d, now)...)
		m.reportReturn(t, d, now)
	}
	if !t.present || !t.isDevice(d) { // new, or back, maybe since the last listing: its known state is old
		t.begin(now)
	}
	before := t.drive
	t.drive = merge(before, *d)
	t.drive.LastSeen = now.Truncate(time.Minute)
	t.drive.Usage, t.drive.Leaving, t.drive.Cordoned, t.drive.Claim, t.drive.Succeeds = t.rec.Usage, t.rec.Leaving, t.rec.Cordoned, t.rec.Claim, t.rec.Succeeds
	_, used := strangerIn(t.drive.Uses)
	unused := fromUses(t.drive.Content) && !used
	if unused {
		t.drive.Content = drivebay.Content{Reason: drivebay.NotRead}
	}
	if before.Size != t.drive.Size || unused {
		t.fresh, t.nextLook = true, now
	}
	if !slices.Equal(before.Uses, t.drive.Uses) { // other filesystems: their error counters have to be read
		t.fsAsked = time.Time{}
	}
	m.refreshKernel(t, now)
	m.assess(t)
	if before.Status != t.drive.Status || before.Size != t.drive.Size || before.IdentityIssue != d.IdentityIssue || before.Slot != d.Slot {
		m.keepRecord(t)
	}
}

// begin starts a life of a drive: it is new, or back, or the daemon restarted. The kernel
// counts from zero again, or its count includes errors of our own commands, so earlier
// counters of the kernel are dropped from the history.
func (t *tracked) begin(now time.Time) {
	t.life++
	t.present, t.looking, t.fresh, t.nextLook = true, false, true, now
	t.came, t.nextProof, t.proofsFailed = now, now, 0
	t.failures, t.absent, t.unread, t.openError, t.ourErrors, t.ourTimeouts = 0, 0, 0, "", 0, 0
	if t.lane.Occupied(now) > 0 {
		t.lane = lane.New() // a command to the old device may never end; this is another device
	}
	for i, s := range t.rec.History {
		counters := maps.Clone(s.Counters)
		maps.DeleteFunc(counters, func(key string, _ uint64) bool { return strings.HasPrefix(key, "kernel.") })
		t.rec.History[i].Counters = counters
	}
}

// claimAlias finds the record that drive d has under an -at- id. The drive gets the id of its
// own names when its duplicates are gone and no drive had that id.
func (m *trackingT) claimAlias(d *drivebay.Drive, seen map[string]bool) *tracked {
	for id, t := range m.drives {
		old := &t.drive
		if t.baseOf() == id || seen[id] || !t.present || old.Serial != d.Serial || old.WWN != d.WWN || old.Size != d.Size || !samePlace(old, d) {
			continue
		}
		delete(m.drives, id)
		m.keeper.forget(id)
		m.drives[d.ID] = t
		return t
	}
	return nil
}

func samePlace(a, b *drivebay.Drive) bool {
	return len(a.Paths) > 0 && len(b.Paths) > 0 && a.Paths[0].SysPath != "" && a.Paths[0].SysPath == b.Paths[0].SysPath
}

// merge combines a new listing of a drive with its known state. The listing has what
// the drive is and where; what was read from the drive itself stays.
func merge(old, d drivebay.Drive) drivebay.Drive {
	d.Status = drivebay.StatusOnline
	d.Denied = old.Denied
	d.Evidence, d.Findings, d.Health = old.Evidence, old.Findings, old.Health
	d.Kernel = old.Kernel
	d.Temperature, d.PowerOnHours, d.Wear = old.Temperature, old.PowerOnHours, old.Wear
	d.FirstSeen = old.FirstSeen
	// The content read from the drive is more exact than that of sysfs, until sysfs reports
	// another kind.
	if d.Content.Kind == drivebay.ContentUnknown || d.Content.Kind == old.Content.Kind {
		d.Content = old.Content
	}
	fillIdentity(&d)
	return d
}

// changes returns the differences between two listings of one drive as events.
func changes(old, d *drivebay.Drive, now time.Time) []drivebay.Event {
	var out []drivebay.Event
	add := func(kind drivebay.EventKind, from, to, cause string) {
		out = append(out, drivebay.Event{At: now, Kind: kind, Drive: d.ID, From: from, To: to, Cause: cause})
	}
	if old.Status == drivebay.StatusOffline {
		add(drivebay.EventReturned, "OFFLINE", "ONLINE", "back: "+describe(d))
	}
	if old.Size != d.Size && old.Size > 0 && d.Size > 0 {
		add(drivebay.EventResized, fmt.Sprint(old.Size), fmt.Sprint(d.Size), fmt.Sprintf("it has %d bytes and had %d: %s", d.Size, old.Size, describe(d)))
	}
	if old.Name != d.Name {
		add(drivebay.EventRenamed, old.Name, d.Name, "the kernel gave it another name: "+describe(d))
	}
	if place(old) != place(d) && place(d) != "" {
		add(drivebay.EventMoved, place(old), place(d), "moved: "+describe(d))
	}
	if old.IdentityIssue != d.IdentityIssue {
		cause := d.IdentityIssue
		if cause == "" {
			cause = "the conflict is over"
		}
		add(drivebay.EventIdentity, old.ID, d.ID, cause)
	}
	return out
}

// setOffline sets a drive OFFLINE that a complete listing lacks, and reports whether it left
// just now.
func (m *trackingT) setOffline(id string, t *tracked, now time.Time) bool {
	t.present = false
	if t.drive.Status != drivebay.StatusOffline {
		was := t.drive
		t.kernlog.left(now)
		t.drive.Status = drivebay.StatusOffline
		if t.baseOf() == id { // its duplicates do not matter while it is away
			t.drive.IdentityIssue = ""
		}
		t.drive.Kernel, t.drive.Uses, t.drive.Slot.Lit, t.drive.Slot.FaultLit, t.drive.Slot.Status = nil, nil, false, false, ""
		t.drive.LastSeen = now.Truncate(time.Second)
		m.queueEvents(drivebay.Event{At: now, Kind: drivebay.EventVanished, Drive: id,
			From: was.Status.String(), To: t.drive.Status.String(),
			Cause: "it is gone from the kernel: " + describe(&was)})
		if t.rec.Usage == drivebay.UsageRemoving {
			_ = m.changeUsage(t, drivebay.UsageTakenOut, "safe to pull, the kernel has let go of it: "+m.Snapshot().Where(&was)) // REMOVING allows it
		}
		m.assess(t)
		m.keepRecord(t)
		return true
	}
	if now.Sub(t.drive.LastSeen) > m.opt.ForgetAfter && m.mayForget(t) {
		m.deleteRecord(t, fmt.Sprintf("it is missing since %s", t.drive.LastSeen.UTC().Format(time.RFC3339)))
	}
	return false
}

// mayForget reports whether the record of a missing drive may be removed without an
// operator: nothing is lost with it when the drive returns as a new one.
func (m *trackingT) mayForget(t *tracked) bool {
	switch {
	case t.rec.Usage == drivebay.UsageRemoved:
	case t.rec.Usage != drivebay.UsageInUse, t.rec.Claim != nil, t.rec.Cordoned:
		return false
	}
	needed := m.forgetBlock.Load()
	return needed == nil || (*needed)(t.drive.ID) == ""
}

// BlockForget sets why: the record of a missing drive stays while why returns a reason, for
// example a volume on it.
func (m *trackingT) BlockForget(why func(drive string) string) { m.forgetBlock.Store(&why) }

// keepSlots keeps PCI slots in the list of bays that once held a drive. The kernel does not
// show what an empty slot is for; a drive in it before does.
func keepSlots(old, bays []drivebay.Bay) []drivebay.Bay {
	for _, b := range old {
		if b.Enclosure == "" && !slices.ContainsFunc(bays, func(o drivebay.Bay) bool { return o.Enclosure == "" && o.Bay == b.Bay }) {
			bays = append(bays, drivebay.Bay{Slot: b.Slot})
		}
	}
	return bays
}

// keepAnswers copies the state of enclosure bays from the last listing that read it.
func keepAnswers(old []drivebay.Bay, l *Listing) {
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
func (m *trackingT) fillBays() {
	byPlace := map[string]string{}
	for id, t := range m.drives {
		if t.present && t.drive.Slot.Bay != "" {
			byPlace[place(&t.drive)] = id
		}
	}
	for i := range m.listing.Bays {
		b := &m.listing.Bays[i]
		b.Drive = byPlace[b.Enclosure+"/"+b.Bay]
	}
}

// fillIdentity completes what sysfs truncates with the drive's own identity data.
func fillIdentity(d *drivebay.Drive) {
	if d.Evidence == nil {
		return
	}
	said := d.Evidence.Identity
	said.WWN = usableWWN(said.WWN)
	if len(said.Model) > len(d.Model) { // sysfs keeps 16 characters of an ATA model
		d.Model = said.Model
	}
	for _, f := range []struct{ have, said *string }{{&d.Serial, &said.Serial}, {&d.Firmware, &said.Firmware}, {&d.Vendor, &said.Vendor}, {&d.WWN, &said.WWN}} {
		if *f.have == "" {
			*f.have = *f.said
		}
	}
	if d.RPM == 0 {
		d.RPM = said.RPM
	}
	if d.Type == drivebay.TypeUnknown {
		d.Type = d.Evidence.Type
	}
}

// place returns a name of the bay that is unique within the machine.
func place(d *drivebay.Drive) string {
	if d.Slot.Bay == "" {
		return ""
	}
	return d.Slot.Enclosure + "/" + d.Slot.Bay
}

// describe names a drive so that a person in the aisle finds it.
func describe(d *drivebay.Drive) string {
	text := d.Name
	for _, f := range []struct{ word, value string }{{"", d.Vendor}, {"", d.Model}, {"serial ", d.Serial}, {"bay ", d.Slot.Bay}} {
		if f.value != "" {
			text += ", " + f.word + f.value
		}
	}
	return text
}
