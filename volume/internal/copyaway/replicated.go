package copyaway

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// A replicated volume is copied as a plain one is, with the metadata of DRBD at the end of its piece. DRBD has the piece open, so it
// gives it up for the copy and gets the new one; the peer remembers meanwhile what it has to send. What the old drive cannot read is
// not given up: the peer has it, and the metadata of a copy without it would say that the copy is complete.

// whyStays returns why a replicated volume is not copied off its drive now.
func (e *Copier) whyStays(v *drivebay.Volume) string {
	switch {
	case v.Rest() != drivebay.CSICreated:
		return inventory.UsedAt(v) + ": stop the pod that uses it; the copy starts then"
	case v.Location.Kind != drivebay.LocationPartition || !e.DRBD.ConnectsAgain():
		return "it is replicated to " + v.Replication.Peer.String() + ", and this daemon cannot connect it again after a copy (replication.secretFile): disable the replication on both sides, or make this side again on another drive (docs/replication.md, When a drive fails)"
	}
	return ""
}

// HasPiece reports whether nothing that is done with a volume needs its piece closed: a move that names the new partition does.
func HasPiece(r *drivebay.VolumeRecord) bool {
	return r.Work == nil || partitions.MoveOf(r) != nil && (!inventory.Moved(r) || settled(r))
}

// copyPiece copies a volume, and settles the copy.
func (e *Copier) copyPiece(ctx context.Context, v *drivebay.Volume, m *moves.CopyMove) error {
	err := e.DRBD.Drop(ctx, *v)
	if err == nil {
		err = e.Steps.Run(ctx, v.ID, []steps.Step{e.copyStep(v.ID, m)})
	}
	if err != nil {
		e.attachAgain(ctx, v.ID)
		return err
	}
	return e.settleMove(ctx, v.ID)
}

// attachAgain gives DRBD the piece of a volume again, if it is replicated. What fails is tried again after the next listing.
func (e *Copier) attachAgain(ctx context.Context, id string) {
	rec, err := e.Ledger.Record(id)
	if err == nil && rec.Volume.Replicates() && ctx.Err() == nil {
		err = e.DRBD.Restore(ctx, id)
	}
	if err != nil && !errors.Is(err, ledger.ErrStopped) {
		e.Log.Warn("a volume is not attached to DRBD again after a copy", "op", "copy", "volume", id, "err", err)
	}
}

// refuseLoss ends the move of a replicated volume that its old drive cannot read.
func (e *Copier) refuseLoss(id string, lost *drivebay.Lost) error {
	cause := fmt.Sprintf("drive %s cannot read %s of it, which its peer has: make this side again on another drive (docs/replication.md, When a drive fails)", lost.Drive, lost)
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		r.Volume, err = r.Volume.UsageFailed(drivebay.Failure[drivebay.VolumeUsage]{Since: e.Machine.Now(), Retry: drivebay.RetryOperator, Cause: cause})
		return err
	})
	return errors.Join(fmt.Errorf("%w: %s", drivebay.ErrRefused, cause), err)
}
