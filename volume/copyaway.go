package volume

import (
	"context"
	"fmt"

	"github.com/drivebay/drivebay"
)

// copyAway copies a volume that is a partition or a whole drive off a leaving drive,
// once nobody has it published. It does not wait for the end. What it waits for is
// told; empty: it is under way.
func (e *Engine) copyAway(d *drivebay.Drive, v *drivebay.Volume) (waits string) {
	if v.Location.VG != "" || len(v.Location.Drives) != 1 || v.Location.Drives[0] != d.ID {
		return ""
	}
	if at := usedAt(v); at != "" {
		return at + ": its user has to let go of it; then it is copied"
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
	case v.Usage != drivebay.VolumeReleasing: // it follows its drive first
		return ""
	}
	if e.moves.of(v.ID) != nil {
		return ""
	}
	last := e.moves.last(v.ID)
	e.beginMove(v.ID, "copy", false, func(ctx context.Context, m *mover) error { return e.moveAway(ctx, v.ID, m) })
	return last.text
}

// usedAt is where somebody has the volume.
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

// copyable says of a volume that nobody has whether it is whole: a mount that failed
// has left it so.
func copyable(v *drivebay.Volume) bool {
	state := v.State()
	if state.Status == drivebay.CSIFailed {
		state.Status = state.Before
	}
	return state.Status == drivebay.CSICreated || state.Status == drivebay.CSIVolumeReady || state.Status == drivebay.CSIPublished || state.Status == drivebay.CSIResized
}

// stopMove ends what is being done about the move of a volume, if that can be.
func (e *Engine) stopMove(id string) {
	if m := e.moves.of(id); m != nil && !m.firm.Load() {
		m.cancel()
	}
}

// moveOf is the move that is under way of a volume, or was cut short.
func moveOf(r *drivebay.VolumeRecord) *drivebay.Move {
	if r.Work == nil || r.Work.Op != drivebay.WorkMove {
		return nil
	}
	return r.Work.Move
}

// moved says that a volume is on its new drive, whatever is left on the old one.
func moved(r *drivebay.VolumeRecord) bool {
	m := moveOf(r)
	return m != nil && r.Volume.Location.Partition == m.To.Partition
}

// settledStep is written down when the table of the new drive has the volume's name,
// and that of the old one has it no more.
const settledStep = "settled"

func settled(r *drivebay.VolumeRecord) bool { return moved(r) && contains(r.Work.Made, settledStep) }

// unsettled says of a volume that it can be used in a moment.
func (e *Engine) unsettled(id string) error {
	r, err := e.record(id)
	if err != nil || !moved(&r) || settled(&r) {
		return nil
	}
	if _, err := e.drive(moveOf(&r).To.Drives[0]); err != nil { // then nothing settles
		return nil
	}
	return fmt.Errorf("volume %s: %w: it is on another drive now, which is being written down there", id, drivebay.ErrPending)
}

// followMove goes on with a move that nobody has asked for any more, or that has
// left something behind.
func (e *Engine) followMove(r *drivebay.VolumeRecord) {
	id := r.Volume.ID
	switch {
	case moveOf(r) == nil:
	case e.moves.of(id) != nil:
		if room := moveOf(r).Room; room != nil && r.Volume.Usage == drivebay.VolumeInUse && !moved(r) && !takenBack(r) && !e.roomWanted(r) {
			e.stopMove(id)
		}
	case settled(r):
		e.beginMove(id, "clean up", true, func(ctx context.Context, _ *mover) error { return e.cleanUp(ctx, id, false) })
	case moved(r):
		e.beginMove(id, "settle", false, func(ctx context.Context, m *mover) error {
			m.firm.Store(true)
			return e.settleMove(ctx, id)
		})
	case r.Volume.Usage == drivebay.VolumeInUse && !takenBack(r) && e.roomWanted(r):
		e.beginMove(id, "copy", false, func(ctx context.Context, m *mover) error { return e.moveForRoom(ctx, id, m) })
	case r.Volume.Usage == drivebay.VolumeInUse || r.Volume.Usage == drivebay.VolumeReleased:
		e.beginMove(id, "take back", false, func(ctx context.Context, _ *mover) error { return e.takeBack(ctx, id) })
	}
}

// leftOn says what a volume that has moved has left on a drive.
func leftOn(r *drivebay.VolumeRecord, drive string) string {
	if m := moveOf(r); m != nil && moved(r) && m.From.Drives[0] == drive {
		return fmt.Sprintf("what volume %s has left there, which is wiped", r.Volume.Name)
	}
	return ""
}
