package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// Volumes go with their drives: those on a drive that has to leave have to leave it,
// too, and what it waits for the drive is told. Once nothing is left on it, that.

// follow holds volumes and drives against each other, beside the rounds.
func (e *Engine) follow() {
	s := e.drives.Snapshot()
	due := slices.ContainsFunc(s.Drives, func(d drivebay.Drive) bool { return d.Usage == drivebay.UsageReleasing }) ||
		slices.ContainsFunc(e.all(), func(r *drivebay.VolumeRecord) bool {
			return r.Volume.Usage != drivebay.VolumeInUse || moveOf(r) != nil
		})
	if !due || !e.following.CompareAndSwap(false, true) {
		return
	}
	e.running.Go(func() {
		defer e.following.Store(false)
		for _, r := range e.all() {
			if err := e.followDrives(e.ctx, s, &r.Volume); err != nil && !errors.Is(err, drivebay.ErrPending) {
				e.log.Warn("volume does not follow its drive", "op", "follow", "volume", r.Volume.ID, "err", err)
			}
		}
		for _, r := range e.all() {
			e.followMove(r)
		}
		for i := range s.Drives {
			if d := &s.Drives[i]; d.Usage == drivebay.UsageReleasing {
				if err := e.release(e.ctx, d); err != nil && !errors.Is(err, drivebay.ErrInvalid) { // it has moved on meanwhile
					e.log.Warn("drive not led on", "op", "follow", "drive", d.ID, "err", err)
				}
			}
		}
	})
}

// followDrives moves the usage of one volume to where its drives are.
func (e *Engine) followDrives(ctx context.Context, s *drivebay.Snapshot, v *drivebay.Volume) error {
	leaving := slices.ContainsFunc(v.Location.Drives, func(id string) bool {
		d, ok := driveOf(s, id)
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
	return e.onVolume(ctx, "follow", v.ID, func(context.Context, drivebay.Volume) error {
		_, err := e.change(v.ID, func(r *drivebay.VolumeRecord) (err error) {
			r.Volume.UsageFailure = nil
			r.Volume.Usage, err = r.Volume.Usage.Next(event)
			return err
		})
		return err
	})
}

// release says of a drive that has to leave what it waits for, or that nothing
// depends on it any more.
func (e *Engine) release(ctx context.Context, d *drivebay.Drive) error {
	if e.sure() != nil {
		return nil // not everything was listed yet
	}
	var held []string
	for _, r := range e.all() {
		if slices.Contains(r.Volume.Location.Drives, d.ID) {
			if r.Volume.Usage == drivebay.VolumeReleased {
				continue
			}
			text := fmt.Sprintf("volume %s (%s)", r.Volume.Name, r.Volume.CSIStatus)
			if waits := e.copyAway(ctx, e.drives.Snapshot(), d, &r.Volume); waits != "" {
				text += ", " + waits
			}
			held = append(held, text)
		} else if left := leftOn(r, d.ID); left != "" {
			held = append(held, left)
		}
	}
	for _, r := range e.snapshotRecords() {
		if slices.Contains(r.Snapshot.Location.Drives, d.ID) && !e.letGo(r.Snapshot.Source) {
			held = append(held, "snapshot "+r.Snapshot.Name)
		}
	}
	if len(held) == 0 {
		return e.drives.Emptied(ctx, d.ID)
	}
	slices.Sort(held)
	text := "on it are " + strings.Join(held[:min(len(held), 10)], ", ")
	if n := len(held) - 10; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if d.Leaving != nil && d.Leaving.Cause == text {
		return nil
	}
	return e.drives.Held(ctx, d.ID, text)
}
