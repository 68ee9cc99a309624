package expand

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// GrowsItself reports whether the volume of a record moves to a place where it has room to grow.
func GrowsItself(r *drivebay.VolumeRecord) bool {
	m := partitions.MoveOf(r)
	return m != nil && m.Growth != nil && m.Growth.Volume == r.Volume.ID
}

// planRoom chooses the volume that moves so that v can have a size; have is what v can have where it is.
func planRoom(s inventory.PlacementView, v *drivebay.Volume, have, size uint64) (inventory.RoomPlan, error) {
	plan, err := s.PlanRoom(v, size)
	if err != nil && !errors.Is(err, drivebay.ErrPending) {
		err = fmt.Errorf("%w: it can have %s where it is, %s are requested: %w", drivebay.ErrRange, partitions.SizeText(have), partitions.SizeText(size), err)
	}
	return plan, err
}

// makeRoom starts the move of v or of the volume behind it so that v can have a size. It returns
// ErrPending once the move is recorded, or why v cannot have the size. Provisioner.Placing is held.
func (e *Expander) makeRoom(s inventory.PlacementView, v *drivebay.Volume, have, size uint64) error {
	if r := e.makesRoomFor(v.ID); r != nil {
		return fmt.Errorf("%w: volume %s behind it moves to make room; retry later", drivebay.ErrPending, r.Volume.Name)
	}
	plan, err := planRoom(s, v, have, size)
	if err != nil {
		return err
	}
	id, name := plan.Moves.Volume.ID, plan.Moves.Volume.Name
	text := MovesItself(size)
	if id != v.ID {
		end, err := e.Ledger.Begin(id)
		if err != nil {
			return err
		}
		defer end()
		text = fmt.Sprintf("volume %s behind it moves to make room; retry later", name)
	}
	if err := e.Device.MayChange(id); err != nil {
		return err
	}
	to, _, err := plan.To.Locate(inventory.ClassOf(&plan.Moves.Volume), id, e.Instances.NewInstance())
	if err != nil {
		return err
	}
	_, err = e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		if err := s.MayMove(r); err != nil { // it has changed since
			return fmt.Errorf("%w: volume %s %w", drivebay.ErrPending, name, err)
		}
		r.Work = &drivebay.Work{Op: drivebay.WorkMove, Since: e.Machine.Now(), Size: plan.Size,
			Move: &drivebay.Move{From: r.Volume.Location, To: to, Name: ledger.NewName(id), Growth: &drivebay.Growth{Volume: v.ID, Size: size}}}
		return nil
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", drivebay.ErrPending, text)
}

// MovesItself returns the reason of a volume that moves so that it can grow.
func MovesItself(size uint64) string {
	return fmt.Sprintf("it moves to where it has room for %s; retry later", partitions.SizeText(size))
}

// makesRoomFor returns the record of a volume that moves to make room for another one.
func (e *Expander) makesRoomFor(id string) *drivebay.VolumeRecord {
	for _, r := range e.Ledger.All() {
		if m := partitions.MoveOf(r); m != nil && m.Growth != nil && m.Growth.Volume == id && r.Volume.ID != id {
			return r
		}
	}
	return nil
}

// RoomWanted reports whether a move that makes room is still needed: the volume is not in use, and
// the growth is still due.
func (e *Expander) RoomWanted(r *drivebay.VolumeRecord) bool {
	room := partitions.MoveOf(r).Growth
	if room == nil || inventory.UsedAt(&r.Volume) != "" {
		return false
	}
	if GrowsItself(r) {
		return true
	}
	g, _ := inventory.GrowingBeside(e.Ledger.All(), r)
	return g != nil && g.Volume.Size < room.Size && g.Volume.CSIStatus != drivebay.CSIRemoving
}

// GrowNext records that a volume grows into the range that another one has left; finish grows it. It
// drops errors: the next request for the growth returns them.
func (e *Expander) GrowNext(left *drivebay.VolumeRecord) (finish func(context.Context) error) {
	nothing := func(context.Context) error { return nil }
	g, room := inventory.GrowingBeside(e.Ledger.All(), left)
	if room == nil {
		return nothing
	}
	id := g.Volume.ID
	end, err := e.Ledger.Begin(id)
	if err != nil {
		return nothing
	}
	due := false
	if err = e.Device.MayChange(id); err == nil {
		due, err = e.WantSize(id, drivebay.SizeRange{Required: room.Size})
	}
	if err != nil || !due {
		end()
		e.Log.Info("volume not grown", "op", "grow", "volume", id, "err", err)
		return nothing
	}
	return func(ctx context.Context) error {
		defer end()
		if err := e.Enlarge(ctx, id); ctx.Err() != nil || errors.Is(err, ledger.ErrStopped) {
			return err
		}
		return nil // the move itself did not fail
	}
}

// Grown returns a volume after a move that gave it a size.
func (e *Expander) Grown(v drivebay.Volume, size uint64) (drivebay.Volume, error) {
	v, err := v.Moved(drivebay.CSIResize)
	if err != nil {
		return v, err
	}
	return e.grownDone(v, size)
}

// GrowthText describes the growth that a volume has moved for.
func (e *Expander) GrowthText(r *drivebay.VolumeRecord, room *drivebay.Growth) string {
	if GrowsItself(r) {
		return fmt.Sprintf(": it had no room for %s where it was", partitions.SizeText(room.Size))
	}
	name := room.Volume
	if g := inventory.RecordIn(e.Ledger.All(), room.Volume); g != nil {
		name = g.Volume.Name
	}
	return fmt.Sprintf(": volume %q before it needs the room to grow to %s", name, partitions.SizeText(room.Size))
}
