package copyaway

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// CopyAway starts to copy a volume that is a partition or a whole drive off a leaving drive,
// once the volume is not in use. It does not wait for the end. It returns what the copy waits
// for, or how the last attempt failed.
func (e *Copier) CopyAway(d *drivebay.Drive, v *drivebay.Volume) (waits string) {
	if v.Location.OnLVM() || len(v.Location.Drives) != 1 || v.Location.Drives[0] != d.ID {
		return ""
	}
	switch at := inventory.UsedAt(v); {
	case v.Replication != nil && v.Replication.Ended:
		return v.Replication.Why() + ": see its condition for what to do"
	case v.Replicates():
		if why := e.whyStays(v); why != "" {
			e.stopMove(v.ID)
			return why
		}
	case at != "":
		return at + ": stop the pod that uses it; the copy starts then"
	case e.Partitions.Marked(v):
		return "it is marked as replicated: its record is corrected first"
	}
	if d.Status != drivebay.StatusOnline {
		e.stopMove(v.ID)
		return fmt.Sprintf("its drive is %v", d.Status)
	}
	if doing := v.State().Status; !inventory.Copyable(v) {
		return fmt.Sprintf("it is %v: that has to come to its end first", doing)
	}
	switch {
	case v.Usage == drivebay.VolumeUsageFailed && v.UsageFailure != nil:
		return v.UsageFailure.Cause
	case v.Usage != drivebay.VolumeReleasing: // usage follows the drive first
		return ""
	}
	if e.Moves.Moves.Of(v.ID) != nil {
		return ""
	}
	last := e.Moves.Moves.Last(v.ID)
	e.beginMove(v.ID, "copy", false, func(ctx context.Context, m *moves.CopyMove) error { return e.moveAway(ctx, v.ID, m) })
	return last.Text
}

// stopMove cancels the work on the move of a volume, unless that is near its end.
func (e *Copier) stopMove(id string) {
	if m := e.Moves.Moves.Of(id); m != nil && !m.Firm.Load() {
		m.Cancel()
	}
}

// settledStep is recorded when the new partition has the volume's name, and the old one was
// marked or could not be.
const settledStep = "settled"

func settled(r *drivebay.VolumeRecord) bool {
	return inventory.Moved(r) && slices.Contains(r.Work.Made, settledStep)
}

// unsettled returns ErrPending while the move of a volume settles.
func (e *Copier) unsettled(id string) error {
	r, err := e.Ledger.Record(id)
	if err != nil || !inventory.Moved(&r) || settled(&r) {
		return nil
	}
	if _, err := e.Partitions.Drive(partitions.MoveOf(&r).To.Drives[0]); err != nil { // the move cannot settle
		return nil
	}
	return settling(id)
}

func settling(id string) error {
	return fmt.Errorf("volume %s: %w: it is on another drive now, which is being written down there", id, drivebay.ErrPending)
}

// FollowMove starts the next work on a move that was cut short, makes room, is not wanted any
// more, or has left a copy.
func (e *Copier) FollowMove(r *drivebay.VolumeRecord) {
	id := r.Volume.ID
	switch {
	case r.Work == nil && reachableCopy(e.Moves, e.Drives.Snapshot(), r, false) >= 0:
		e.beginMove(id, "resume a copy", false, func(context.Context, *moves.CopyMove) error {
			_, err := e.resumeCopy(id, false)
			return err
		})
	case partitions.MoveOf(r) == nil:
	case e.Moves.Moves.Of(id) != nil:
		if copying := !inventory.Moved(r) && !inventory.TakenBack(r) && !e.hasArrived(r); copying && (e.isUnwanted(r) || e.hasUnfitTarget(r)) {
			e.stopMove(id)
		}
	case !inventory.Moved(r) && e.hasArrived(r):
		e.beginMove(id, "correct", false, func(ctx context.Context, _ *moves.CopyMove) error { return e.correctMove(ctx, id) })
	case settled(r):
		e.beginMove(id, "clean up", true, func(ctx context.Context, _ *moves.CopyMove) error { return e.cleanUp(ctx, id, false) })
	case inventory.Moved(r):
		e.beginMove(id, "settle", false, func(ctx context.Context, m *moves.CopyMove) error {
			m.Firm.Store(true)
			return e.settleMove(ctx, id)
		})
	case r.Volume.Usage == drivebay.VolumeInUse && !inventory.TakenBack(r) && e.Expand.RoomWanted(r):
		e.beginMove(id, "copy", false, func(ctx context.Context, m *moves.CopyMove) error { return e.moveForRoom(ctx, id, m) })
	case r.Volume.Usage == drivebay.VolumeInUse || r.Volume.Usage == drivebay.VolumeReleased:
		e.beginMove(id, "take back", false, func(ctx context.Context, _ *moves.CopyMove) error { return e.takeBack(ctx, id) })
	}
}

// isUnwanted reports whether the growth that a move makes room for is not requested any more.
func (e *Copier) isUnwanted(r *drivebay.VolumeRecord) bool {
	return partitions.MoveOf(r).Growth != nil && r.Volume.Usage == drivebay.VolumeInUse && !e.Expand.RoomWanted(r)
}

// hasUnfitTarget reports whether the drive that a volume is being copied to has turned BAD, or has to leave, since it was chosen.
func (e *Copier) hasUnfitTarget(r *drivebay.VolumeRecord) bool {
	d, err := e.Partitions.Drive(partitions.MoveOf(r).To.Drives[0])
	return err == nil && isUnfit(d)
}

// isUnfit reports whether no data may move to a drive.
func isUnfit(d *drivebay.Drive) bool {
	return d.Usage != drivebay.UsageInUse || d.Health == drivebay.HealthBad
}

// CopyOn returns what a drive has of a volume that is not on it: what is being copied to it, or what a move has left there.
func CopyOn(t *moves.Tracker, r *drivebay.VolumeRecord, drive string) string {
	switch m := partitions.MoveOf(r); {
	case m == nil || m.From.Drives[0] == m.To.Drives[0]:
	case !inventory.Moved(r) && m.To.Drives[0] == drive:
		return fmt.Sprintf("an unfinished copy of volume %s", r.Volume.Name)
	case inventory.Moved(r) && m.From.Drives[0] == drive:
		return fmt.Sprintf("what volume %s has left there, which is wiped", r.Volume.Name)
	}
	if slices.ContainsFunc(r.Left, func(c drivebay.LeftCopy) bool {
		return slices.Contains(c.Location.Drives, drive) && (!c.Unwiped || isWipedAgain(t, t.Drives.Snapshot(), r.Volume.ID, c))
	}) {
		return fmt.Sprintf("a copy of volume %s, wiped when the drive is online", r.Volume.Name)
	}
	return ""
}
