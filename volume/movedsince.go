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

// movedSince corrects the records of a group that are older than its move, each by itself: a
// volume that LVM does not show was lost with its drive, and stays there.
func (e *Engine) movedSince(ctx context.Context, g *lvm.Group, l drivebay.Location, members map[string]string) error {
	older := func(h *herd, s sight) bool {
		return s.whole() && (slices.ContainsFunc(h.volumes, func(r *drivebay.VolumeRecord) bool { return len(s.since(r.Volume.Location)) > 0 }) ||
			slices.ContainsFunc(h.snaps, func(r *drivebay.SnapshotRecord) bool { return len(s.since(r.Snapshot.Location)) > 0 }))
	}
	if h := e.herds()[l.VG]; h == nil || !older(h, sight{g, members}) || e.untrusted(l.Drives) {
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
		if !older(h, now) {
			return nil
		}
		return e.correct(h, now, l)
	})
	if errors.Is(err, drivebay.ErrPending) { // the next look tries again
		return nil
	}
	return err
}

// correct has the records of a group name the drives that it is on. Which leg of a mirror is
// the newest, its superblocks say anew if one was made on another drive.
func (e *Engine) correct(h *herd, now sight, l drivebay.Location) error {
	for _, r := range h.volumes {
		onto := now.since(r.Volume.Location)
		if len(onto) == 0 {
			continue
		}
		e.noteNewer(&r.Volume, fmt.Sprintf("the record store has volume group %s on drive %s, and it is on %s", l.VG, strings.Join(r.Volume.Location.Drives, ", "), strings.Join(l.Drives, ", ")))
		_, err := e.change(r.Volume.ID, func(r *drivebay.VolumeRecord) error {
			r.Volume.Location.Drives, r.Volume.Location.Found = l.Drives, l.Found
			if now.holdsLeg(r.Volume.Location.LV, onto) {
				r.Volume.Mirror = nil
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, r := range h.snaps {
		if len(now.since(r.Snapshot.Location)) == 0 {
			continue
		}
		next := *r
		next.Snapshot.Location.Drives, next.Snapshot.Location.Found = l.Drives, l.Found
		if err := e.putSnapshot(next); err != nil {
			return err
		}
	}
	return nil
}
