package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// moveAway copies a volume to another drive, which the volume is on from then on.
func (e *Engine) moveAway(ctx context.Context, id string, m *copyMove) error {
	rec, err := e.planMove(id)
	if err != nil {
		return err
	}
	if takenBack(&rec) { // what was copied may be wiped already
		return e.takeBack(ctx, id)
	}
	if err := e.verifyTarget(&rec); err != nil {
		return errors.Join(err, e.takeBack(ctx, id))
	}
	e.stopScrub(ctx, id)
	plan := append(e.addEntry(entryOfMove(&rec), new(atomic.Bool)), e.copyStep(id, m))
	if err := e.run(ctx, id, plan); err != nil {
		return err
	}
	return e.settleMove(ctx, id)
}

// planMove returns the record with the target chosen.
func (e *Engine) planMove(id string) (drivebay.VolumeRecord, error) {
	e.placing.Lock()
	defer e.placing.Unlock()
	rec, err := e.record(id)
	switch {
	case err != nil || moveOf(&rec) != nil:
		return rec, err
	case rec.Work != nil:
		return rec, fmt.Errorf("%w: %s comes first", drivebay.ErrBusy, rec.Work.Op)
	}
	v := &rec.Volume
	if err := e.mayChange(id); err != nil {
		return rec, err
	}
	from, err := e.device(backingPiece(v))
	if err != nil {
		return rec, err
	}
	class, size := classOf(v), (from.size+mib-1)/mib*mib-overhead(v.LUKSUUID)
	at, err := e.placementView().choose(class, size, map[string]bool{v.Location.Drives[0]: true})
	if err != nil {
		return rec, fmt.Errorf("no other drive of its class has room for it: %w", err)
	}
	to, _, err := at.locate(class, id, e.newInstance())
	if err != nil {
		return rec, err
	}
	return e.change(id, func(r *drivebay.VolumeRecord) error {
		r.Work = &drivebay.Work{Op: drivebay.WorkMove, Since: e.machine.Now(), Size: size,
			Move: &drivebay.Move{From: v.Location, To: to, Name: newName(id)}}
		return nil
	})
}

// classOf returns the class of a volume. For a volume that was found again, it is what can be
// seen of it.
func classOf(v *drivebay.Volume) drivebay.Class {
	c, err := drivebay.ParseClass(v.Parameters)
	if err != nil {
		c, _ = drivebay.ParseClass(nil)
	}
	c.FSType, c.Encryption, c.Backing = cmp.Or(v.FSType, c.FSType), "", drivebay.BackingPartition
	if v.LUKSUUID != "" {
		c.Encryption = drivebay.EncryptionLUKS2
	}
	if v.Location.Kind == drivebay.LocationDrive {
		c.Backing = drivebay.BackingDrive
	}
	return c
}

// entryOfMove returns the partition that a volume is copied to.
func entryOfMove(r *drivebay.VolumeRecord) entry {
	m := moveOf(r)
	return entry{drive: m.To.Drives[0], guid: m.To.Partition, name: m.Name, kind: finalType(&r.Volume), size: sizeOfWork(r), owner: r.Volume.ID, attributes: attributesOf(&r.Volume)}
}

// piecesOf returns the partitions of a move, header included.
func piecesOf(r *drivebay.VolumeRecord) (from, to *drivebay.Volume) {
	from, to = backingPiece(&r.Volume), backingPiece(&r.Volume)
	from.Location, to.Location = moveOf(r).From, moveOf(r).To
	return from, to
}

// verifyTarget refuses to copy more to the chosen drive if it is unfit now.
func (e *Engine) verifyTarget(r *drivebay.VolumeRecord) error {
	d, err := e.drive(moveOf(r).To.Drives[0])
	switch {
	case err != nil:
		return err
	case d.Usage != drivebay.UsageInUse || d.Health == drivebay.HealthBad || d.Claim == nil:
		return fmt.Errorf("drive %s (%s): %w: it is %v and %v now: another one is chosen", d.ID, d.Name, drivebay.ErrRefused, d.Health, d.Usage)
	}
	return nil
}

// settleMove gives the new partition the volume's name, and marks the old one as unfinished:
// from then on the drives alone show which one is the volume.
func (e *Engine) settleMove(ctx context.Context, id string) error {
	rec, err := e.record(id)
	if err != nil {
		return err
	}
	old := rec
	old.Volume.Location = moveOf(&rec).From
	mark := func(ctx context.Context) error {
		if err := e.run(ctx, id, []step{e.retype("mark", ofVolume(&old), typeMaking)}); err != nil {
			if ctx.Err() != nil || errors.Is(err, errStopped) {
				return err
			}
			e.log.Warn("old copy not marked", "op", "settle", "volume", id, "err", err) // the wipe tries again
		}
		return nil
	}
	return e.run(ctx, id, append(e.rename(&rec), e.made(id, settledStep, mark)))
}

// rename plans to give the new partition its name, in the table and then in the kernel: udev
// knows the name from the moment when the partition appeared.
func (e *Engine) rename(rec *drivebay.VolumeRecord) []step {
	n := ofVolume(rec)
	is := func(ask func(gpt.Partition) bool) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			return e.queryTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
				p, there := t.Find(n.guid)
				if !there {
					return false, fmt.Errorf("partition %s: %w", n.guid, drivebay.ErrNotFound)
				}
				return ask(p), nil
			})
		}
	}
	named := func(p gpt.Partition) bool { return p.Name == n.name }
	return []step{{
		name: "kernel without " + moveOf(rec).Name,
		done: is(func(p gpt.Partition) bool {
			_, there := e.kernelPart(n.drive, p.Number)
			return !there || named(p)
		}),
		do: func(ctx context.Context) error {
			return e.withTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, _ := t.Find(n.guid)
				return disk.RemovePartition(p.Number)
			})
		},
	}, {
		name: "name",
		done: is(named),
		do: func(ctx context.Context) error {
			return e.withTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				for i := range t.Partitions {
					if p, _ := t.Find(n.guid); t.Partitions[i].Number == p.Number {
						t.Partitions[i].Name = n.name
					}
				}
				return t.Write(disk)
			})
		},
	}, e.addKernelPartition(n)}
}

// removePiece plans to wipe a partition of a move as its class requires, and to remove it.
func (e *Engine) removePiece(piece *drivebay.Volume, encrypted bool, n entry) []step {
	there := e.inTable(n, func(*gpt.Table) (bool, error) { return true, nil })
	shown := e.addKernelPartition(n)
	plan := []step{e.retype("mark", n, typeMaking), when(e.unlessMade(piece.ID, "wipe", there), shown)}
	if encrypted {
		plan = append(plan, e.made(piece.ID, "erase", func(ctx context.Context) error {
			is, err := there(ctx)
			if err != nil || !is {
				return err
			}
			return e.onDevice(ctx, piece, true, func(ctx context.Context, disk host.Disk) error { return loseKeys(ctx, piece, disk) })
		}))
	}
	return append(append(plan, e.wiped(piece, there)), e.dropEntry(n)...)
}

// maxCleanUps is how many attempts to remove an old copy may fail before it stays: its drive
// has to leave because it fails.
const maxCleanUps = 3

// cleanUp wipes and removes the old copy of a volume that has moved, while the new one is on
// its drive: else the old copy may be the only one. If its drive was taken out for good or
// fails, the old copy stays, and an event reports it; if its drive is offline, it stays in the
// record. With deleting, the volume is being deleted: then the old copy is also removed when
// the drive of the new one is lost for good.
func (e *Engine) cleanUp(ctx context.Context, id string, deleting bool) error {
	rec, err := e.record(id)
	if err != nil || !moved(&rec) {
		return err
	}
	if err := e.newCopyIsThere(ctx, &rec.Volume); err != nil && !(deleting && lostForGood(e.drives.Snapshot(), rec.Volume.Location)) {
		return err
	}
	old, from := rec, moveOf(&rec).From
	old.Volume.Location = from
	piece, _ := piecesOf(&rec)
	n := ofVolume(&old)
	n.name = cmp.Or(moveOf(&rec).OldName, n.name)
	err = e.run(ctx, id, e.removePiece(piece, rec.Volume.LUKSUUID != "", n))
	if err == nil {
		grow := e.growNext(&rec)
		return errors.Join(e.endMove(id, "", ""), grow(ctx))
	}
	if ctx.Err() != nil || errors.Is(err, errStopped) {
		return err
	}
	return e.leaveOldCopy(&rec, drivebay.LeftCopy{Location: from, Name: n.name}, deleting, err)
}

// leaveOldCopy decides what becomes of an old copy that could not be wiped; why is the error.
func (e *Engine) leaveOldCopy(rec *drivebay.VolumeRecord, c drivebay.LeftCopy, deleting bool, why error) error {
	id, drive, s := rec.Volume.ID, c.Location.Drives[0], e.drives.Snapshot()
	if isOffline(s, c.Location) && !contains(rec.Volume.Location.Drives, drive) {
		return e.keepLeftCopy(id, c, waitsForDrive)
	}
	d, known := driveOf(s, drive)
	gone := !known || d.Usage == drivebay.UsageRemoved || d.Usage == drivebay.UsageRemoving
	fails := known && d.Status == drivebay.StatusOnline && (d.Health == drivebay.HealthBad || e.moves.last(id).tries+1 >= maxCleanUps) &&
		!errors.Is(why, drivebay.ErrPending)
	mustWipe := wipeOf(&rec.Volume) != drivebay.WipeNone || rec.Volume.LUKSUUID != ""
	switch {
	case gone || fails && !mustWipe:
		return e.endMove(id, drive, fmt.Sprintf("its old copy on drive %s was not wiped: wipe the drive before you dispose of it: %v", drive, why))
	case !fails:
		return why
	case deleting:
		return fmt.Errorf("volume %s: %w: its old copy on drive %s is not wiped: %w; run `drivebay release %s` and `drivebay force-remove %s` to leave it there", id, drivebay.ErrUnavailable, drive, why, drive, drive)
	}
	c.Unwiped = true
	return e.keepLeftCopy(id, c, "was not wiped: "+why.Error())
}

// takeBackStep is recorded before anything of a copy is removed: the copy does not continue
// then.
const takeBackStep = "take back"

func takenBack(r *drivebay.VolumeRecord) bool {
	return moveOf(r) != nil && contains(r.Work.Made, takeBackStep)
}

// takeBack ends an unfinished move: it wipes what was copied, and the volume stays where it
// was.
func (e *Engine) takeBack(ctx context.Context, id string) error {
	rec, err := e.record(id)
	if err != nil || moveOf(&rec) == nil || moved(&rec) {
		return err
	}
	if err := e.recordStep(id, takeBackStep); err != nil {
		return err
	}
	_, piece := piecesOf(&rec)
	err = e.run(ctx, id, e.removePiece(piece, rec.Volume.LUKSUUID != "", entryOfMove(&rec)))
	if err == nil {
		return e.endMove(id, "", "")
	}
	drive := piece.Location.Drives[0]
	if _, here := e.drive(drive); here == nil || ctx.Err() != nil || errors.Is(err, errStopped) {
		return err
	}
	if isOffline(e.drives.Snapshot(), piece.Location) {
		return e.keepLeftCopy(id, drivebay.LeftCopy{Location: piece.Location, Name: moveOf(&rec).Name}, waitsForDrive)
	}
	return e.endMove(id, drive, fmt.Sprintf("partition %s on drive %s is an unfinished copy that belongs to no volume: %v", moveOf(&rec).Name, drive, err))
}

// endMove forgets the move, and sends an event for what it has left.
func (e *Engine) endMove(id, drive, left string) error {
	_, err := e.change(id, func(r *drivebay.VolumeRecord) error {
		if moveOf(r) == nil {
			return nil
		}
		if left != "" { // sent before the move is forgotten
			e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive, Volume: id, Cause: left})
		}
		r.Work = nil
		return nil
	})
	return err
}

// newCopyIsThere verifies that the partition table of the new drive has the volume.
func (e *Engine) newCopyIsThere(ctx context.Context, v *drivebay.Volume) error {
	d, err := e.drive(v.Location.Drives[0])
	if err != nil {
		return err
	}
	table, err := e.readTitles(ctx, d)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(table, func(p gpt.Partition) bool { return strings.EqualFold(p.GUID, v.Location.Partition) }) {
		return fmt.Errorf("volume %s: its old copy is not wiped: %w: the new one is not on drive %s", v.ID, drivebay.ErrUnavailable, d.ID)
	}
	return nil
}

// endMoveFirst ends a move before its volume is grown or removed.
func (e *Engine) endMoveFirst(ctx context.Context, id string, deleting bool) (err error) {
	rec, err := e.record(id)
	switch {
	case err != nil || moveOf(&rec) == nil:
		return err
	case !moved(&rec):
		return e.takeBack(ctx, id)
	}
	m := &copyMove{cancel: func() {}, over: make(chan struct{}), accept: make(chan struct{}, 1), beside: true}
	if !e.moves.enter(id, m) {
		return fmt.Errorf("volume %s: %w: what it has left on drive %s is being wiped", id, drivebay.ErrPending, moveOf(&rec).From.Drives[0])
	}
	defer func() {
		e.moves.leave(id, err, e.machine.Now())
		close(m.over)
	}()
	return e.cleanUp(ctx, id, deleting)
}
