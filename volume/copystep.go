package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// copyStep is the step that copies a volume, proves the copy, and makes it the volume. Nothing
// else has either partition open from the first read until the record names the new place: what
// was proved is what is used. A copy that was cut short starts anew.
func (e *Engine) copyStep(id string, m *copyMove) step {
	return step{
		name: "copy",
		done: func(context.Context) (bool, error) { r, err := e.record(id); return moved(&r), err },
		do: func(ctx context.Context) error {
			rec, err := e.record(id)
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
			c.shown = rec.Volume.Mode != drivebay.ModeFS && rec.Volume.LUKSUUID == ""
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
	e     *Engine
	lane  string
	drive string
}

// openPiece opens a partition exclusively, and proves which drive it is on.
func (e *Engine) openPiece(ctx context.Context, way string, v *drivebay.Volume) (*copyPiece, error) {
	d, err := e.device(v)
	if err != nil {
		return nil, err
	}
	p := &copyPiece{e: e, drive: v.Location.Drives[0]}
	p.lane = way + p.drive
	p.Disk, err = through(ctx, e, p.lane, tableTime, func(ctx context.Context) (host.Disk, error) {
		return e.openForWriting(ctx, writeTarget{device: d, drives: v.Location.Drives, on: p.drive, alone: true})
	})
	if err != nil {
		return nil, fmt.Errorf("drive %s, %s: %w", p.drive, d.dev, err)
	}
	return p, nil
}

// consent returns the loss that an operator has accepted. Until then both partitions stay open:
// nothing writes to the volume meanwhile, and nothing has to be read again from a failing
// drive.
func (e *Engine) consent(ctx context.Context, id string, m *copyMove, lost *drivebay.Lost) (*drivebay.Lost, error) {
	if lost.Count == 0 {
		return nil, nil
	}
	if r, err := e.record(id); err != nil || r.Volume.Usage == drivebay.VolumeInUse { // it can stay where it is
		return nil, errors.Join(err, fmt.Errorf("%w: drive %s cannot read %s of it", drivebay.ErrRefused, lost.Drive, lost))
	}
	lost.At = e.machine.Now()
	asked := false
	r, err := e.change(id, func(r *drivebay.VolumeRecord) (err error) {
		mv := *r.Work.Move
		if mv.Accepted && mv.Lost.Covers(lost) {
			return nil
		}
		asked, mv.Lost, mv.Accepted = true, lost, false
		r.Work.Move = &mv
		r.Volume, err = r.Volume.UsageFailed(drivebay.Failure[drivebay.VolumeUsage]{Since: lost.At, Retry: drivebay.RetryOperator,
			Cause: fmt.Sprintf("drive %s cannot read %s of it: they are lost if it goes on, which needs `drivebay volume accept-loss %s --yes`", lost.Drive, lost, id)})
		return err
	})
	if err != nil || !asked {
		return lost, err
	}
	e.note(drivebay.EventVolumeDataLoss, &r.Volume, r.Volume.UsageFailure.Cause)
	select {
	case <-m.accept:
		return lost, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// commitMove records that the volume is on its new drive.
func (e *Engine) commitMove(ctx context.Context, id string, m *copyMove, lost *drivebay.Lost) error {
	m.firm.Store(true)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r, err := e.change(id, func(r *drivebay.VolumeRecord) (err error) {
		r.Volume.Location = r.Work.Move.To
		if lost != nil {
			r.Volume.Lost = lost
		}
		if r.Volume.Usage != drivebay.VolumeInUse || r.Work.Move.Room == nil {
			if r.Volume, err = r.Volume.UsageMoved(drivebay.VolumeUsageMoved); err != nil {
				return err
			}
		}
		if growsItself(r) {
			r.Volume, err = grown(r.Volume, r.Work.Size)
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
	if room := r.Work.Move.Room; room != nil {
		text += e.growthText(&r, room)
	}
	if lost != nil {
		text += ", without " + lost.String()
	}
	e.note(drivebay.EventVolumeMoved, &r.Volume, text)
	if growsItself(&r) {
		e.noteGrown(&r.Volume)
	}
	return nil
}

// AcceptLoss lets a volume move to its new drive without what cannot be read.
func (e *Engine) AcceptLoss(_ context.Context, id string) error {
	if r, err := e.record(id); err == nil && r.Volume.Location.Kind == drivebay.LocationMirror && moveOf(&r) == nil {
		return e.acceptLeg(id)
	}
	r, err := e.change(id, func(r *drivebay.VolumeRecord) (err error) {
		m := moveOf(r)
		if m == nil || moved(r) || m.Lost == nil || m.Accepted {
			return fmt.Errorf("%w: no data loss is awaiting approval", drivebay.ErrInvalid)
		}
		mv := *m
		mv.Accepted = true
		r.Work.Move = &mv
		r.Volume, err = r.Volume.UsageMoved(drivebay.VolumeUsageRetry)
		return err
	})
	if err != nil {
		return fmt.Errorf("accept loss of volume %s: %w", id, err)
	}
	e.note(drivebay.EventVolumeDataLoss, &r.Volume, "an operator accepts the loss of "+r.Work.Move.Lost.String())
	e.moves.forget(id)
	if m := e.moves.of(id); m != nil {
		select {
		case m.accept <- struct{}{}:
		default:
		}
	}
	return nil
}

// readAgain starts the copy of a volume with unreadable ranges anew: they may be readable the
// next time.
func (e *Engine) readAgain(id string) error {
	_, err := e.change(id, func(r *drivebay.VolumeRecord) (err error) {
		if m := moveOf(r); m != nil && !moved(r) {
			mv := *m
			mv.Lost, mv.Accepted = nil, false
			r.Work.Move = &mv
		}
		r.Volume, err = r.Volume.UsageMoved(drivebay.VolumeUsageRetry)
		return err
	})
	e.moves.forget(id)
	return err
}
