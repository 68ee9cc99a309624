package volume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// volumeGroup is a volume group with all volumes and snapshots that the records have in
// it. They move together: each of their records has the drives of the group. One drive
// more than its kind has (two for linear and thin, three for a mirror) means that the
// group moves between two of them. So the records and the drives alone show how far a
// move is, whatever became of the process that started it.
type volumeGroup struct {
	drivebay.Location // LV is empty; the drives are those of the record with the most
	volumes           []*drivebay.VolumeRecord
	snaps             []*drivebay.SnapshotRecord
}

// groupsOf returns the groups of some records, by name.
func groupsOf(records []*drivebay.VolumeRecord, snaps []*drivebay.SnapshotRecord) map[string]*volumeGroup {
	out := map[string]*volumeGroup{}
	of := func(l drivebay.Location) *volumeGroup {
		h := out[l.VG]
		if h == nil {
			h = &volumeGroup{Location: l}
			h.LV, h.Instance = "", ""
			out[l.VG] = h
		}
		if len(l.Drives) > len(h.Drives) {
			h.Drives, h.Found = l.Drives, l.Found
		}
		return h
	}
	for _, r := range records {
		if l := r.Volume.Location; l.VG != "" {
			h := of(l)
			h.volumes = append(h.volumes, r)
		}
	}
	for _, r := range snaps {
		if l := r.Snapshot.Location; l.VG != "" {
			h := of(l)
			h.snaps = append(h.snaps, r)
		}
	}
	return out
}

// groupsByName returns the groups of all records, except records whose drives were all taken out.
func (e *Engine) groupsByName() map[string]*volumeGroup {
	s := e.drives.Snapshot()
	return groupsOf(slices.DeleteFunc(slices.Clone(e.all()), func(r *drivebay.VolumeRecord) bool { return allTakenOut(s, r.Volume.Location) }),
		slices.DeleteFunc(e.snapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return allTakenOut(s, r.Snapshot.Location) }))
}

// allTakenOut reports whether all drives of a location were taken out for good. Other
// volumes of its group may be elsewhere.
func allTakenOut(s *drivebay.Snapshot, l drivebay.Location) bool {
	return len(l.Drives) > 0 && !slices.ContainsFunc(l.Drives, func(id string) bool {
		d, known := driveOf(s, id)
		return known && d.Usage != drivebay.UsageRemoved || !known && !s.Complete
	})
}

// drivesPerGroup returns how many drives a group of a kind has when it does not move.
func drivesPerGroup(k drivebay.LocationKind) int {
	if k == drivebay.LocationMirror {
		return 2
	}
	return 1
}

// isMoving reports whether the group of a location is moving.
func isMoving(l drivebay.Location) bool { return l.VG != "" && len(l.Drives) > drivesPerGroup(l.Kind) }

// refuseMoving refuses what cannot be done to a moving group.
func refuseMoving(l drivebay.Location) error {
	if isMoving(l) {
		return fmt.Errorf("%w: volume group %s moves between drives %v: try again when it has moved", drivebay.ErrPending, l.VG, l.Drives)
	}
	return nil
}

func (h *volumeGroup) ids() []string {
	var out []string
	for _, r := range h.volumes {
		out = append(out, r.Volume.ID)
	}
	for _, r := range h.snaps {
		out = append(out, r.Snapshot.ID)
	}
	return out
}

// dependents returns the volumes that are on some logical volumes, or on thin pools among them.
func (h *volumeGroup) dependents(lvs []string) []*drivebay.VolumeRecord {
	var out []*drivebay.VolumeRecord
	for _, r := range h.volumes {
		if l := r.Volume.Location; slices.Contains(lvs, l.LV) || l.Pool != "" && slices.Contains(lvs, l.Pool) {
			out = append(out, r)
		}
	}
	return out
}

// pvUUID returns the UUID of the physical volume that is made for a group on a drive to
// which it moves. It is recorded nowhere, and the same after every loss of power.
func pvUUID(vg, drive string) string { return lvm.PVUUID(vg + "\x00" + drive) }

// direction is the next move of a group.
type direction struct {
	from, to string // drives; an empty to: it is to be chosen
	wait     string // why the move cannot be made now
	over     bool   // from is gone for good, with all volumes on it; the others stay on to
}

// driveState is the state of a drive from which a direction is chosen.
type driveState struct {
	usage      drivebay.Usage
	here, well bool // it answers; it is not BAD
	holds      bool // the group has a physical volume on it
	empty      bool // no volume has extents on that
	gone       bool // it was taken out for good, or is forgotten
	unread     bool // LVM has not read its physical volume: holds and empty are unknown
}

// newestOn reports whether the legs of all mirrors on a drive have all data. From other legs
// none is made anew before an operator accepts the loss.
func (h *volumeGroup) newestOn(drive string) bool {
	return !slices.ContainsFunc(h.volumes, func(r *drivebay.VolumeRecord) bool {
		m := r.Volume.Mirror
		return m != nil && (m.Doubt != "" || m.Current != "" && m.Current != drive)
	})
}

// nextDirection returns the next move of the group, and false without one.
func (h *volumeGroup) nextDirection(look func(drive string) driveState) (direction, bool) {
	if isMoving(h.Location) {
		if i := slices.IndexFunc(h.Drives, func(id string) bool { return look(id).unread }); i >= 0 {
			return direction{from: h.Drives[0], to: h.Drives[1], wait: fmt.Sprintf("LVM cannot read the physical volume of drive %s now", h.Drives[i])}, true
		}
		if h.Found {
			return directionFound(h.Location, look)
		}
		if h.Kind == drivebay.LocationMirror {
			return directionMirror(h.Drives, look)
		}
		return directionLinear(h.Drives[0], h.Drives[1], look)
	}
	for i, id := range h.Drives {
		is := look(id)
		lost := h.Kind == drivebay.LocationMirror && len(h.Drives) == 2 && is.gone && look(h.Drives[1-i]).here && h.newestOn(h.Drives[1-i])
		if is.usage == drivebay.UsageReleasing || lost {
			return direction{from: id}, true
		}
	}
	return direction{}, false
}

// directionLinear returns which way a group on two drives moves. Home is the first of them,
// until it is empty: the group moves back there if that drive stays, or if the other one has
// turned BAD, but never from a drive that is well to one that is BAD.
func directionLinear(home, other string, look func(string) driveState) (direction, bool) {
	a, b := look(home), look(other)
	back := direction{from: other, to: home}
	on := direction{from: home, to: other}
	switch {
	case !b.here && a.here && b.usage == drivebay.UsageRemoved:
		return direction{from: other, to: home, over: true}, true
	case !b.here && a.here && !b.holds: // no part of the group is there
		return back, true
	case !b.here:
		return direction{from: home, to: other, wait: fmt.Sprintf("drive %s, to which it was moving, is not there: put it back", other)}, true
	case !a.here && a.usage == drivebay.UsageRemoved:
		return direction{from: home, to: other, over: true}, true
	case !a.here:
		return direction{from: home, to: other, wait: fmt.Sprintf("drive %s, from which it was moving, is not there: put it back", home)}, true
	case !a.holds && b.holds:
		return on, true
	case a.well != b.well && a.well:
		return back, true
	case a.well != b.well:
		return on, true
	case a.usage == drivebay.UsageInUse:
		return back, true
	}
	return on, true
}

// directionFound returns which way a group moves that was found again on one drive more than
// its kind has. The earlier decision is lost with the records, so the drives alone decide:
// the group leaves the drive that has to leave, or has no part of the group, or is BAD
// while the others are not, or has no extent in use. If they do not decide, an operator
// does.
func directionFound(l drivebay.Location, look func(string) driveState) (direction, bool) {
	from := ""
	for _, leaves := range []func(driveState) bool{
		func(d driveState) bool { return d.usage != drivebay.UsageInUse },
		func(d driveState) bool { return d.here && !d.holds },
		func(d driveState) bool { return d.here && !d.well },
		func(d driveState) bool { return d.here && d.empty },
	} {
		some := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return !leaves(look(id)) })
		if len(some) == 1 && from == "" {
			from = some[0]
		}
	}
	others := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return id == from })
	head := direction{from: from, to: others[0]}
	away := slices.DeleteFunc(slices.Clone(l.Drives), func(id string) bool { return look(id).here })
	switch {
	case from == "":
		head.from, head.to = l.Drives[0], l.Drives[1]
		head.wait = fmt.Sprintf("it is on drives %s, a move was cut short, and it is not known which of them was to be left: `drivebay release DRIVE` says so", strings.Join(l.Drives, ", "))
	case len(l.Drives) == 2 && len(away) > 0:
		return directionLinear(from, head.to, look)
	case len(away) > 0:
		head.wait = fmt.Sprintf("drive %s is not there: put it back", away[0])
	}
	return head, true
}

// directionMirror returns which way a mirror with a third drive moves: the third drive
// replaces the first one that leaves. If none leaves any more, the third leaves again, if
// its data can go back.
func directionMirror(drives []string, look func(string) driveState) (direction, bool) {
	third := drives[2]
	c := look(third)
	for i, id := range drives[:2] {
		other := look(drives[1-i])
		if look(id).usage == drivebay.UsageInUse {
			continue
		}
		switch {
		case !c.here && c.holds:
			return direction{from: id, to: third, wait: fmt.Sprintf("drive %s, to which a leg was moving, is not there: put it back", third)}, true
		case (!c.here || !c.well) && look(id).here && look(id).well:
			return direction{from: third, to: id}, true
		case !other.here:
			return direction{from: id, to: third, wait: fmt.Sprintf("drive %s, which has the other leg, is not there: put it back", drives[1-i])}, true
		}
		return direction{from: id, to: third}, true
	}
	for _, id := range drives[:2] {
		if !look(id).holds {
			return direction{from: id, to: third}, true
		}
	}
	return direction{from: third, to: drives[0]}, true
}
