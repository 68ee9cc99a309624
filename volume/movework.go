package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// moveAway copies a volume to another drive, which from then on it is on.
func (e *Engine) moveAway(ctx context.Context, id string, m *mover) error {
	rec, err := e.toMove(id)
	if err != nil {
		return err
	}
	if takenBack(&rec) { // what was copied is wiped, maybe
		return e.takeBack(ctx, id)
	}
	if err := e.fitTarget(&rec); err != nil {
		return errors.Join(err, e.takeBack(ctx, id))
	}
	e.stopScrub(ctx, id)
	plan := append(e.addEntry(entryOfMove(&rec), new(atomic.Bool)), e.copyStep(id, m))
	if err := e.run(ctx, id, plan); err != nil {
		return err
	}
	return e.settleMove(ctx, id)
}

// toMove is the record with everything chosen.
func (e *Engine) toMove(id string) (drivebay.VolumeRecord, error) {
	e.placed.Lock()
	defer e.placed.Unlock()
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
	from, err := e.device(below(v))
	if err != nil {
		return rec, err
	}
	class, size := classOf(v), (from.size+mib-1)/mib*mib-overhead(v.LUKSUUID)
	at, err := e.seen().choose(class, size, map[string]bool{v.Location.Drives[0]: true})
	if err != nil {
		return rec, fmt.Errorf("no other drive of its class has room for it: %w", err)
	}
	to, _, err := at.locate(class, id)
	if err != nil {
		return rec, err
	}
	return e.change(id, func(r *drivebay.VolumeRecord) error {
		r.Work = &drivebay.Work{Op: drivebay.WorkMove, Since: e.machine.Now(), Size: size,
			Move: &drivebay.Move{From: v.Location, To: to, Name: newName(id)}}
		return nil
	})
}

// classOf is what a volume was asked for as. Of one that was found again it is what
// can be seen of it.
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

// entryOfMove is the partition that a volume is copied to.
func entryOfMove(r *drivebay.VolumeRecord) entry {
	m := moveOf(r)
	return entry{drive: m.To.Drives[0], guid: m.To.Partition, name: m.Name, kind: finalType(&r.Volume), size: sizeOfWork(r), owner: r.Volume.ID}
}

// piecesOf are the partitions of a move, header and all.
func piecesOf(r *drivebay.VolumeRecord) (from, to *drivebay.Volume) {
	from, to = below(&r.Volume), below(&r.Volume)
	from.Location, to.Location = moveOf(r).From, moveOf(r).To
	return from, to
}

// fitTarget says why nothing more is to be copied to the drive that was chosen.
func (e *Engine) fitTarget(r *drivebay.VolumeRecord) error {
	d, err := e.drive(moveOf(r).To.Drives[0])
	switch {
	case err != nil:
		return err
	case d.Usage != drivebay.UsageInUse || d.Health == drivebay.HealthBad || d.Claim == nil:
		return fmt.Errorf("drive %s (%s): %w: it is %v and %v now: another one is chosen", d.ID, d.Name, drivebay.ErrRefused, d.Health, d.Usage)
	}
	return nil
}

// settleMove gives the new partition the volume's name, and takes it from the old one:
// that one is nobody's from then on, also for who knows the drives only.
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
			e.log.Warn("old copy not marked", "op", "settle", "volume", id, "err", err) // it is tried again with the wipe
		}
		return nil
	}
	return e.run(ctx, id, append(e.rename(&rec), e.made(id, settledStep, mark)))
}

// rename gives the new partition its name, in the table and then in the kernel: what
// udev knows of it is from when it appeared.
func (e *Engine) rename(rec *drivebay.VolumeRecord) []step {
	n := ofVolume(rec)
	is := func(ask func(gpt.Partition) bool) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			return e.askTable(ctx, n.drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
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
			return e.onTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, _ := t.Find(n.guid)
				return disk.RemovePartition(p.Number)
			})
		},
	}, {
		name: "name",
		done: is(named),
		do: func(ctx context.Context) error {
			return e.onTable(ctx, n.drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				for i := range t.Partitions {
					if p, _ := t.Find(n.guid); t.Partitions[i].Number == p.Number {
						t.Partitions[i].Name = n.name
					}
				}
				return t.Write(disk)
			})
		},
	}, e.shown(n)}
}

// dropped wipes a piece of a move as the volume's class says, and takes it away.
func (e *Engine) dropped(piece *drivebay.Volume, encrypted bool, n entry) []step {
	there := e.inTable(n, func(*gpt.Table) (bool, error) { return true, nil })
	shown := e.shown(n)
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

// maxCleanUps is how often a drive is asked to forget a volume before it is left as
// it is: it has to leave because it fails.
const maxCleanUps = 3

// cleanUp takes away what a volume that has moved has left behind. Now says that it
// is done, or let be.
func (e *Engine) cleanUp(ctx context.Context, id string, now bool) error {
	rec, err := e.record(id)
	if err != nil || !moved(&rec) {
		return err
	}
	old, from := rec, moveOf(&rec).From
	old.Volume.Location = from
	piece, _ := piecesOf(&rec)
	err = e.run(ctx, id, e.dropped(piece, rec.Volume.LUKSUUID != "", ofVolume(&old)))
	if err == nil {
		grow := e.growNext(&rec)
		return errors.Join(e.endMove(id, "", ""), grow(ctx))
	}
	if ctx.Err() != nil || errors.Is(err, errStopped) {
		return err
	}
	d, known := driveOf(e.drives.Snapshot(), from.Drives[0])
	gone := !known || d.Usage == drivebay.UsageRemoved || d.Usage == drivebay.UsageRemoving
	fails := known && d.Status == drivebay.StatusOnline && (d.Health == drivebay.HealthBad || e.moves.last(id).tries+1 >= maxCleanUps)
	if !now && !gone && !fails {
		return err
	}
	return e.endMove(id, from.Drives[0], fmt.Sprintf("what it has left on drive %s was not wiped, which has to be seen to: %v", from.Drives[0], err))
}

// takeBackStep is written down before anything of a copy is taken back: the copy is not
// gone on with then.
const takeBackStep = "take back"

func takenBack(r *drivebay.VolumeRecord) bool {
	return moveOf(r) != nil && contains(r.Work.Made, takeBackStep)
}

// takeBack ends a move that has not come to its end: what was copied is wiped, and
// the volume is where it was.
func (e *Engine) takeBack(ctx context.Context, id string) error {
	rec, err := e.record(id)
	if err != nil || moveOf(&rec) == nil || moved(&rec) {
		return err
	}
	if err := e.announce(id, takeBackStep); err != nil {
		return err
	}
	_, piece := piecesOf(&rec)
	err = e.run(ctx, id, e.dropped(piece, rec.Volume.LUKSUUID != "", entryOfMove(&rec)))
	if err == nil {
		return e.endMove(id, "", "")
	}
	drive := piece.Location.Drives[0]
	if _, here := e.drive(drive); here == nil || ctx.Err() != nil || errors.Is(err, errStopped) {
		return err
	}
	return e.endMove(id, drive, fmt.Sprintf("partition %s stays on drive %s, unfinished, and is nobody's: %v", moveOf(&rec).Name, drive, err))
}

// endMove forgets the move; what it has left on a drive is told.
func (e *Engine) endMove(id, drive, left string) error {
	_, err := e.change(id, func(r *drivebay.VolumeRecord) error {
		if moveOf(r) == nil {
			return nil
		}
		if left != "" { // told before it is forgotten
			e.drives.Note(drivebay.Event{At: e.machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive, Volume: id, Cause: left})
		}
		r.Work = nil
		return nil
	})
	return err
}

// unmove ends a move for who grows or removes the volume.
func (e *Engine) unmove(ctx context.Context, id string) error {
	rec, err := e.record(id)
	switch {
	case err != nil || moveOf(&rec) == nil:
		return err
	case !moved(&rec):
		return e.takeBack(ctx, id)
	case e.moves.of(id) != nil:
		return fmt.Errorf("volume %s: %w: what it has left on drive %s is being wiped", id, drivebay.ErrPending, moveOf(&rec).From.Drives[0])
	}
	return e.cleanUp(ctx, id, true)
}
