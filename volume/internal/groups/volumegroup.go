package groups

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// WaitReason returns what a group that is to move waits for, by its last attempt.
func (e *Groups) WaitReason(vg string) string {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	if t := e.GroupMoves[vg]; t != nil {
		return t.Wait
	}
	return ""
}

// BlockedMove returns why the move of a group has failed again and again; "" if it has not.
func (e *Groups) BlockedMove(vg string) string {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.GroupMoves[vg].BlockedBy()
}

// SetWaitReason records what a group waits for.
func (e *Groups) SetWaitReason(vg, what string) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	if t := e.GroupMoves[vg]; t != nil {
		t.Wait = what
	}
}

// VolumeGroup is a volume group with all volumes and snapshots that the records have in
// it. They move together: each of their records has the drives of the group. One drive
// more than its kind has (two for linear and thin, three for a mirror) means that the
// group moves between two of them. So the records and the drives alone show how far a
// move is, whatever became of the process that started it.
type VolumeGroup struct {
	drivebay.Location // LV is empty; the drives are those of the record with the most
	Volumes           []*drivebay.VolumeRecord
	Snaps             []*drivebay.SnapshotRecord
}

// groupsOf returns the groups of some records, by name.
func groupsOf(records []*drivebay.VolumeRecord, snaps []*drivebay.SnapshotRecord) map[string]*VolumeGroup {
	out := map[string]*VolumeGroup{}
	of := func(l drivebay.Location) *VolumeGroup {
		h := out[l.VG]
		if h == nil {
			h = &VolumeGroup{Location: l}
			h.LV, h.Instance = "", ""
			out[l.VG] = h
		}
		if len(l.Drives) > len(h.Drives) {
			h.Drives, h.Found = l.Drives, l.Found
		}
		return h
	}
	for _, r := range records {
		if l := r.Volume.Location; l.OnLVM() {
			h := of(l)
			h.Volumes = append(h.Volumes, r)
		}
	}
	for _, r := range snaps {
		if l := r.Snapshot.Location; l.OnLVM() {
			h := of(l)
			h.Snaps = append(h.Snaps, r)
		}
	}
	return out
}

// GroupsByName returns the groups of all records, except records whose drives were all taken out.
func (e *Groups) GroupsByName() map[string]*VolumeGroup {
	s := e.Drives.Snapshot()
	return groupsOf(slices.DeleteFunc(slices.Clone(e.Ledger.All()), func(r *drivebay.VolumeRecord) bool { return AllTakenOut(s, r.Volume.Location) }),
		slices.DeleteFunc(e.Partitions.SnapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return AllTakenOut(s, r.Snapshot.Location) }))
}

// AllTakenOut reports whether all drives of a location were taken out for good. Other
// volumes of its group may be elsewhere. A drive that the manager does not know was not taken out: it shows that
// drive as OFFLINE once it has listed all drives.
func AllTakenOut(s *drivebay.Snapshot, l drivebay.Location) bool {
	return len(l.Drives) > 0 && !slices.ContainsFunc(l.Drives, func(id string) bool {
		d, known := steps.DriveOf(s, id)
		return !known || d.Usage != drivebay.UsageRemoved
	})
}

// RefuseMoving refuses what cannot be done to a moving group.
func RefuseMoving(l drivebay.Location) error {
	if ledger.IsMoving(l) {
		return fmt.Errorf("%w: volume group %s moves between drives %v: try again when it has moved", drivebay.ErrPending, l.VG, l.Drives)
	}
	return nil
}

// IDs returns the ids of the volumes in the group.
func (h *VolumeGroup) IDs() []string {
	var out []string
	for _, r := range h.Volumes {
		out = append(out, r.Volume.ID)
	}
	for _, r := range h.Snaps {
		out = append(out, r.Snapshot.ID)
	}
	return out
}

// Dependents returns the volumes that are on some logical volumes, or on thin pools among them.
func (h *VolumeGroup) Dependents(lvs []string) []*drivebay.VolumeRecord {
	var out []*drivebay.VolumeRecord
	for _, r := range h.Volumes {
		if l := r.Volume.Location; slices.Contains(lvs, l.LV) || l.Pool != "" && slices.Contains(lvs, l.Pool) {
			out = append(out, r)
		}
	}
	return out
}

// PVUUID returns the UUID of the physical volume that is made for a group on a drive to
// which it moves. It is recorded nowhere, and the same after every loss of power.
func PVUUID(vg, drive string) string { return lvm.PVUUID(vg + "\x00" + drive) }

// Direction is the next move of a group.
type Direction struct {
	From, To string // drives; an empty to: it is to be chosen
	Wait     string // why the move cannot be made now
	Over     bool   // from is gone for good, with all volumes on it; the others stay on to
}

// DriveState is the state of a drive from which a direction is chosen.
type DriveState struct {
	Usage      drivebay.Usage
	Here, Well bool // it answers; it is not BAD
	Holds      bool // the group has a physical volume on it
	Empty      bool // no volume has extents on that
	Gone       bool // it was taken out for good, or is forgotten
	Unread     bool // LVM has not read its physical volume: holds and empty are unknown
}

// newestOn reports whether the legs of all mirrors on a drive have all data. From other legs
// none is created again before an operator accepts the loss.
func (h *VolumeGroup) newestOn(drive string) bool {
	return !slices.ContainsFunc(h.Volumes, func(r *drivebay.VolumeRecord) bool {
		m := r.Volume.Mirror
		return m != nil && (m.Doubt != "" || m.Current != "" && m.Current != drive)
	})
}

// NextDirection returns the next move of the group, and false without one.
func (h *VolumeGroup) NextDirection(look func(drive string) DriveState) (Direction, bool) {
	if ledger.IsMoving(h.Location) {
		if i := slices.IndexFunc(h.Drives, func(id string) bool { return look(id).Unread }); i >= 0 {
			return Direction{From: h.Drives[0], To: h.Drives[1], Wait: fmt.Sprintf("LVM cannot read the physical volume of drive %s now", h.Drives[i])}, true
		}
		if h.Found {
			return directionFound(h.Location, look)
		}
		if h.Kind == drivebay.LocationMirror {
			return h.directionMirror(look)
		}
		return directionLinear(h.Drives[0], h.Drives[1], look)
	}
	var waits *Direction
	for i, id := range h.Drives {
		is := look(id)
		leaves, why := is.Usage == drivebay.UsageReleasing, ""
		switch {
		case h.Kind == drivebay.LocationMirror && len(h.Drives) == 2:
			why = h.legWaits(is, look(h.Drives[1-i]), h.Drives[1-i])
			leaves = leaves || is.Gone && why == ""
		case !is.Here:
			why = fmt.Sprintf("drive %s is not there: put it back", id)
		}
		switch {
		case leaves && why == "":
			return Direction{From: id}, true
		case leaves && waits == nil:
			waits = &Direction{From: id, Wait: why}
		}
	}
	if waits != nil {
		return *waits, true
	}
	return Direction{}, false
}

// legWaits returns why a leg of a mirror cannot be created again elsewhere now; "" if it can. It is
// copied from the other one, which has to be here. If the leg itself is not, the other one has to
// have all data.
func (h *VolumeGroup) legWaits(leg, other DriveState, otherDrive string) string {
	switch {
	case !other.Here:
		return fmt.Sprintf("drive %s, which has the other leg, is not there: put it back", otherDrive)
	case leg.Here && leg.Well && !other.Well:
		return illSource(otherDrive)
	case !leg.Here && !h.newestOn(otherDrive):
		return fmt.Sprintf("drive %s, which has the other leg, does not have the newest data: put the drive that has them back, or run `drivebay volume accept-loss`", otherDrive)
	}
	return ""
}

// illSource is why a leg on a drive that is well stays while the other one is on a BAD drive: that drive may not be readable
// everywhere, and the leg that is copied from it would be the only other one.
func illSource(drive string) string {
	return fmt.Sprintf("drive %s, which has the other leg, is BAD: its leg has to leave first, `drivebay release %s`", drive, drive)
}

// directionLinear returns which way a group on two drives moves. Home is the first of them,
// until it is empty: the group moves back there if that drive stays, or if the other one has
// turned BAD or has to leave as well, but never from a drive that is well to one that is BAD.
func directionLinear(home, other string, look func(string) DriveState) (Direction, bool) {
	a, b := look(home), look(other)
	back := Direction{From: other, To: home}
	on := Direction{From: home, To: other}
	switch {
	case !b.Here && a.Here && b.Usage == drivebay.UsageRemoved:
		return Direction{From: other, To: home, Over: true}, true
	case !b.Here && a.Here && !b.Holds: // no part of the group is there
		return back, true
	case !b.Here:
		return Direction{From: home, To: other, Wait: fmt.Sprintf("drive %s, to which it was moving, is not there: put it back", other)}, true
	case !a.Here && a.Usage == drivebay.UsageRemoved:
		return Direction{From: home, To: other, Over: true}, true
	case !a.Here:
		return Direction{From: home, To: other, Wait: fmt.Sprintf("drive %s, from which it was moving, is not there: put it back", home)}, true
	case !a.Holds && b.Holds:
		return on, true
	case a.Well != b.Well && a.Well:
		return back, true
	case a.Well != b.Well:
		return on, true
	case a.Usage == drivebay.UsageInUse, b.Usage != drivebay.UsageInUse && !a.Empty: // the other one has to leave, too
		return back, true
	}
	return on, true
}

// directionFound returns which way a group moves that was found again on one drive more than
// its kind has. The earlier decision is lost with the records, so the drives alone decide:
// the group leaves the drive that has to leave, or has no part of the group, or is BAD
// while the others are not, or has no extent in use. If they do not decide, an operator
// does.
func directionFound(l drivebay.Location, look func(string) DriveState) (Direction, bool) {
	from := ""
	for _, leaves := range []func(DriveState) bool{
		func(d DriveState) bool { return d.Usage != drivebay.UsageInUse },
		func(d DriveState) bool { return d.Here && !d.Holds },
		func(d DriveState) bool { return d.Here && !d.Well },
		func(d DriveState) bool { return d.Here && d.Empty },
	} {
		some := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return !leaves(look(id)) })
		if len(some) == 1 && from == "" {
			from = some[0]
		}
	}
	others := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return id == from })
	head := Direction{From: from, To: others[0]}
	away := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return look(id).Here })
	switch {
	case from == "":
		head.From, head.To = l.Drives[0], l.Drives[1]
		head.Wait = fmt.Sprintf("it is on drives %s, a move was cut short, and it is not known which of them was to be left: `drivebay release DRIVE` says so", strings.Join(l.Drives, ", "))
	case len(l.Drives) == 2 && len(away) > 0:
		return directionLinear(from, head.To, look)
	case len(away) > 0:
		head.Wait = fmt.Sprintf("drive %s is not there: put it back", away[0])
	}
	return head, true
}

// directionMirror returns which way a mirror with a third drive moves: the third drive
// replaces the first one that leaves. If none leaves any more, the third leaves again, if
// its data can go back.
func (h *VolumeGroup) directionMirror(look func(string) DriveState) (Direction, bool) {
	drives, third := h.Drives, h.Drives[2]
	c := look(third)
	var waits *Direction
	for i, id := range drives[:2] {
		is, other := look(id), drives[1-i]
		if is.Usage == drivebay.UsageInUse {
			continue
		}
		why := h.legWaits(is, look(other), other)
		if c.Here && c.Holds && !c.Empty && look(other).Here { // a leg is there already, and its own legs decide
			why = ""
		}
		switch {
		case is.Here && is.Well && !is.Empty && look(other).Here && !look(other).Well: // its leg is still there
			why = illSource(other)
		case c.Here && is.Here && is.Well && !is.Empty && c.Usage != drivebay.UsageInUse: // another one is chosen
			return Direction{From: third, To: id}, true
		}
		switch {
		case !c.Here && c.Holds:
			return Direction{From: id, To: third, Wait: fmt.Sprintf("drive %s, to which a leg was moving, is not there: put it back", third)}, true
		case (!c.Here || !c.Well) && is.Here && is.Well:
			return Direction{From: third, To: id}, true
		case why == "":
			return Direction{From: id, To: third}, true
		case waits == nil:
			waits = &Direction{From: id, To: third, Wait: why}
		}
	}
	if waits != nil {
		return *waits, true
	}
	for _, id := range drives[:2] {
		if !look(id).Holds {
			return Direction{From: id, To: third}, true
		}
	}
	return Direction{From: third, To: drives[0]}, true
}

// MovingGroup returns why the claim of a drive cannot be withdrawn now; "" if it can. The kernel
// continues a pvmove without the engine, and stopping it needs another write.
func (e *Groups) MovingGroup(drive string) string {
	if e.Ctx.Err() != nil { // the next engine decides by its own records
		return ""
	}
	for _, h := range e.GroupsByName() {
		if ledger.IsMoving(h.Location) && slices.Contains(h.Drives, drive) {
			return fmt.Sprintf("volume group %s is moving between drives %s: retry when it has moved, or take the move back with `drivebay cancel`", h.VG, strings.Join(h.Drives, ", "))
		}
	}
	return ""
}
