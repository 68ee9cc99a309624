package evacuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// Records that are older than a move of their volume group name drives that it has left. LVM's report
// counts, if it shows all of the group.

// shownGroup is a group as LVM reports it, with the physical volumes of its drives.
type shownGroup struct {
	*lvm.Group
	pvs map[string]string // drive id -> UUID of its physical volume; "": not reported
}

// whole reports whether LVM shows all of a group: each of its physical volumes is on a drive that is
// here, even one that LVM counted as missing while it was away.
func (s shownGroup) whole() bool {
	for _, pv := range s.pvs {
		if pv == "" {
			return false
		}
	}
	return s.Group != nil && len(s.pvs) == len(s.PVs)
}

// drivesSince returns the drives of a group that a location does not name, if each of them got its
// physical volume by a move: a copy of a drive has the physical volume of another drive. A volume that was
// adopted during a move is also on the drives that were away then. Another location with too few drives was never
// complete, and has none.
func (s shownGroup) drivesSince(was drivebay.Location) []string {
	if len(was.Drives) < ledger.DrivesPerGroup(was.Kind) && !was.Found || partitions.LVIn(s.Group, was) == nil && !s.isOn(was.Drives) {
		return nil
	}
	var onto []string
	for id, pv := range s.pvs {
		switch {
		case slices.Contains(was.Drives, id):
		case !was.Found && pv != groups.PVUUID(was.VG, id):
			return nil
		default:
			onto = append(onto, id)
		}
	}
	return onto
}

// isOn reports whether the group has a physical volume on one of some drives.
func (s shownGroup) isOn(drives []string) bool {
	return slices.ContainsFunc(drives, func(id string) bool { return s.pvs[id] != "" })
}

// holdsLeg reports whether a leg of a mirror is on one of some drives.
func (s shownGroup) holdsLeg(lv string, drives []string) bool {
	return slices.ContainsFunc(s.PhysicalVolumesOf(lv), func(pv string) bool {
		return slices.ContainsFunc(drives, func(id string) bool { return s.pvs[id] == pv })
	})
}

// older returns the records of a group that are older than its move. A volume that LVM does not show,
// and whose record names no drive of the group, was lost with its drive: its record is right. Any
// other one was deleted since: its record would name drives that the group has left to all others.
func (s shownGroup) older(h *groups.VolumeGroup) *groups.VolumeGroup {
	part := &groups.VolumeGroup{Location: h.Location}
	if !s.whole() {
		return part
	}
	for _, r := range h.Volumes {
		if len(s.drivesSince(r.Volume.Location)) > 0 {
			part.Volumes = append(part.Volumes, r)
		}
	}
	for _, r := range h.Snaps {
		if len(s.drivesSince(r.Snapshot.Location)) > 0 {
			part.Snaps = append(part.Snaps, r)
		}
	}
	return part
}

// MovedSince updates the records of a group that are older than its move to the drives of the group.
// It drops the state of a mirror with a leg on another drive: the superblocks decide again.
func (e *Evacuator) MovedSince(ctx context.Context, g *lvm.Group, l drivebay.Location, members map[string]string) error {
	if h := e.Groups.GroupsByName()[l.VG]; h == nil || len((shownGroup{g, members}).older(h).IDs()) == 0 || e.Inventory.Untrusted(l.Drives) {
		return nil
	}
	err := e.withIdleGroup(l.VG, func(h *groups.VolumeGroup) error {
		r, err := e.Groups.ReportOf(ctx, l) // the report in g may be older than the records
		if err != nil {
			return err
		}
		now := shownGroup{r.Group(l.VG), map[string]string{}}
		for _, id := range l.Drives {
			if now.Group != nil {
				now.pvs[id] = e.Groups.PVIn(r, now.Group, id)
			}
		}
		part := now.older(h)
		fresh := map[string]bool{} // mirrors with a leg on another drive
		for _, r := range part.Volumes {
			was := r.Volume.Location
			fresh[r.Volume.ID] = now.holdsLeg(was.LV, now.drivesSince(was))
			e.Instances.NoteNewer(&r.Volume, fmt.Sprintf("the record store has volume group %s on drive %s, and it is on %s", l.VG, strings.Join(was.Drives, ", "), strings.Join(l.Drives, ", ")))
		}
		part.Found = l.Found
		return e.onDrives(part, l.Drives, func(v *drivebay.Volume) {
			if fresh[v.ID] {
				v.Mirror = nil
			}
		})
	})
	if errors.Is(err, drivebay.ErrPending) { // the next listing tries again
		return nil
	}
	return err
}
