package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/render"
)

// OfVolume makes the plan of a command about a volume, or about a snapshot.
type OfVolume func(f Facts, id string) *Plan

// volume returns the plan of a command that takes a volume.
func volume(decide func(Facts, *drivebay.VolumeView, *Plan)) OfVolume {
	return func(f Facts, id string) *Plan {
		p := new(Plan)
		v, ok := f.Volumes.Get(id)
		if !ok {
			p.refused = fmt.Errorf("volume %s: %w", id, drivebay.ErrNotFound)
			return p
		}
		decide(f, v, p)
		return p
	}
}

// These are the plans of commands about a volume.
var (
	Delete        = volume(planDelete)
	Forget        = volume(planForget)
	AcceptLoss    = volume(planAcceptLoss)
	ReleaseVolume = volume(planRelease)
)

// on describes the drives of a location.
func (f Facts) on(l drivebay.Location) string {
	var out []string
	for _, id := range l.Drives {
		text := id
		if d, ok := f.Drives.Get(id); ok {
			text += " (" + d.Name
			if d.Slot.Bay != "" {
				text += ", bay " + d.Slot.Bay
			}
			text += ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, " and ")
}

func planDelete(f Facts, v *drivebay.VolumeView, p *Plan) {
	_, p.refused = v.State().Next(drivebay.CSIRemove)
	class, err := drivebay.ParseClass(v.Parameters)
	switch {
	case err != nil:
		p.refused = err
	case class.Wipe == drivebay.WipeNone:
		p.add("remove the signatures of %s of data on drive %s; the data itself is not wiped (%s=none)", render.Binary(v.Size), f.on(v.Location), drivebay.ParameterWipe)
	default:
		p.add("wipe %s of data on drive %s (%s=%s)", render.Binary(v.Size), f.on(v.Location), drivebay.ParameterWipe, class.Wipe)
	}
	p.add("delete the volume (%v) and its record", v.Location.Kind)
}

func planForget(f Facts, v *drivebay.VolumeView, p *Plan) {
	for _, id := range v.Location.Drives {
		if d, ok := f.Drives.Get(id); ok && d.Status == drivebay.StatusOnline {
			p.refused = fmt.Errorf("%s: %w: drive %s (%s) is ONLINE; unless it does not have the volume any more, delete the volume instead", render.CalledVolume(&v.Volume), drivebay.ErrRefused, d.ID, d.Name)
		}
	}
	if len(v.Publications) > 0 {
		p.refused = fmt.Errorf("%s: %w: it is mounted at %s", render.CalledVolume(&v.Volume), drivebay.ErrBusy, v.Publications[0].Path)
	}
	p.add("delete the record of the volume; nothing is wiped on drive %s", f.on(v.Location))
	for _, s := range f.Volumes.Snapshots {
		if s.Source == v.ID {
			p.add("delete the record of snapshot %s (%s)", s.ID, s.Name)
		}
	}
}

func planRelease(f Facts, v *drivebay.VolumeView, p *Plan) {
	if _, err := v.UsageMoved(drivebay.VolumeUsageLetGo); err != nil {
		p.refused = fmt.Errorf("%w: none of its drives has to leave", err)
	}
	if len(v.Publications) > 0 {
		p.refused = fmt.Errorf("%s: %w: it is mounted at %s", render.CalledVolume(&v.Volume), drivebay.ErrBusy, v.Publications[0].Path)
	}
	p.add("let drive %s be removed with the data of the volume on it; nothing is wiped", f.on(v.Location))
}

func planAcceptLoss(f Facts, v *drivebay.VolumeView, p *Plan) {
	switch {
	case v.Location.Kind == drivebay.LocationMirror:
		p.add("continue with the leg that is left of drive %s; data written to the other leg since it was lost are given up", f.on(v.Location))
	case v.Usage != drivebay.VolumeUsageFailed:
		p.refused = fmt.Errorf("%s: %w: no data loss is awaiting approval", render.CalledVolume(&v.Volume), drivebay.ErrInvalid)
		fallthrough
	default:
		p.add("complete the move of the volume off drive %s, with zeros in place of the data that cannot be read", f.on(v.Location))
	}
}

// Expand returns the plan of the expansion of a volume to a size.
func Expand(size uint64) OfVolume {
	return volume(func(f Facts, v *drivebay.VolumeView, p *Plan) {
		if v.Size >= size {
			p.add("do nothing: the volume has %s", render.Binary(v.Size))
			return
		}
		_, p.refused = v.State().Next(drivebay.CSIResize)
		room, err := f.Room(v.ID, drivebay.RoomQuery{Size: size})
		if err == nil && room.Against != "" {
			err = errors.New(room.Against)
		}
		if p.refused == nil {
			p.refused = err
		}
		if room.Moves != "" {
			p.add("%s", f.makesRoom(v, room.Moves))
		}
		p.add("grow the volume from %s to %s on drive %s", render.Binary(v.Size), render.Binary(size), f.on(v.Location))
		switch {
		case !v.HasFilesystem():
		case len(v.Publications) > 0:
			p.add("grow its mounted filesystem")
		default:
			p.add("leave its filesystem as it is until it is mounted the next time")
		}
	})
}

// makesRoom describes the move that makes room behind a partition.
func (f Facts) makesRoom(v *drivebay.VolumeView, moves string) string {
	if other, ok := f.Volumes.Get(moves); ok && moves != v.ID {
		return fmt.Sprintf("copy %s, which is behind it, to another place first; it cannot be used meanwhile. The expansion has to be repeated then", render.CalledVolume(&other.Volume))
	}
	return "copy the volume to a place with room first; it cannot be used meanwhile. The expansion has to be repeated then"
}

// Snapshot returns the plan of a command about a snapshot; word says what it does to it.
func Snapshot(word string) OfVolume {
	return func(f Facts, id string) *Plan {
		p := new(Plan)
		if i := slices.IndexFunc(f.Volumes.Snapshots, func(s drivebay.VolumeSnapshot) bool { return s.ID == id }); i >= 0 {
			p.add(word+" of volume %s on drive %s", f.Volumes.Snapshots[i].Source, f.on(f.Volumes.Snapshots[i].Location))
		}
		return p
	}
}
