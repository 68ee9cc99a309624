package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// Records that are older than a move of their volume group name drives that it has left. What
// LVM shows counts, if it shows all of the group.

// sight is a group as LVM shows it whole: its drives, with their physical volumes.
type sight struct {
	*lvm.Group
	pvs map[string]string // UUID by drive
}

// whole says that LVM shows all of a group.
func (s sight) whole() bool {
	for _, pv := range s.pvs {
		if pv == "" {
			return false
		}
	}
	return s.Group != nil && len(s.Missing()) == 0 && len(s.pvs) == len(s.PVs)
}

// since are the drives of a group that a location of one of its logical volumes does not name,
// if each of them got its physical volume by a move: that of a copy of a drive was made for
// another one. A location that lacks a drive was never complete.
func (s sight) since(was drivebay.Location) []string {
	if len(was.Drives) < width(was.Kind) || lvIn(s.Group, was) == nil {
		return nil
	}
	var onto []string
	for id, pv := range s.pvs {
		switch {
		case slices.Contains(was.Drives, id):
		case pv != pvOf(was.VG, id):
			return nil
		default:
			onto = append(onto, id)
		}
	}
	return onto
}

// holdsLeg says that a leg of a mirror is on one of some drives.
func (s sight) holdsLeg(lv string, drives []string) bool {
	return slices.ContainsFunc(s.Under(lv), func(pv string) bool {
		return slices.ContainsFunc(drives, func(id string) bool { return s.pvs[id] == pv })
	})
}

// older is the part of a group's records that are older than its move. A volume that LVM does
// not show was lost with its drive, and its record is right.
func (s sight) older(h *herd) *herd {
	part := &herd{Location: h.Location}
	if !s.whole() {
		return part
	}
	for _, r := range h.volumes {
		if len(s.since(r.Volume.Location)) > 0 {
			part.volumes = append(part.volumes, r)
		}
	}
	for _, r := range h.snaps {
		if len(s.since(r.Snapshot.Location)) > 0 {
			part.snaps = append(part.snaps, r)
		}
	}
	return part
}

// movedSince has the records of a group that are older than its move name the drives that it
// is on. Which leg of a mirror is the newest, its superblocks say anew if one was made on
// another drive.
func (e *Engine) movedSince(ctx context.Context, g *lvm.Group, l drivebay.Location, members map[string]string) error {
	if h := e.herds()[l.VG]; h == nil || len((sight{g, members}).older(h).ids()) == 0 || e.untrusted(l.Drives) {
		return nil
	}
	err := e.quiet(l.VG, func(h *herd) error {
		r, err := e.reportOf(ctx, l) // what was read before may be older than the records
		if err != nil {
			return err
		}
		now := sight{r.Group(l.VG), map[string]string{}}
		for _, id := range l.Drives {
			if now.Group != nil {
				now.pvs[id] = e.pvIn(r, now.Group, id)
			}
		}
		part := now.older(h)
		fresh := map[string]bool{} // mirrors with a leg on another drive
		for _, r := range part.volumes {
			was := r.Volume.Location
			fresh[r.Volume.ID] = now.holdsLeg(was.LV, now.since(was))
			e.noteNewer(&r.Volume, fmt.Sprintf("the record store has volume group %s on drive %s, and it is on %s", l.VG, strings.Join(was.Drives, ", "), strings.Join(l.Drives, ", ")))
		}
		part.Found = l.Found
		return e.onDrives(part, l.Drives, func(v *drivebay.Volume) {
			if fresh[v.ID] {
				v.Mirror = nil
			}
		})
	})
	if errors.Is(err, drivebay.ErrPending) { // the next look tries again
		return nil
	}
	return err
}
