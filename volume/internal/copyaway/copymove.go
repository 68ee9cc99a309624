package copyaway

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
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
	"github.com/drivebay/drivebay/volume/internal/write"
)

// moveAway copies a volume to another drive, which the volume is on from then on.
func (e *Copier) moveAway(ctx context.Context, id string, m *moves.CopyMove) error {
	rec, err := e.planMove(id)
	if err != nil {
		return err
	}
	if inventory.TakenBack(&rec) { // what was copied may be wiped already
		return e.takeBack(ctx, id)
	}
	if err := e.verifyTarget(&rec); err != nil {
		return errors.Join(err, e.takeBack(ctx, id))
	}
	if rec, err = e.correctAwaitsKey(ctx, rec); err != nil {
		return err
	}
	e.Watch.StopScrub(ctx, id)
	if err := e.Steps.Run(ctx, id, e.Write.AddEntry(write.EntryOfMove(&rec), new(atomic.Bool))); err != nil {
		return err
	}
	return e.copyPiece(ctx, &rec.Volume, m)
}

// planMove returns the record with the target chosen.
func (e *Copier) planMove(id string) (drivebay.VolumeRecord, error) {
	e.Provision.Placing.Lock()
	defer e.Provision.Placing.Unlock()
	rec, err := e.Ledger.Record(id)
	switch {
	case err != nil || partitions.MoveOf(&rec) != nil:
		return rec, err
	case rec.Work != nil:
		return rec, fmt.Errorf("%w: %s comes first", drivebay.ErrBusy, rec.Work.Op)
	}
	v := &rec.Volume
	if err := e.Device.MayChange(id); err != nil {
		return rec, err
	}
	from, err := e.Device.Device(v)
	if err != nil {
		return rec, err
	}
	size := (from.Size+partitions.MiB-1)/partitions.MiB*partitions.MiB - place.OverheadOf(v)
	at, err := e.Inventory.PlacementView().ChooseToLeave(v, size)
	if err != nil {
		return rec, err
	}
	to, _, err := at.Locate(inventory.ClassOf(v), id, e.Instances.NewInstance())
	if err != nil {
		return rec, err
	}
	return e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		r.Work = &drivebay.Work{Op: drivebay.WorkMove, Since: e.Machine.Now(), Size: size,
			Move: &drivebay.Move{From: v.Location, To: to, Name: ledger.NewName(id)}}
		return nil
	})
}

// piecesOf returns the partitions of a move, header included.
func piecesOf(r *drivebay.VolumeRecord) (from, to *drivebay.Volume) {
	is := func(l drivebay.Location) *drivebay.Volume { v := r.Volume; v.Location = l; return &v }
	return is(partitions.MoveOf(r).From), is(partitions.MoveOf(r).To)
}

// verifyTarget refuses to copy more to the chosen drive if it is unfit now.
func (e *Copier) verifyTarget(r *drivebay.VolumeRecord) error {
	d, err := e.Partitions.Drive(partitions.MoveOf(r).To.Drives[0])
	switch {
	case err != nil:
		return err
	case d.NotWritten() != "":
		return fmt.Errorf("drive %s (%s): %w: %s: another one is chosen", d.ID, d.Name, drivebay.ErrRefused, d.NotWritten())
	case d.Health != drivebay.HealthGood && e.Moves.Moves.Last(r.Volume.ID).Tries >= moves.RoomTries:
		return fmt.Errorf("drive %s (%s): %w: it is %v, and copies to it fail: another one is chosen", d.ID, d.Name, drivebay.ErrRefused, d.Health)
	case isUnfit(d) || d.Claim == nil:
		return fmt.Errorf("drive %s (%s): %w: it is %v and %v now: another one is chosen", d.ID, d.Name, drivebay.ErrRefused, d.Health, d.Usage)
	case inventory.LargerBlocks(e.Drives.Snapshot(), &r.Volume, d):
		return fmt.Errorf("drive %s (%s): %w: its blocks of %d bytes are larger than those of the volume's drive: another one is chosen", d.ID, d.Name, drivebay.ErrRefused, d.LogicalBlock)
	}
	return nil
}

// correctAwaitsKey corrects a record that is older than the first stage of an encrypted volume. The type of its partition says
// that it has its passphrase and is never formatted again; the copy gets its type from the record.
func (e *Copier) correctAwaitsKey(ctx context.Context, rec drivebay.VolumeRecord) (drivebay.VolumeRecord, error) {
	if !rec.Volume.AwaitsKey {
		return rec, nil
	}
	n := write.OfVolume(&rec)
	finished, err := e.Write.InTable(n, func(t *gpt.Table) (bool, error) {
		p, _ := n.Find(t)
		return p.Type != ledger.TypeMaking, nil
	})(ctx)
	if err != nil || !finished {
		return rec, err
	}
	return e.Ledger.Change(rec.Volume.ID, func(r *drivebay.VolumeRecord) error {
		r.Volume.AwaitsKey = false
		return nil
	})
}

// settleMove gives the new partition the volume's name, and marks the old one as unfinished:
// from then on the drives alone show which one is the volume.
func (e *Copier) settleMove(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	old := rec
	old.Volume.Location = partitions.MoveOf(&rec).From
	mark := func(ctx context.Context) error {
		if err := e.Steps.Run(ctx, id, []steps.Step{e.Write.Retype("mark", write.OfVolume(&old).Left(), ledger.TypeMaking)}); err != nil {
			if ctx.Err() != nil || errors.Is(err, ledger.ErrStopped) {
				return err
			}
			e.Log.Warn("old copy not marked", "op", "settle", "volume", id, "err", err) // the wipe tries again
		}
		return nil
	}
	err = e.Steps.Run(ctx, id, append(e.rename(&rec), e.Steps.Made(id, settledStep, mark)))
	if err == nil {
		e.attachAgain(ctx, id)
	}
	return err
}

// rename plans to give the new partition its name, in the table and then in the kernel: udev
// knows the name from the moment when the partition appeared.
func (e *Copier) rename(rec *drivebay.VolumeRecord) []steps.Step {
	n := write.OfVolume(rec)
	is := func(ask func(gpt.Partition) bool) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			return e.Write.QueryTable(ctx, n.Drive, func(_ context.Context, _ host.Disk, t *gpt.Table) (bool, error) {
				p, there := t.Find(n.Guid)
				if !there {
					return false, fmt.Errorf("partition %s: %w", n.Guid, drivebay.ErrNotFound)
				}
				return ask(p), nil
			})
		}
	}
	named := func(p gpt.Partition) bool { return p.Name == n.Name }
	return []steps.Step{{
		Name: "kernel without " + partitions.MoveOf(rec).Name,
		Done: is(func(p gpt.Partition) bool {
			_, there := e.Write.KernelPart(n.Drive, p.Number)
			return !there || named(p)
		}),
		Do: func(ctx context.Context) error {
			return e.Write.WithTable(ctx, n.Drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				p, _ := t.Find(n.Guid)
				return disk.RemovePartition(p.Number)
			})
		},
	}, {
		Name: "name",
		Done: is(named),
		Do: func(ctx context.Context) error {
			return e.Write.WithTable(ctx, n.Drive, func(ctx context.Context, disk host.Disk, t *gpt.Table) error {
				for i := range t.Partitions {
					if p, _ := t.Find(n.Guid); t.Partitions[i].Number == p.Number {
						t.Partitions[i].Name = n.Name
					}
				}
				return t.Write(disk)
			})
		},
	}, e.Write.AddKernelPartition(n)}
}

// removePiece plans to wipe a partition of a move as its class requires, and to remove it.
func (e *Copier) removePiece(piece *drivebay.Volume, n write.Entry) []steps.Step {
	there := e.Write.InTable(n, func(*gpt.Table) (bool, error) { return true, nil })
	shown := e.Write.AddKernelPartition(n)
	bare := *piece
	bare.Replication = nil // its device is on the other partition
	plan := []steps.Step{e.Write.Retype("mark", n, ledger.TypeMaking), write.When(e.Steps.UnlessMade(piece.ID, partitions.WipeStep, there), shown)}
	plan = append(append(plan, e.Device.Stack(&bare).EraseCopy(there)...), e.Provision.Wiped(&bare, there))
	return append(plan, e.Write.DropEntry(n)...)
}

// cleanUp wipes and removes the old copy of a volume that has moved, while the new one is on
// its drive: else the old copy may be the only one. If its drive was taken out for good or
// fails, the old copy stays, and an event reports it; if its drive is offline, it stays in the
// record. With deleting, the volume is being deleted: then the old copy is also removed when
// the drive of the new one is lost for good.
func (e *Copier) cleanUp(ctx context.Context, id string, deleting bool) error {
	rec, err := e.Ledger.Record(id)
	if err != nil || !inventory.Moved(&rec) {
		return err
	}
	switch err := e.isThere(ctx, &rec.Volume); { // else the old copy may be the only one
	case err == nil && !settled(&rec): // its drive has returned since the volume was taken: a removal looks for the name of the volume
		return settling(id)
	case err != nil && !(deleting && mirror.LostForGood(e.Drives.Snapshot(), rec.Volume.Location)):
		return err
	}
	old, from := rec, partitions.MoveOf(&rec).From
	old.Volume.Location = from
	piece, _ := piecesOf(&rec)
	n := write.OfVolume(&old).Left()
	n.Name = cmp.Or(partitions.MoveOf(&rec).OldName, n.Name)
	err = e.Steps.Run(ctx, id, e.removePiece(piece, n))
	if err == nil {
		grow := e.Expand.GrowNext(&rec)
		return errors.Join(e.endMove(id, "", ""), grow(ctx))
	}
	if ctx.Err() != nil || errors.Is(err, ledger.ErrStopped) {
		return err
	}
	return e.leaveOldCopy(&rec, drivebay.LeftCopy{Location: from, Name: n.Name}, deleting, err)
}

// leaveOldCopy decides what becomes of an old copy that could not be wiped; why is the error.
func (e *Copier) leaveOldCopy(rec *drivebay.VolumeRecord, c drivebay.LeftCopy, deleting bool, why error) error {
	id, drive, s := rec.Volume.ID, c.Location.Drives[0], e.Drives.Snapshot()
	if isOffline(s, c.Location) && !slices.Contains(rec.Volume.Location.Drives, drive) {
		return e.keepLeftCopy(id, c, waitsForDrive)
	}
	d, known := steps.DriveOf(s, drive)
	gone := known && (d.Usage == drivebay.UsageRemoved || d.Usage == drivebay.UsageRemoving)
	fails := known && d.Status == drivebay.StatusOnline && cannotBeWiped(e.Moves.Moves.Last(id).Left+1, d, why)
	mustWipe := groups.RemainsWipe(&rec.Volume) != drivebay.WipeNone
	switch {
	case gone || fails && !mustWipe:
		return e.endMove(id, drive, fmt.Sprintf("its old copy on drive %s was not wiped: wipe the drive before you dispose of it: %v", drive, why))
	case !fails:
		return moves.NotRemoved(why)
	case deleting:
		return fmt.Errorf("volume %s: %w: its old copy on drive %s is not wiped: %w; run `drivebay release %s` and `drivebay force-remove %s` to leave it there", id, drivebay.ErrUnavailable, drive, why, drive, drive)
	}
	c.Unwiped = true
	return e.keepLeftCopy(id, c, "was not wiped: "+why.Error())
}

// cannotBeWiped reports whether no more attempts are made to wipe a copy on a drive that is online, after so many; why is the error of the last one.
func cannotBeWiped(tries int, d *drivebay.Drive, why error) bool {
	return (d.Health == drivebay.HealthBad || tries >= erase.MaxCleanUps) && !errors.Is(why, drivebay.ErrPending)
}

// takeBack ends an unfinished move: it wipes what was copied, and the volume stays where it
// was.
func (e *Copier) takeBack(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil || partitions.MoveOf(&rec) == nil || inventory.Moved(&rec) {
		return err
	}
	from, piece := piecesOf(&rec)
	if err := e.isThere(ctx, from); errors.Is(err, errLeft) { // only a volume that has moved leaves its old drive
		return fmt.Errorf("its record is older than its move: reconnect drive %s: %w", piece.Location.Drives[0], err)
	}
	if err := e.Erase.RecordStep(id, inventory.TakeBackStep); err != nil {
		return err
	}
	err = e.Steps.Run(ctx, id, e.removePiece(piece, write.EntryOfMove(&rec)))
	if err == nil {
		return e.endMove(id, "", "")
	}
	drive, c := piece.Location.Drives[0], drivebay.LeftCopy{Location: piece.Location, Name: partitions.MoveOf(&rec).Name}
	d, away := e.Partitions.Drive(drive)
	switch {
	case ctx.Err() != nil || errors.Is(err, ledger.ErrStopped):
		return err
	case away == nil && !cannotBeWiped(e.Moves.Moves.Last(id).Left+1, d, err):
		return moves.NotRemoved(err)
	case away == nil && groups.RemainsWipe(&rec.Volume) != drivebay.WipeNone: // the volume need not wait for this drive to move to another one
		c.Unwiped = true
		return e.keepLeftCopy(id, c, "was not wiped: "+err.Error())
	case isOffline(e.Drives.Snapshot(), piece.Location):
		return e.keepLeftCopy(id, c, waitsForDrive)
	}
	return e.endMove(id, drive, fmt.Sprintf("partition %s on drive %s is an unfinished copy that belongs to no volume: %v", partitions.MoveOf(&rec).Name, drive, err))
}

// endMove forgets the move, and sends an event for what it has left.
func (e *Copier) endMove(id, drive, left string) error {
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		if partitions.MoveOf(r) == nil {
			return nil
		}
		if left != "" { // sent before the move is forgotten
			e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive, Volume: id, Cause: left})
		}
		r.Work = nil
		return nil
	})
	return err
}

// errLeft says that a partition of a move is not where the move has it.
var errLeft = fmt.Errorf("%w: the partition table does not have the volume", drivebay.ErrUnavailable)

// isThere verifies that the partition table of its drive has a partition of a move, and not as an old copy.
func (e *Copier) isThere(ctx context.Context, v *drivebay.Volume) error {
	d, err := e.Partitions.Drive(v.Location.Drives[0])
	if err != nil {
		return err
	}
	table, err := e.Partitions.ReadTitles(ctx, d)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(table, func(p gpt.Partition) bool {
		return strings.EqualFold(p.GUID, v.Location.Partition) && !partitions.IsOldCopy(p)
	}) {
		return fmt.Errorf("volume %s: drive %s: %w", v.ID, d.ID, errLeft)
	}
	return nil
}

// EndMoveFirst ends a move before its volume is grown or removed.
func (e *Copier) EndMoveFirst(ctx context.Context, id string, deleting bool) (err error) {
	rec, err := e.Ledger.Record(id)
	switch {
	case err != nil || partitions.MoveOf(&rec) == nil:
		return err
	case !inventory.Moved(&rec):
		return e.takeBack(ctx, id)
	}
	m := &moves.CopyMove{Cancel: func() {}, Over: make(chan struct{}), Accept: make(chan struct{}, 1), Beside: true}
	if !e.Moves.Moves.Enter(id, m) {
		return fmt.Errorf("volume %s: %w: what it has left on drive %s is being wiped", id, drivebay.ErrPending, partitions.MoveOf(&rec).From.Drives[0])
	}
	defer func() {
		e.Moves.Moves.Leave(id, err, e.Machine.Now())
		close(m.Over)
	}()
	return e.cleanUp(ctx, id, deleting)
}
