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

// Volumes of ours on drives that are not claimed here came with their drives from another
// machine, or lost their claim with the store. They are shown, and nothing is done to them
// until their drives are claimed or an operator adopts them.

// unclaimed says which of some drives are not claimed.
func unclaimed(s *drivebay.Snapshot, drives []string) []string {
	return slices.DeleteFunc(slices.Clone(drives), func(id string) bool {
		d, known := driveOf(s, id)
		return known && d.Claim != nil
	})
}

// foundIn lists the volumes of an index that are in no record and stand on a drive that
// is not claimed, by id.
func foundIn(s *drivebay.Snapshot, x index, recorded func(string) bool) []drivebay.FoundVolume {
	var out []drivebay.FoundVolume
	add := func(f drivebay.FoundVolume) {
		if f.ID != "" && len(unclaimed(s, f.Drives)) > 0 && !recorded(f.ID) {
			out = append(out, f)
		}
	}
	for id, parts := range x.parts {
		for _, p := range parts {
			add(drivebay.FoundVolume{ID: idOfPartition(p.title), Kind: drivebay.LocationPartition, Drives: []string{id}, Size: p.size})
		}
	}
	if x.lvm != nil {
		for i := range x.lvm.report.Groups {
			g := &x.lvm.report.Groups[i]
			if !slices.Contains(g.Tags, lvm.Tag) {
				continue
			}
			drives := slices.Sorted(maps.Keys(seen{index: x}.members(g)))
			for j := range g.LVs {
				if t := tagsOf(&g.LVs[j]); t[keyWhat] == "volume" {
					add(drivebay.FoundVolume{ID: idOfLV(&g.LVs[j]), Name: t[keyName], Kind: groupKind(g), Drives: drives, Size: g.LVs[j].Size})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b drivebay.FoundVolume) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), slices.Compare(a.Drives, b.Drives))
	})
	return out
}

// keepFound remembers what foundIn says, and notes an event for what is new.
func (e *Engine) keepFound(s *drivebay.Snapshot, x index) {
	found := foundIn(s, x, e.recorded)
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

// waysIn are the commands that take a found volume in.
func waysIn(s *drivebay.Snapshot, f drivebay.FoundVolume) string {
	return fmt.Sprintf("`drivebay claim %s`, or `drivebay volume adopt %s` to use it without a claim", strings.Join(unclaimed(s, f.Drives), " "), f.ID)
}

// unadopted refuses what is asked of a volume that was found and is in no record.
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

// mayAdopt says whether a volume on some drives is taken in: all of them are claimed, or
// an operator has asked for it.
func (e *Engine) mayAdopt(s *drivebay.Snapshot, id string, drives ...string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(unclaimed(s, drives)) == 0 || e.adopting[id]
}

// AdoptVolume takes in a volume that was found on a drive that is not claimed. It can be
// staged then; to change it, its drives must be claimed.
func (e *Engine) AdoptVolume(ctx context.Context, id string) error {
	if e.recorded(id) {
		return nil
	}
	if err := e.unadopted(id); err == nil {
		return fmt.Errorf("adopt volume %s: %w: it was not found on any drive", id, drivebay.ErrNotFound)
	}
	e.mu.Lock()
	if e.adopting == nil {
		e.adopting = map[string]bool{}
	}
	e.adopting[id] = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.adopting, id)
	}()
	err := e.look(ctx, e.drives.Snapshot())
	if e.recorded(id) {
		return nil
	}
	return fmt.Errorf("adopt volume %s: %w", id, cmp.Or(err, errors.New("it does not show any more")))
}
