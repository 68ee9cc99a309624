package copyaway

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// The kernel reports that some of a logical volume could not be moved, and not which part.
// So the engine reads the volume once more, while it is in use, and names that part.

// Survey reads volumes that could not be moved, and adds to the cause of their failure
// what cannot be read.
func (e *Copier) Survey(ids []string, drive, why string) {
	for _, id := range ids {
		lost, err := e.unreadable(e.Ctx, id, drive, why)
		if err == nil {
			err = e.reportUnreadable(id, lost, why)
		}
		if err != nil && !errors.Is(err, errMovedOn) && e.Ctx.Err() == nil {
			e.Log.Warn("unreadable ranges not determined", "op", "survey", "volume", id, "drive", drive, "err", err)
		}
	}
}

// unreadable finds what cannot be read of a volume. It ends and closes the device when
// other work on the volume begins.
func (e *Copier) unreadable(ctx context.Context, id, drive, why string) (*drivebay.Lost, error) {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return nil, err
	}
	src := &copyPiece{e: e, drive: drive, lane: "survey of " + drive}
	src.Disk, err = steps.Through(ctx, e.Steps, src.lane, steps.TableTime, func(ctx context.Context) (host.Disk, error) {
		return e.Device.OpenShown(ctx, func() (mounttable.Device, error) { return e.Device.Device(&rec.Volume) })
	})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	c := newCopying(e, new(moves.CopyMove), src, src)
	err = c.each(ctx, func(ctx context.Context, b []byte, at uint64) error {
		if rec, err := e.Ledger.Record(id); err != nil || !leftBy(&rec, why) {
			return errors.Join(err, errMovedOn)
		}
		bad := c.lost.Bytes
		if err := c.gather(ctx, b, at); err != nil || c.lost.Bytes > bad {
			return err
		}
		c.faults = 0
		return nil
	})
	return &c.lost, err
}

var errMovedOn = errors.New("something else is done with it")

// leftBy reports whether a volume was left where it is for this cause and has no other
// work.
func leftBy(r *drivebay.VolumeRecord, why string) bool {
	f := r.Volume.UsageFailure
	return r.Work == nil && r.Volume.Usage == drivebay.VolumeUsageFailed && f != nil && f.Cause == why
}

func (e *Copier) reportUnreadable(id string, lost *drivebay.Lost, why string) error {
	found := "all of it could be read when it was read again"
	if lost.Count > 0 {
		found = lost.String() + " of it"
	}
	rec, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		if !leftBy(r, why) {
			return errMovedOn
		}
		f := *r.Volume.UsageFailure
		f.Cause = why + ": " + found
		r.Volume.UsageFailure = &f
		return nil
	})
	if err == nil && lost.Count > 0 {
		e.Ledger.Note(drivebay.EventVolumeDataLoss, &rec.Volume, fmt.Sprintf("drive %s cannot read %s", lost.Drive, found))
	}
	return err
}
