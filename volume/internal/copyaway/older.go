package copyaway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume/internal/expand"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// A record can be older than the end of its move: a store was restored. Only a volume that has moved has its name at the
// target, and the old copy may be wiped since: what the drives show counts.

// hasArrived reports whether the last listing shows a volume at the target of a move that its record does not know as ended.
func (e *Copier) hasArrived(r *drivebay.VolumeRecord) bool {
	to := partitions.MoveOf(r).To
	return slices.ContainsFunc(e.Partitions.PartsOn(to.Drives[0]), func(p partitions.Part) bool {
		return strings.EqualFold(p.GUID, to.Partition) && p.Title == ledger.PartitionName(r.Volume.ID)
	})
}

// correctMove records that a volume is at the target of its move, if the partition table there says so.
func (e *Copier) correctMove(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil || partitions.MoveOf(&rec) == nil || inventory.Moved(&rec) { // it has ended since the caller looked
		return err
	}
	to := partitions.MoveOf(&rec).To
	there := rec
	there.Volume.Location = to
	is, err := e.Write.InTable(write.OfVolume(&there), func(*gpt.Table) (bool, error) { return true, nil })(ctx)
	if err != nil || !is {
		return err
	}
	rec, err = e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		r.Volume.Location, r.Volume.Lost = to, partitions.LostOf(r)
		if in, err := r.Volume.UsageMoved(drivebay.VolumeUsageMoved); err == nil { // else it does not leave a drive any more
			r.Volume = in
		}
		if expand.GrowsItself(r) {
			r.Volume, err = e.Expand.Grown(r.Volume, r.Work.Size)
		}
		return err
	})
	if err != nil {
		return err
	}
	e.Ledger.Note(drivebay.EventVolumeMoved, &rec.Volume, fmt.Sprintf("the record of volume %q was older than its move: it is on drive %s", rec.Volume.Name, to.Drives[0]))
	e.Instances.NoteNewer(&rec.Volume, fmt.Sprintf("the record store has volume %s on drive %s, and it was moved to drive %s", rec.Volume.Name, partitions.MoveOf(&rec).From.Drives[0], to.Drives[0]))
	_, err = e.correctAwaitsKey(ctx, rec)
	return err
}
