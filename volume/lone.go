package volume

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// A mirror whose other drive is lost for good is removed with the leg that is here. LVM (lvm2
// 2.03.16, seen) changes no group that lacks a physical volume, but removes its volumes, and
// then takes the physical volume out on which nothing lies any more.

// lone is a mirror as it is removed without its other drive: that was taken out for good, or
// forgotten, or an operator has accepted its loss. Gone is the drive, where it is known.
func (e *Engine) lone(v drivebay.Volume) (alone drivebay.Volume, gone string, is bool) {
	l, s := v.Location, e.drives.Snapshot()
	if l.Kind != drivebay.LocationMirror {
		return v, "", false
	}
	if len(l.Drives) == 1 {
		return v, "", v.Mirror != nil && v.Mirror.Accepted && v.Mirror.Current == l.Drives[0]
	}
	if len(l.Drives) != 2 {
		return v, "", false
	}
	for i, id := range l.Drives {
		other := l.Drives[1-i]
		if driveHere(s, other) && lostForGood(s, of(id)) {
			v.Location.Drives, v.Mirror = []string{other}, &drivebay.Mirror{Current: other, Accepted: true}
			return v, id, true
		}
	}
	return v, "", false
}

// lostLeg says that one drive of a mirror is lost for good: its leg is made anew elsewhere.
func lostLeg(s *drivebay.Snapshot, l drivebay.Location) bool {
	return l.Kind == drivebay.LocationMirror && slices.ContainsFunc(l.Drives, func(id string) bool { return lostForGood(s, of(id)) })
}

func of(drive string) drivebay.Location { return drivebay.Location{Drives: []string{drive}} }

// aloneOrWhole is a volume as it is to be removed. That its other leg does not count any more
// is written down first.
func (e *Engine) aloneOrWhole(v drivebay.Volume) (drivebay.Volume, error) {
	alone, gone, is := e.lone(v)
	switch {
	case !is && v.Location.Kind == drivebay.LocationMirror && len(v.Location.Drives) == 1:
		return v, fmt.Errorf("volume %s: %w: it is a mirror that was found with one of its two drives: put the other one in, or run `drivebay volume accept-loss %s` if that is lost for good", v.ID, drivebay.ErrUnavailable, v.ID)
	case !is || v.Mirror != nil && *v.Mirror == *alone.Mirror:
		return alone, nil
	}
	_, err := e.change(v.ID, func(r *drivebay.VolumeRecord) error {
		r.Volume.Mirror = alone.Mirror
		return nil
	})
	if err == nil {
		e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: gone, Volume: v.ID,
			Cause: fmt.Sprintf("volume %q is removed, and its leg there is not wiped: wipe or destroy the drive before you give it away", v.Name)})
	}
	return alone, err
}

// withoutLost takes the physical volume out of a group that is lost for good, when nothing
// lies on it any more.
func (e *Engine) withoutLost(l drivebay.Location) step {
	lost := func(ctx context.Context) ([]string, error) {
		r, err := e.maybeReport(ctx, l)
		if err != nil || r.Group(l.VG) == nil {
			return nil, err
		}
		g := r.Group(l.VG)
		missing := g.Missing()
		for _, pv := range missing {
			if g.Uses(pv) {
				return nil, nil
			}
		}
		return missing, nil
	}
	return step{
		name: "without the lost drive",
		done: func(ctx context.Context) (bool, error) {
			missing, err := lost(ctx)
			return len(missing) == 0, err
		},
		do: func(ctx context.Context) error {
			missing, err := lost(ctx)
			if err != nil {
				return err
			}
			return e.lvmRun(ctx, l, lvm.RemoveMissing(l.VG, missing...))
		},
	}
}
