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
	Retry         = volume(planRetry)
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

// mayWrite returns why nothing can be written to the drives of a location. A mirror needs one of them.
func (f Facts) mayWrite(l drivebay.Location) error {
	var absent error
	online := 0
	for _, id := range l.Drives {
		switch d, ok := f.Drives.Get(id); {
		case !ok || d.Status != drivebay.StatusOnline:
			absent = fmt.Errorf("drive %s: %w: it is not ONLINE", id, drivebay.ErrUnavailable)
		case d.Claim == nil:
			return fmt.Errorf("drive %s (%s): %w: it is not claimed, and nothing is written to it: `drivebay claim %s`", d.ID, d.Name, drivebay.ErrRefused, d.ID)
		default:
			online++
		}
	}
	if l.Mirrored() && online > 0 {
		return nil
	}
	return absent
}

func planDelete(f Facts, v *drivebay.VolumeView, p *Plan) {
	_, p.refused = v.State().Next(drivebay.CSIRemove)
	if len(v.Publications) > 0 {
		p.refused = fmt.Errorf("%s: %w: it is mounted at %s", render.CalledVolume(&v.Volume), drivebay.ErrBusy, v.Publications[0].Path)
	}
	if p.refused == nil {
		p.refused = f.mayWrite(v.Location)
	}
	f.addWipe(v, p)
}

// addWipe adds the steps of the removal of a volume.
func (f Facts) addWipe(v *drivebay.VolumeView, p *Plan) {
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

func planRetry(f Facts, v *drivebay.VolumeView, p *Plan) {
	switch failed := v.State().Before; {
	case v.CSIStatus != drivebay.CSIFailed && v.Usage == drivebay.VolumeUsageFailed:
		p.add("read again what could not be read on drive %s, and continue the move", f.on(v.Location))
	case v.CSIStatus != drivebay.CSIFailed:
		p.add("bind the volume again at paths that lost it")
		if len(v.Publications) == 0 {
			p.refused = fmt.Errorf("%s: %w: no failure to retry, its status is %v", render.CalledVolume(&v.Volume), drivebay.ErrInvalid, v.CSIStatus)
		}
	case failed == drivebay.CSIRemoving:
		p.refused = f.mayWrite(v.Location)
		f.addWipe(v, p)
	case failed != drivebay.CSICreating && failed != drivebay.CSIResizing && failed != drivebay.CSIResized:
		p.refused = fmt.Errorf("%s: %w: the mount failed; the kubelet retries it while a pod needs the volume", render.CalledVolume(&v.Volume), drivebay.ErrInvalid)
	default:
		p.refused = f.mayWrite(v.Location)
		p.add("try the failed step again (%v) on drive %s", failed, f.on(v.Location))
	}
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

// These are the plans of commands about a snapshot.
var (
	DeleteSnapshot = snapshot("delete the snapshot", Facts.mayWrite)
	ForgetSnapshot = snapshot("delete the record of the snapshot, and wipe nothing,", Facts.gone)
)

// gone returns why a record on these drives cannot be deleted: one of them is ONLINE.
func (f Facts) gone(l drivebay.Location) error {
	for _, id := range l.Drives {
		if d, ok := f.Drives.Get(id); ok && d.Status == drivebay.StatusOnline {
			return fmt.Errorf("%w: drive %s (%s) is ONLINE; unless it does not have the snapshot any more, delete the snapshot instead", drivebay.ErrRefused, d.ID, d.Name)
		}
	}
	return nil
}

// snapshot returns the plan of a command about a snapshot; word says what the command does to it.
func snapshot(word string, refused func(Facts, drivebay.Location) error) OfVolume {
	return func(f Facts, id string) *Plan {
		p := new(Plan)
		if i := slices.IndexFunc(f.Volumes.Snapshots, func(s drivebay.VolumeSnapshot) bool { return s.ID == id }); i >= 0 {
			s := &f.Volumes.Snapshots[i]
			p.refused = refused(f, s.Location)
			p.add(word+" of volume %s on drive %s", s.Source, f.on(s.Location))
		}
		return p
	}
}
