package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// Our volumes on drives that are not claimed here came with their drives from another machine,
// or lost their claim with the store. They are shown, and nothing is done to them until their
// drives are claimed or an operator adopts them.

// unclaimed returns those drives that are not claimed.
func unclaimed(s *drivebay.Snapshot, drives []string) []string {
	return slices.DeleteFunc(slices.Clone(drives), func(id string) bool {
		d, known := driveOf(s, id)
		return known && d.Claim != nil
	})
}

// foundIn lists the volumes of an index that no record names and that stand on a drive that
// is not claimed, by id.
func foundIn(s *drivebay.Snapshot, x index, named func(drivebay.FoundVolume, string) bool) []drivebay.FoundVolume {
	var out []drivebay.FoundVolume
	add := func(f drivebay.FoundVolume, instance string) {
		if f.ID != "" && len(unclaimed(s, f.Drives)) > 0 && !named(f, instance) {
			out = append(out, f)
		}
	}
	for id, parts := range x.parts {
		for _, p := range parts {
			add(drivebay.FoundVolume{ID: idOfPartition(p.title), Kind: drivebay.LocationPartition, Drives: []string{id}, Size: p.size}, strings.ToLower(p.guid))
		}
	}
	if x.lvm != nil {
		for i := range x.lvm.report.Groups {
			g := &x.lvm.report.Groups[i]
			if !slices.Contains(g.Tags, lvm.Tag) {
				continue
			}
			drives := slices.Sorted(maps.Keys(placementView{index: x}.members(g)))
			for j := range g.LVs {
				if t := tagsOf(&g.LVs[j]); t[keyWhat] == "volume" {
					add(drivebay.FoundVolume{ID: idOfLV(&g.LVs[j]), Name: t[keyName], Kind: groupKind(g), Drives: drives, Size: g.LVs[j].Size}, instanceOfLV(&g.LVs[j]))
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b drivebay.FoundVolume) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), slices.Compare(a.Drives, b.Drives))
	})
	return out
}

// keepFound remembers what foundIn returns, and sends an event for what is new.
func (e *Engine) keepFound(s *drivebay.Snapshot, x index) {
	found := foundIn(s, x, func(f drivebay.FoundVolume, instance string) bool {
		if e.recorded(f.ID) && slices.ContainsFunc(f.Drives, func(id string) bool {
			d, known := driveOf(s, id)
			return known && leftBehind(d, part{guid: instance})
		}) {
			return true // left behind by a move
		}
		return e.recordNames(drivebay.ForgottenVolume{ID: f.ID, Instance: instance})
	})
	e.mu.Lock()
	was := e.found
	e.found = found
	e.mu.Unlock()
	for _, f := range found {
		if !slices.ContainsFunc(was, func(o drivebay.FoundVolume) bool { return o.ID == f.ID && slices.Equal(o.Drives, f.Drives) }) {
			e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeFound, Volume: f.ID, Drive: f.Drives[0],
				Cause: "a volume was found on a drive that is not claimed; nothing is done to it: " + waysIn(s, f)})
		}
	}
}

func (e *Engine) foundNow() []drivebay.FoundVolume {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.found
}

func (e *Engine) isFound(id string) bool {
	return slices.ContainsFunc(e.foundNow(), func(f drivebay.FoundVolume) bool { return f.ID == id })
}

// waysIn returns the commands that adopt a found volume.
func waysIn(s *drivebay.Snapshot, f drivebay.FoundVolume) string {
	return fmt.Sprintf("`drivebay claim %s`, or `drivebay volume adopt %s` to use it without a claim", strings.Join(unclaimed(s, f.Drives), " "), f.ID)
}

// unadopted refuses a request for a volume that was found and is in no record.
func (e *Engine) unadopted(id string) error {
	e.mu.Lock()
	i := slices.IndexFunc(e.found, func(f drivebay.FoundVolume) bool { return f.ID == id })
	var f drivebay.FoundVolume
	if i >= 0 {
		f = e.found[i]
	}
	e.mu.Unlock()
	if i < 0 || e.recorded(id) {
		return nil
	}
	return fmt.Errorf("volume %s: %w: it was found on a drive that is not claimed: %s", id, drivebay.ErrRefused, waysIn(e.drives.Snapshot(), f))
}

// mayAdopt reports whether a volume on these drives may be adopted: all of them are claimed, or
// an operator has asked for it.
func (e *Engine) mayAdopt(s *drivebay.Snapshot, id string, drives ...string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(unclaimed(s, drives)) == 0 || e.adopting[id] > 0
}

// undelete forgets the deletion of an id, and reports whether a drive has a volume that it kept out.
func (e *Engine) undelete(id string) (any bool, err error) {
	for _, o := range e.instancesOf(id) {
		if was, is := e.forgottenAs(o.Key()); is && was.Replaced && !o.half {
			any, err = true, errors.Join(err, e.unmarkForgotten(o.Key()))
		}
	}
	if !any {
		return false, err
	}
	return true, errors.Join(err, e.unmarkForgotten(drivebay.ForgottenVolume{ID: id}.Key()))
}

// adoptionAttempts is how often AdoptVolume lists the drives: a listing that began before the
// operator asked may hold the volume.
const adoptionAttempts = 3

// AdoptVolume adopts a volume that was found on a drive that is not claimed, or that returned
// after its id was deleted. It can be staged then; to change it, its drives must be claimed.
func (e *Engine) AdoptVolume(ctx context.Context, id string) error {
	found := e.notInRecord(id)
	switch {
	case len(found) == 0 && e.recorded(id):
		return nil
	case !e.recorded(id) && !e.isFound(id):
		if deleted, err := e.undelete(id); err != nil || !deleted {
			return fmt.Errorf("adopt volume %s: %w", id, cmp.Or(err, fmt.Errorf("%w: it was not found on any drive", drivebay.ErrNotFound)))
		}
	}
	e.mu.Lock()
	if e.adopting == nil {
		e.adopting = map[string]int{}
	}
	e.adopting[id]++
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.adopting[id]--; e.adopting[id] == 0 {
			delete(e.adopting, id)
		}
	}()
	adopted := func() bool {
		now := e.recordedLocations(id)
		return slices.ContainsFunc(found, func(o onDrive) bool { return slices.ContainsFunc(now, o.is) })
	}
	for range adoptionAttempts {
		err := e.listVolumes(ctx, e.drives.Snapshot())
		switch {
		case adopted():
			e.publish()
			return nil
		case err != nil:
			return fmt.Errorf("adopt volume %s: %w", id, err)
		}
		end, err := e.beginAfter(ctx, id) // another listing may hold the volume
		if err != nil {
			return fmt.Errorf("adopt volume %s: %w", id, err)
		}
		end()
	}
	if e.recorded(id) {
		return fmt.Errorf("adopt volume %s: %w: the records name another volume with this id, which is newer or may still be on its drives; delete that one first (`drivebay volume forget %s` if its drives are lost)", id, drivebay.ErrRefused, id)
	}
	return fmt.Errorf("adopt volume %s: %w: it is no longer on any drive", id, drivebay.ErrNotFound)
}
