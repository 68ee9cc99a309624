package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// A partition without free space behind it can still grow if an unused volume can move: the volume
// itself, to a place with enough room, or the volume right behind it. The move is the one of a volume
// that leaves its drive (copyaway.go); it may stay on one drive.

// roomPlan names the volume that moves so that a partition can grow.
type roomPlan struct {
	moves *drivebay.VolumeRecord
	to    site
	size  uint64 // of the moving volume at its new place
}

// planRoom chooses the volume that moves so that v can have a size. The error says why none can move;
// it wraps ErrPending where the cause is temporary.
func (s placementView) planRoom(v *drivebay.Volume, size uint64) (roomPlan, error) {
	rec := s.volume(v.ID)
	if rec == nil || v.Location.Kind != drivebay.LocationPartition {
		return roomPlan{}, fmt.Errorf("it has all of drive %s", strings.Join(v.Location.Drives, ", "))
	}
	itself, alone := s.planMove(rec, size)
	if alone == nil {
		return itself, nil
	}
	behind, beside := s.planNeighbor(v, size)
	if beside == nil {
		return behind, nil
	}
	return roomPlan{}, fmt.Errorf("%w, and %w", alone, beside)
}

// planMove plans to move a volume to a place where it can have a size, preferably on its own drive.
func (s placementView) planMove(r *drivebay.VolumeRecord, size uint64) (roomPlan, error) {
	if err := s.mayMove(r); err != nil {
		return roomPlan{}, fmt.Errorf("volume %s %w", r.Volume.Name, err)
	}
	sites := slices.DeleteFunc(s.sites(classOf(&r.Volume)), func(at site) bool { return at.most < size })
	own := func(at site) int { return btoi(at.rooms[0].drive.ID == r.Volume.Location.Drives[0]) }
	slices.SortStableFunc(sites, func(a, b site) int { return cmp.Compare(own(b), own(a)) })
	if len(sites) == 0 {
		return roomPlan{}, fmt.Errorf("no drive that volume %s may move to has %s free in one piece", r.Volume.Name, sizeText(size))
	}
	return roomPlan{r, sites[0], size}, nil
}

// planNeighbor plans to move the volume right behind v.
func (s placementView) planNeighbor(v *drivebay.Volume, size uint64) (roomPlan, error) {
	drive := v.Location.Drives[0]
	d, known := driveOf(s.drives, drive)
	parts := s.index.parts[drive]
	p, there := instanced(parts, partitionName(v.ID), v.Location.Partition)
	if !known || !there {
		return roomPlan{}, fmt.Errorf("its partition is not listed: %w", drivebay.ErrPending)
	}
	i := slices.IndexFunc(parts, func(q part) bool { return q.start > p.start })
	if i < 0 {
		return roomPlan{}, errors.New("its drive ends behind it")
	}
	next := parts[i]
	r := s.volume(idOfPartition(next.title))
	if r == nil || !sameGUID(next.guid, r.Volume.Location.Partition) {
		return s.behindNoVolume(next)
	}
	others := slices.Delete(slices.Clone(parts), i, i+1)
	if have := s.partitionGrowsTo(v, d, others); have < size {
		return roomPlan{}, fmt.Errorf("it could have %s without volume %s behind it", sizeText(have), r.Volume.Name)
	}
	s.records = append(slices.Clone(s.records), &drivebay.VolumeRecord{Volume: r.Volume, Work: &drivebay.Work{Op: drivebay.WorkMove,
		Move: &drivebay.Move{From: r.Volume.Location, Room: &drivebay.Room{Volume: v.ID, Size: size}}}})
	plan, err := s.planMove(r, (next.size+mib-1)/mib*mib-overhead(r.Volume.LUKSUUID))
	if err != nil {
		return plan, fmt.Errorf("behind it %w", err)
	}
	return plan, nil
}

// behindNoVolume returns the error for a partition behind a volume that is no volume itself. A move
// leaves such a partition for a while.
func (s placementView) behindNoVolume(p part) (roomPlan, error) {
	if slices.ContainsFunc(s.records, func(r *drivebay.VolumeRecord) bool {
		m := moveOf(r)
		return m != nil && p.guid != "" && (sameGUID(m.From.Partition, p.guid) || sameGUID(m.To.Partition, p.guid))
	}) {
		return roomPlan{}, fmt.Errorf("a volume moves behind it: %w", drivebay.ErrPending)
	}
	return roomPlan{}, fmt.Errorf("partition %d (%s) lies behind it", p.number, p.title)
}

// mayMove returns why a volume cannot move to make room.
func (s placementView) mayMove(r *drivebay.VolumeRecord) error {
	v := &r.Volume
	failed := v.CSIStatus == drivebay.CSIFailed
	switch at := usedAt(v); {
	case at != "":
		return fmt.Errorf("is in use (%s)", at)
	case v.Location.Kind != drivebay.LocationPartition:
		return errors.New("is no partition that can move")
	case failed && (r.Work != nil || v.Undecided() != ""), r.Work == nil && !copyable(v):
		return fmt.Errorf("is %v", v.CSIStatus)
	case r.Work != nil:
		return fmt.Errorf("is at work (%s): %w", r.Work.Op, drivebay.ErrPending)
	case v.Usage != drivebay.VolumeInUse:
		return errors.New("is to leave its drive")
	case s.unmoved[v.ID] != "":
		return fmt.Errorf("could not be moved: %s", s.unmoved[v.ID])
	}
	return nil
}

func (s placementView) volume(id string) *drivebay.VolumeRecord {
	return recordIn(s.volumes, id)
}

// recordIn finds a record in a list by id.
func recordIn(all []*drivebay.VolumeRecord, id string) *drivebay.VolumeRecord {
	i, ok := slices.BinarySearchFunc(all, id, func(r *drivebay.VolumeRecord, id string) int { return strings.Compare(r.Volume.ID, id) })
	if !ok {
		return nil
	}
	return all[i]
}

// growsItself reports whether the volume of a record moves to a place where it has room to grow.
func growsItself(r *drivebay.VolumeRecord) bool {
	m := moveOf(r)
	return m != nil && m.Room != nil && m.Room.Volume == r.Volume.ID
}

// growingBeside returns the volume on the same drive for which the volume of r makes room, and the
// size it is to have, or nil.
func growingBeside(all []*drivebay.VolumeRecord, r *drivebay.VolumeRecord) (*drivebay.VolumeRecord, *drivebay.Room) {
	m := moveOf(r)
	if m == nil || m.Room == nil || m.Room.Volume == r.Volume.ID {
		return nil, nil
	}
	g := recordIn(all, m.Room.Volume)
	if g == nil || g.Volume.Location.Kind != drivebay.LocationPartition || !slices.Equal(g.Volume.Location.Drives, m.From.Drives) {
		return nil, nil
	}
	return g, m.Room
}

// keptFree returns the ranges of a drive that are kept free for volumes that grow after others have
// moved.
func (s placementView) keptFree(drive string, parts []part) (out []span) {
	for _, r := range s.records {
		g, room := growingBeside(s.volumes, r)
		if room == nil || g.Volume.ID == s.grows || g.Volume.Location.Drives[0] != drive {
			continue
		}
		if p, ok := instanced(parts, partitionName(g.Volume.ID), g.Volume.Location.Partition); ok {
			out = append(out, span{start: p.start, end: p.start + room.Size + overhead(g.Volume.LUKSUUID)})
		}
	}
	return out
}

// makeRoom starts the move of v or of the volume behind it so that v can have a size. It returns
// ErrPending once the move is recorded, or why v cannot have the size. Engine.placed is held.
func (e *Engine) makeRoom(s placementView, v *drivebay.Volume, have, size uint64) error {
	if r := e.makesRoomFor(v.ID); r != nil {
		return fmt.Errorf("%w: volume %s behind it moves to make room; retry later", drivebay.ErrPending, r.Volume.Name)
	}
	plan, err := s.planRoom(v, size)
	switch {
	case errors.Is(err, drivebay.ErrPending):
		return err
	case err != nil:
		return fmt.Errorf("%w: it can have %s where it is, %s are requested: %w", drivebay.ErrRange, sizeText(have), sizeText(size), err)
	}
	id, name := plan.moves.Volume.ID, plan.moves.Volume.Name
	text := movesItself(size)
	if id != v.ID {
		end, err := e.begin(id)
		if err != nil {
			return err
		}
		defer end()
		text = fmt.Sprintf("volume %s behind it moves to make room; retry later", name)
	}
	if err := e.mayChange(id); err != nil {
		return err
	}
	to, _, err := plan.to.locate(classOf(&plan.moves.Volume), id, e.newInstance())
	if err != nil {
		return err
	}
	_, err = e.change(id, func(r *drivebay.VolumeRecord) error {
		if err := s.mayMove(r); err != nil { // it has changed since
			return fmt.Errorf("%w: volume %s %w", drivebay.ErrPending, name, err)
		}
		r.Work = &drivebay.Work{Op: drivebay.WorkMove, Since: e.machine.Now(), Size: plan.size,
			Move: &drivebay.Move{From: r.Volume.Location, To: to, Name: newName(id), Room: &drivebay.Room{Volume: v.ID, Size: size}}}
		return nil
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", drivebay.ErrPending, text)
}

func movesItself(size uint64) string {
	return fmt.Sprintf("it moves to where it has room for %s; retry later", sizeText(size))
}

// makesRoomFor returns the record of a volume that moves to make room for another one.
func (e *Engine) makesRoomFor(id string) *drivebay.VolumeRecord {
	for _, r := range e.all() {
		if m := moveOf(r); m != nil && m.Room != nil && m.Room.Volume == id && r.Volume.ID != id {
			return r
		}
	}
	return nil
}

// growsByMove reports whether a volume is moving to a place where it can have a size.
func growsByMove(r *drivebay.VolumeRecord, size uint64) bool {
	return growsItself(r) && !moved(r) && !takenBack(r) && r.Work.Size >= size
}

// roomWanted reports whether a move that makes room is still needed: the volume is not in use, and
// the growth is still due.
func (e *Engine) roomWanted(r *drivebay.VolumeRecord) bool {
	room := moveOf(r).Room
	if room == nil || usedAt(&r.Volume) != "" {
		return false
	}
	if growsItself(r) {
		return true
	}
	g, _ := growingBeside(e.all(), r)
	return g != nil && g.Volume.Size < room.Size && g.Volume.CSIStatus != drivebay.CSIRemoving
}

// moveForRoom is moveAway for a volume that can also stay: it takes a failed attempt back.
func (e *Engine) moveForRoom(ctx context.Context, id string, m *copyMove) error {
	err := e.moveAway(ctx, id, m)
	passes := errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrPending) // for example after a start, until drives are read
	if err == nil || ctx.Err() != nil || errors.Is(err, errStopped) || passes && e.moves.last(id).tries < roomTries {
		return err
	}
	return errors.Join(fmt.Errorf("%w: %w", errStays, err), e.takeBack(ctx, id))
}

// growNext records that a volume grows into the range that another one has left; finish grows it. It
// drops errors: the next request for the growth returns them.
func (e *Engine) growNext(left *drivebay.VolumeRecord) (finish func(context.Context) error) {
	nothing := func(context.Context) error { return nil }
	g, room := growingBeside(e.all(), left)
	if room == nil {
		return nothing
	}
	id := g.Volume.ID
	end, err := e.begin(id)
	if err != nil {
		return nothing
	}
	due := false
	if err = e.mayChange(id); err == nil {
		due, err = e.wantSize(id, drivebay.SizeRange{Required: room.Size})
	}
	if err != nil || !due {
		end()
		e.log.Info("volume not grown", "op", "grow", "volume", id, "err", err)
		return nothing
	}
	return func(ctx context.Context) error {
		defer end()
		if err := e.enlarge(ctx, id); ctx.Err() != nil || errors.Is(err, errStopped) {
			return err
		}
		return nil // the move itself did not fail
	}
}

// grown returns a volume after a move that gave it a size.
func grown(v drivebay.Volume, size uint64) (drivebay.Volume, error) {
	v, err := v.Moved(drivebay.CSIResize)
	if err != nil {
		return v, err
	}
	return grownDone(v, size)
}

// growthText describes the growth that a volume has moved for.
func (e *Engine) growthText(r *drivebay.VolumeRecord, room *drivebay.Room) string {
	if growsItself(r) {
		return fmt.Sprintf(": it had no room for %s where it was", sizeText(room.Size))
	}
	name := room.Volume
	if g := recordIn(e.all(), room.Volume); g != nil {
		name = g.Volume.Name
	}
	return fmt.Sprintf(": volume %q before it needs the room to grow to %s", name, sizeText(room.Size))
}

// sizeText formats a size for people. A size that is not a whole number of MiB has the exact number of
// bytes, too: such sizes come from callers and from drives, and may differ by a few bytes only.
func sizeText(n uint64) string {
	switch {
	case n%gib == 0:
		return fmt.Sprintf("%d GiB", n/gib)
	case n%mib == 0:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= gib:
		return fmt.Sprintf("%.1f GiB (%d bytes)", float64(n)/gib, n)
	case n >= mib:
		return fmt.Sprintf("%.1f MiB (%d bytes)", float64(n)/mib, n)
	}
	return fmt.Sprintf("%d bytes", n)
}
