package volume

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/copyaway"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Volumes follow their drives: volumes on a releasing drive have to move off it, and the record of the
// drive says what it waits for. Once nothing is left on it, it is reported as emptied.

// follow applies the usage of drives to volumes, continues moves and releases drives.
func (e *Engine) follow() {
	s := e.env.Drives.Snapshot()
	due := slices.ContainsFunc(s.Drives, func(d drivebay.Drive) bool { return d.Usage == drivebay.UsageReleasing }) ||
		slices.ContainsFunc(e.ledger.All(), func(r *drivebay.VolumeRecord) bool {
			return r.Volume.Usage != drivebay.VolumeInUse || partitions.MoveOf(r) != nil || len(r.Left) > 0 || ledger.IsMoving(r.Volume.Location) || mirror.LostLeg(s, r.Volume.Location)
		}) ||
		slices.ContainsFunc(e.partitions.SnapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return ledger.IsMoving(r.Snapshot.Location) })
	if !due || !e.following.CompareAndSwap(false, true) {
		return
	}
	e.ledger.InBackground("follow", func() {
		defer e.following.Store(false)
		for _, r := range e.ledger.All() {
			if err := e.followDriveUsage(e.env.Ctx, s, &r.Volume); err != nil && !errors.Is(err, drivebay.ErrPending) {
				e.env.Log.Warn("volume does not follow its drive", "op", "follow", "volume", r.Volume.ID, "err", err)
			}
		}
		trips := e.evacuate.MoveGroups(s)
		for _, r := range e.ledger.All() {
			e.copyaway.FollowMove(r)
		}
		for i := range s.Drives {
			if d := &s.Drives[i]; d.Usage == drivebay.UsageReleasing {
				if err := e.release(e.env.Ctx, d, trips); err != nil && !errors.Is(err, drivebay.ErrInvalid) { // its usage has changed meanwhile
					e.env.Log.Warn("drive not released", "op", "follow", "drive", d.ID, "err", err)
				}
			}
		}
	})
}

// followDriveUsage sets the usage of a volume by that of its drives.
func (e *Engine) followDriveUsage(ctx context.Context, s *drivebay.Snapshot, v *drivebay.Volume) error {
	leaving := slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		d, ok := steps.DriveOf(s, id)
		return ok && d.Usage != drivebay.UsageInUse
	})
	var event drivebay.VolumeUsageEvent
	switch {
	case leaving && v.Usage == drivebay.VolumeInUse:
		event = drivebay.VolumeUsageRelease
	case !leaving && v.Usage != drivebay.VolumeInUse && v.Usage != drivebay.VolumeUsageUnknown:
		event = drivebay.VolumeUsageKeep
	default:
		return nil
	}
	return e.ledger.OnVolume(ctx, "follow", v.ID, func(context.Context, drivebay.Volume) error {
		_, err := e.ledger.Change(v.ID, func(r *drivebay.VolumeRecord) (err error) {
			r.Volume.UsageFailure = nil
			r.Volume.Usage, err = r.Volume.Usage.Next(event)
			return err
		})
		return err
	})
}

// release records what a releasing drive waits for, or that nothing depends on it any more.
func (e *Engine) release(ctx context.Context, d *drivebay.Drive, trips map[string]moves.GroupMove) error {
	if err := e.inventory.UnreadDrives(e.inventory.UnlistedInUse); err != nil {
		return e.waiting(ctx, d, err.Error(), nil)
	}
	held, alone, sum := e.heldBy(d)
	if len(held) == 0 {
		if why := e.inventory.WhyUnlisted(d.ID); why != "" {
			return e.waiting(ctx, d, fmt.Sprintf("it is not known what is on it: %s; `drivebay force-remove %s` gives up all that is on it", why, d.ID), nil)
		}
		return e.env.Drives.Emptied(ctx, d.ID)
	}
	var waits []string
	under, stuck := 0, 0
	for vg, t := range trips {
		if t.Wait != "" && slices.Contains(t.On, d.ID) {
			waits = append(waits, "volume group "+vg+": "+t.Wait)
		}
		if t.From != d.ID {
			continue
		}
		if !t.Under && len(t.Lost) > 0 {
			stuck++
		} else {
			under++
		}
		sum.With(t.Pace)
	}
	slices.Sort(held)
	text := "on it are " + strings.Join(held[:min(len(held), 10)], ", ")
	if n := len(held) - 10; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	slices.Sort(waits)
	text = strings.Join(append([]string{text}, waits...), "; ")
	if stuck > 0 && under == 0 && !alone {
		return e.env.Drives.LeaveFailed(ctx, d.ID, text)
	}
	return e.waiting(ctx, d, text, sum.Progress())
}

// waiting records what a releasing drive waits for, if that has changed.
func (e *Engine) waiting(ctx context.Context, d *drivebay.Drive, text string, p *drivebay.Progress) error {
	if l := d.Leaving; l != nil && l.Cause == text && reflect.DeepEqual(l.Progress, p) {
		return nil
	}
	return e.env.Drives.Waiting(ctx, d.ID, text, p)
}

// heldBy returns what is on a drive, whether some of it is in no group, and how far the copying of that
// is.
func (e *Engine) heldBy(d *drivebay.Drive) (held []string, alone bool, copies moves.Pace) {
	for _, r := range e.ledger.All() {
		v := &r.Volume
		if copied := copyaway.CopyOn(e.moves, r, d.ID); copied != "" {
			held = append(held, copied)
		}
		switch {
		case v.Usage == drivebay.VolumeReleased:
		case slices.Contains(v.Location.Drives, d.ID):
			text := fmt.Sprintf("volume %s (%s)", v.Name, v.CSIStatus)
			if !v.Location.OnLVM() {
				alone = true
				if wait := e.copyaway.CopyAway(d, v); wait != "" {
					text += ", " + wait
				}
				copies.With(e.moves.CopyPace(v.ID))
			}
			held = append(held, text)
		}
	}
	for _, r := range e.partitions.SnapshotRecords() {
		if slices.Contains(r.Snapshot.Location.Drives, d.ID) && !e.evacuate.IsUnused(r.Snapshot.Source) {
			held = append(held, "snapshot "+r.Snapshot.Name)
		}
	}
	return held, alone, copies
}
