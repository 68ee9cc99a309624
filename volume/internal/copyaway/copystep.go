package copyaway

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/expand"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// copyStep is the step that copies a volume, proves the copy, and makes it the volume. Nothing
// else has either partition open from the first read until the record names the new place: what
// was proved is what is used. An interrupted copy starts again.
func (e *Copier) copyStep(id string, m *moves.CopyMove) steps.Step {
	return steps.Step{
		Name: "copy",
		Done: func(context.Context) (bool, error) { r, err := e.Ledger.Record(id); return inventory.Moved(&r), err },
		Do: func(ctx context.Context) error {
			rec, err := e.Ledger.Record(id)
			if err != nil {
				return err
			}
			from, to := piecesOf(&rec)
			src, err := e.openPiece(ctx, "move from ", from)
			if err != nil {
				return fmt.Errorf("it cannot be had alone: %w", err)
			}
			defer src.Close()
			dst, err := e.openPiece(ctx, "move to ", to)
			if err != nil {
				return err
			}
			defer dst.Close()
			c := newCopying(e, m, src, dst)
			c.shown = rec.Volume.RawBlocks()
			if err := c.copy(ctx); err != nil {
				return err
			}
			if err := c.prove(ctx); err != nil {
				return err
			}
			lost, err := e.consent(ctx, id, m, &c.lost)
			if err != nil {
				return err
			}
			return e.commitMove(ctx, id, m, lost)
		},
	}
}

// copyPiece is one end of a copy.
type copyPiece struct {
	host.Disk
	e     *Copier
	lane  string
	drive string
}

// openPiece opens a partition exclusively, and proves which drive it is on.
func (e *Copier) openPiece(ctx context.Context, way string, v *drivebay.Volume) (*copyPiece, error) {
	d, err := e.Device.Device(v)
	if err != nil {
		return nil, err
	}
	p := &copyPiece{e: e, drive: v.Location.Drives[0]}
	p.lane = way + p.drive
	p.Disk, err = steps.Through(ctx, e.Steps, p.lane, steps.TableTime, func(ctx context.Context) (host.Disk, error) {
		t := e.Device.Stack(v).Piece().Target(v, d)
		t.Alone = true
		return e.Device.OpenForWriting(ctx, t)
	})
	if err != nil {
		return nil, fmt.Errorf("drive %s, %s: %w", p.drive, d.Dev, err)
	}
	return p, nil
}

// consent returns the loss that an operator has accepted. Until then both partitions stay open:
// nothing writes to the volume meanwhile, and nothing has to be read again from a failing
// drive.
func (e *Copier) consent(ctx context.Context, id string, m *moves.CopyMove, lost *drivebay.Lost) (*drivebay.Lost, error) {
	if lost.Count == 0 {
		return nil, nil
	}
	switch r, err := e.Ledger.Record(id); {
	case err != nil || r.Volume.Usage == drivebay.VolumeInUse: // it can stay where it is
		return nil, errors.Join(err, fmt.Errorf("%w: drive %s cannot read %s of it", drivebay.ErrRefused, lost.Drive, lost))
	case r.Volume.Replicates():
		return nil, e.refuseLoss(id, lost)
	}
	lost.At = e.Machine.Now()
	asked := false
	r, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		mv := *r.Work.Move
		if mv.Accepted && mv.Lost.Covers(lost) {
			return nil
		}
		asked, mv.Lost, mv.Accepted = true, lost, false
		r.Work.Move = &mv
		r.Volume, err = r.Volume.UsageFailed(drivebay.Failure[drivebay.VolumeUsage]{Since: lost.At, Retry: drivebay.RetryOperator,
			Cause: fmt.Sprintf("drive %s cannot read %s of it: they are lost if the move continues, which requires `drivebay volume accept-loss %s --yes`", lost.Drive, lost, id)})
		return err
	})
	if err != nil || !asked {
		return lost, err
	}
	e.Ledger.Note(drivebay.EventVolumeDataLoss, &r.Volume, r.Volume.UsageFailure.Cause)
	select {
	case <-m.Accept:
		return lost, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// commitMove records that the volume is on its new drive.
func (e *Copier) commitMove(ctx context.Context, id string, m *moves.CopyMove, lost *drivebay.Lost) error {
	m.Firm.Store(true)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r, err := e.Ledger.Record(id)
	if err == nil {
		err = e.verifyTarget(&r) // it may have turned BAD, or has to leave, since the copy began
	}
	if err != nil {
		return err
	}
	r, err = e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		r.Volume.Location = r.Work.Move.To
		if lost != nil {
			r.Volume.Lost = lost
		}
		if r.Volume.Usage != drivebay.VolumeInUse || r.Work.Move.Growth == nil {
			if r.Volume, err = r.Volume.UsageMoved(drivebay.VolumeUsageMoved); err != nil {
				return err
			}
		}
		if expand.GrowsItself(r) {
			r.Volume, err = e.Expand.Grown(r.Volume, r.Work.Size)
		}
		return err
	})
	if err != nil {
		return err
	}
	from, to := r.Work.Move.From.Drives[0], r.Work.Move.To.Drives[0]
	text := fmt.Sprintf("volume %q was copied from drive %s to drive %s", r.Volume.Name, from, to)
	if from == to {
		text = fmt.Sprintf("volume %q was copied to another place on drive %s", r.Volume.Name, from)
	}
	if room := r.Work.Move.Growth; room != nil {
		text += e.Expand.GrowthText(&r, room)
	}
	if lost != nil {
		text += ", without " + lost.String()
	}
	e.Ledger.Note(drivebay.EventVolumeMoved, &r.Volume, text)
	if expand.GrowsItself(&r) {
		e.Expand.NoteGrown(&r.Volume)
	}
	return nil
}

// ReadAgain starts the copy of a volume with unreadable ranges again: they may be readable the
// next time.
func (e *Copier) ReadAgain(id string) error {
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		if m := partitions.MoveOf(r); m != nil && !inventory.Moved(r) {
			mv := *m
			mv.Lost, mv.Accepted = nil, false
			r.Work.Move = &mv
		}
		r.Volume, err = r.Volume.UsageMoved(drivebay.VolumeUsageRetry)
		return err
	})
	e.Moves.Moves.Forget(id)
	return err
}
