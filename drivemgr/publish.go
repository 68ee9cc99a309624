package drivemgr

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/drivemgr/internal/records"
)

// publish makes the state of the owner's goroutine the snapshot for all readers. Seq
// grows only when something other than the time has changed, StateSeq when that is no counter. While no drive has changed, it makes no
// list of them and compares no content: that is most ticks.
func (m *Manager) publish() {
	if !m.state.Listed {
		return
	}
	old := m.state.Snapshot()
	same, sameState := m.sameDrives(old.Drives)
	same = same && old.Seq > 0
	if !same && !m.sameIdentities(old.Drives) {
		m.tracking.FindCopies()
	}
	next := &drivebay.Snapshot{
		Seq: old.Seq, StateSeq: old.StateSeq, At: m.state.Machine.Now(), Machine: old.Machine,
		Complete: m.state.Listing.Complete && !m.listingHangs() && m.state.Keeper.Unread() == nil, // what has left since is still ONLINE; a drive that is away is in no record
		Drives:   old.Drives,
		Bays:     m.state.Listing.Bays,
		Problems: m.allProblems(), StoreFailing: m.storeFails,
	}
	if !same {
		next.Drives = m.listDrives()
	}
	stateChanged := !sameState || old.Seq == 0 || old.Complete != next.Complete || !slices.Equal(old.Problems, next.Problems) || !slices.Equal(old.Bays, next.Bays)
	changed := !same || stateChanged
	defer m.state.StoreEvents()
	if !changed {
		next.Bays = old.Bays
		m.state.Current.Store(next)
		return
	}
	next.Seq++
	if stateChanged {
		next.StateSeq++
	}
	next.Bays = slices.Clone(next.Bays)
	m.state.Current.Store(next)
	m.state.SeqMu.Lock()
	close(m.state.SeqGrew)
	m.state.SeqGrew = make(chan struct{})
	m.state.SeqMu.Unlock()
}

// sameDrives reports whether the drives are as in the list of a snapshot, and whether they are so but for their counters.
func (m *Manager) sameDrives(was []drivebay.Drive) (same, sameState bool) {
	if len(was) != len(m.state.Drives) {
		return false, false
	}
	same = true
	for i := range was {
		t := m.state.Drives[was[i].ID]
		if t == nil {
			return false, false
		}
		if sameBits(&was[i], &t.Drive) || reflect.DeepEqual(&was[i], &t.Drive) {
			continue
		}
		same = false
		if a, b := withoutCounters(was[i]), withoutCounters(t.Drive); !reflect.DeepEqual(&a, &b) {
			return false, false
		}
	}
	return same, true
}

// sameBits reports whether two values are the same byte for byte, and so equal. A drive that nothing was written to since the
// last list is: all that it points to is shared. To find that out by DeepEqual took a tenth of an idle daemon's time, and
// left a sixth of its garbage.
func sameBits[T any](a, b *T) bool {
	bits := func(v *T) string { return unsafe.String((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }
	return bits(a) == bits(b)
}

// withoutCounters returns a drive without what changes with its use and with time. What that means for the drive is in its findings.
func withoutCounters(d drivebay.Drive) drivebay.Drive {
	d.LastSeen, d.Temperature, d.PowerOnHours, d.Evidence = time.Time{}, nil, nil, nil
	if d.Kernel != nil {
		k := *d.Kernel
		k.At, k.IODone, k.Inflight, k.Completed, k.Changed, k.Waited = time.Time{}, nil, 0, 0, 0, 0
		k.Zero, k.Frozen, k.LaneStuck = min(k.Zero, 1), min(k.Frozen, 1), min(k.LaneStuck, 1) // whether, not for how long
		d.Kernel = &k
	}
	return d
}

// sameIdentities reports whether everything is equal that FindCopies compares and names: most changes are of
// counters and temperatures.
func (m *Manager) sameIdentities(was []drivebay.Drive) bool {
	return len(was) == len(m.state.Drives) && !slices.ContainsFunc(was, func(d drivebay.Drive) bool {
		t := m.state.Drives[d.ID]
		return t == nil || t.Drive.Status != d.Status || t.Drive.Copy != d.Copy || t.Drive.Name != d.Name || t.Drive.Slot.Bay != d.Slot.Bay ||
			!slices.Equal(t.Drive.Content.Signatures, d.Content.Signatures)
	})
}

// listDrives returns all drives in the order of their ids.
func (m *Manager) listDrives() []drivebay.Drive {
	out := make([]drivebay.Drive, 0, len(m.state.Drives))
	for _, t := range m.state.Drives {
		out = append(out, t.Drive)
	}
	slices.SortFunc(out, func(a, b drivebay.Drive) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// StaleAfter is the age of a snapshot at which the manager is stuck: it makes a new one at every tick, and no tick is longer
// than a minute.
const StaleAfter = 3 * time.Minute

// Unready returns what prevents readiness besides a missing first listing.
func (m *Manager) Unready() []string {
	var out []string
	if s := m.state.Snapshot(); s.Seq > 0 && m.state.Machine.Now().Sub(s.At) >= StaleAfter {
		out = append(out, "the daemon has not looked at the drives since "+s.At.UTC().Format(time.RFC3339)+" and hangs: restart it")
	}
	if err := m.state.Keeper.Unread(); err != nil {
		out = append(out, records.UnreadRecords(err))
	}
	if err := m.state.Keeper.Failing(); err != nil {
		out = append(out, "record store: write failed: "+err.Error())
	}
	return out
}

// followStore adds an event when the store becomes unwritable, and when it recovers.
func (m *Manager) followStore() {
	was, now := m.storeFails, ""
	if err := m.state.Keeper.Failing(); err != nil {
		now = err.Error()
	}
	m.storeFails = now
	switch {
	case was == "" && now != "":
		m.state.Log.Error("the record store cannot be written", "op", "store", "err", now)
		m.state.QueueEvents(drivebay.Event{At: m.state.Machine.Now(), Kind: drivebay.EventStoreFailed, Cause: now})
	case was != "" && now == "":
		m.state.KeepAll() // the file that can be written may be an older one, or a new one
		m.state.QueueEvents(drivebay.Event{At: m.state.Machine.Now(), Kind: drivebay.EventStoreRecovered, Cause: "the store can be written again; the cause was: " + was})
	}
}

func (m *Manager) allProblems() []string {
	all := slices.Concat(m.problems, m.state.Listing.Problems)
	if lost := m.poll.LogProblem(); lost != "" {
		all = append(all, lost)
	}
	if err := m.state.Keeper.Failing(); err != nil {
		all = append(all, "record store: write failed, changes are kept in memory only: "+err.Error())
	}
	if m.listingHangs() {
		all = append(all, "the listing of the drives has been running since "+m.listingSince.UTC().Format(time.RFC3339)+": an enclosure or a controller may hang")
	}
	return all
}

func (m *Manager) listingHangs() bool {
	return !m.listingSince.IsZero() && m.state.Machine.Now().Sub(m.listingSince) > slowListing
}

// slowListing is how long a listing may take before it is reported as a problem.
const slowListing = 10 * time.Second
