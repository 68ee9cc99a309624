package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// AcceptLoss lets a volume move to its new drive without what cannot be read, or makes an incomplete copy usable.
func (e operatorCalls) AcceptLoss(ctx context.Context, id string) error {
	if r, err := e.ledger.Record(id); err == nil && r.Volume.Replicated() && r.Volume.Replication.Ended {
		return e.acceptReplica(ctx, id)
	}
	if r, err := e.ledger.Record(id); err == nil && r.Volume.Location.Kind == drivebay.LocationMirror && partitions.MoveOf(&r) == nil {
		return e.mirror.AcceptLeg(ctx, id)
	}
	r, err := e.ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		m := partitions.MoveOf(r)
		if m == nil || inventory.Moved(r) || m.Lost == nil || m.Accepted {
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
	e.ledger.Note(drivebay.EventVolumeDataLoss, &r.Volume, "an operator accepts the loss of "+r.Work.Move.Lost.String())
	e.moves.Moves.Forget(id)
	if m := e.moves.Moves.Of(id); m != nil {
		select {
		case m.Accept <- struct{}{}:
		default:
		}
	}
	return nil
}

// acceptReplica makes a plain volume of one whose replication ended before its copy was complete.
func (e operatorCalls) acceptReplica(ctx context.Context, id string) error {
	return e.ledger.OnVolume(ctx, "accept the data of", id, func(ctx context.Context, v drivebay.Volume) error {
		if v.Replication == nil || !v.Replication.Ended {
			return fmt.Errorf("%w: no data loss is awaiting approval", drivebay.ErrInvalid)
		}
		if err := e.replicated.Accept(ctx, v); err != nil {
			return err
		}
		e.ledger.Note(drivebay.EventVolumeDataLoss, &v, "an operator accepts the data of an incomplete copy")
		return nil
	})
}
