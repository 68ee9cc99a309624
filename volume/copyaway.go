package volume

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
)

// copyAway starts to copy a volume that is a partition or a whole drive off a leaving drive,
// once the volume is not in use. It does not wait for the end. It returns what the copy waits
// for, or how the last attempt failed.
func (e *Engine) copyAway(d *drivebay.Drive, v *drivebay.Volume) (waits string) {
	if v.Location.VG != "" || len(v.Location.Drives) != 1 || v.Location.Drives[0] != d.ID {
		return ""
	}
	if at := usedAt(v); at != "" {
		return at + ": stop the pod that uses it; the copy starts then"
	}
	if d.Status != drivebay.StatusOnline {
		e.stopMove(v.ID)
		return fmt.Sprintf("its drive is %v", d.Status)
	}
	if doing := v.State().Status; !copyable(v) {
		return fmt.Sprintf("it is %v: that has to come to its end first", doing)
	}
	switch {
	case v.Usage == drivebay.VolumeUsageFailed && v.UsageFailure != nil:
		return v.UsageFailure.Cause
	case v.Usage != drivebay.VolumeReleasing: // usage follows the drive first
		return ""
	}
	if e.moves.of(v.ID) != nil {
		return ""
	}
	last := e.moves.last(v.ID)
	e.beginMove(v.ID, "copy", false, func(ctx context.Context, m *copyMove) error { return e.moveAway(ctx, v.ID, m) })
	return last.text
}

// usedAt returns where the volume is in use.
func usedAt(v *drivebay.Volume) string {
	at := ""
	for _, p := range v.Publications {
		if !p.Staging {
			return "published at " + p.Path
		}
		at = "staged at " + p.Path
	}
	return at
}

// copyable reports whether a volume that is not in use is whole. A mount that failed has left
// it whole.
func copyable(v *drivebay.Volume) bool {
	state := v.State()
	if state.Status == drivebay.CSIFailed {
		state.Status = state.Before
	}
	return state.Status == drivebay.CSICreated || state.Status == drivebay.CSIVolumeReady || state.Status == drivebay.CSIPublished || state.Status == drivebay.CSIResized
}

// stopMove cancels the work on the move of a volume, unless that is near its end.
func (e *Engine) stopMove(id string) {
	if m := e.moves.of(id); m != nil && !m.firm.Load() {
		m.cancel()
	}
}

// moveOf returns the move of a volume that is running or was cut short.
func moveOf(r *drivebay.VolumeRecord) *drivebay.Move {
	if r.Work == nil || r.Work.Op != drivebay.WorkMove {
		return nil
	}
	return r.Work.Move
}

// moved reports whether a volume is on its new drive, whatever is left on the old one.
func moved(r *drivebay.VolumeRecord) bool {
	m := moveOf(r)
	return m != nil && r.Volume.Location.Partition == m.To.Partition
}

// settledStep is recorded when the new partition has the volume's name, and the old one was
// marked or could not be.
const settledStep = "settled"

func settled(r *drivebay.VolumeRecord) bool { return moved(r) && contains(r.Work.Made, settledStep) }

// unsettled returns ErrPending while the move of a volume settles.
func (e *Engine) unsettled(id string) error {
	r, err := e.record(id)
	if err != nil || !moved(&r) || settled(&r) {
		return nil
	}
	if _, err := e.drive(moveOf(&r).To.Drives[0]); err != nil { // the move cannot settle
		return nil
	}
	return fmt.Errorf("volume %s: %w: it is on another drive now, which is being written down there", id, drivebay.ErrPending)
}

// followMove starts the next work on a move that was cut short, makes room, is not wanted any
// more, or has left a copy.
func (e *Engine) followMove(r *drivebay.VolumeRecord) {
	id := r.Volume.ID
	switch {
	case r.Work == nil && reachableCopy(e.drives.Snapshot(), r, false) >= 0:
		e.beginMove(id, "resume a copy", false, func(context.Context, *copyMove) error {
			_, err := e.resumeCopy(id, false)
			return err
		})
	case moveOf(r) == nil:
	case e.moves.of(id) != nil:
		if room := moveOf(r).Room; room != nil && r.Volume.Usage == drivebay.VolumeInUse && !moved(r) && !takenBack(r) && !e.roomWanted(r) {
			e.stopMove(id)
		}
	case settled(r):
		e.beginMove(id, "clean up", true, func(ctx context.Context, _ *copyMove) error { return e.cleanUp(ctx, id, false) })
	case moved(r):
		e.beginMove(id, "settle", false, func(ctx context.Context, m *copyMove) error {
			m.firm.Store(true)
			return e.settleMove(ctx, id)
		})
	case r.Volume.Usage == drivebay.VolumeInUse && !takenBack(r) && e.roomWanted(r):
		e.beginMove(id, "copy", false, func(ctx context.Context, m *copyMove) error { return e.moveForRoom(ctx, id, m) })
	case r.Volume.Usage == drivebay.VolumeInUse || r.Volume.Usage == drivebay.VolumeReleased:
		e.beginMove(id, "take back", false, func(ctx context.Context, _ *copyMove) error { return e.takeBack(ctx, id) })
	}
}

// leftOn returns what a volume that has moved has left on a drive.
func leftOn(r *drivebay.VolumeRecord, drive string) string {
	if m := moveOf(r); m != nil && moved(r) && m.From.Drives[0] == drive {
		return fmt.Sprintf("what volume %s has left there, which is wiped", r.Volume.Name)
	}
	if slices.ContainsFunc(r.Left, func(c drivebay.LeftCopy) bool { return !c.Unwiped && contains(c.Location.Drives, drive) }) {
		return fmt.Sprintf("a copy of volume %s, wiped when the drive is online", r.Volume.Name)
	}
	return ""
}
