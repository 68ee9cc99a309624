package copyaway

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// A move can end while one of its drives is offline: the volume was copied, and its old drive was
// pulled before the old copy was wiped, or the target was pulled and another one is chosen. The copy
// stays in the record of the volume, and is wiped when its drive returns. Until then the volume is not
// deleted, because a deletion promises that its data is wiped.

// waitsForDrive is the event text for a copy on a drive that is offline.
const waitsForDrive = "is offline; the copy is wiped when the drive returns"

// keepLeftCopy ends a move whose copy is on a drive that is offline or cannot be wiped.
func (e *Copier) keepLeftCopy(id string, c drivebay.LeftCopy, why string) error {
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		if partitions.MoveOf(r) == nil {
			return nil
		}
		r.Work, r.Left = nil, append(slices.Clone(r.Left), c)
		if !c.Unwiped || e.Moves.Moves.Unwiped(id, e.Machine.Now()) {
			e.noteLeft(id, c, why)
		}
		return nil
	})
	return err
}

func (e *Copier) noteLeft(id string, c drivebay.LeftCopy, why string) {
	drive := c.Location.Drives[0]
	e.Drives.Note(drivebay.Event{At: e.Machine.Now(), Kind: drivebay.EventVolumeLeft, Drive: drive, Volume: id,
		Cause: fmt.Sprintf("a copy of the volume is left in partition %s of drive %s, which %s", c.Name, drive, why)})
}

// isOffline reports whether the drive of a location is offline and may return.
func isOffline(s *drivebay.Snapshot, l drivebay.Location) bool {
	d, known := steps.DriveOf(s, l.Drives[0])
	return (!known || d.Status != drivebay.StatusOnline) && !mirror.LostForGood(s, l)
}

// resumeCopy removes the first reachable copy from a record and makes it the old copy of a settled
// move, which is wiped next. A copy on a drive that was taken out for good is only reported. The
// caller holds the volume.
func (e *Copier) resumeCopy(id string, deleting bool) (resumed bool, err error) {
	_, err = e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		s := e.Drives.Snapshot()
		i := reachableCopy(e.Moves, s, r, deleting)
		if resumed = i >= 0; !resumed {
			return nil
		}
		c := r.Left[i]
		r.Left = slices.Delete(slices.Clone(r.Left), i, i+1)
		if mirror.LostForGood(s, c.Location) {
			e.noteLeft(id, c, "was taken out for good")
			return nil
		}
		r.Work = &drivebay.Work{Op: drivebay.WorkMove, Since: e.Machine.Now(), Size: r.Volume.Size, Made: []string{settledStep},
			Move: &drivebay.Move{From: c.Location, To: r.Volume.Location, Name: ledger.PartitionName(id), OldName: c.Name}}
		return nil
	})
	return resumed, err
}

// reachableCopy returns the index of the first copy in a record that can be wiped now; -1 if none can.
func reachableCopy(t *moves.Tracker, s *drivebay.Snapshot, r *drivebay.VolumeRecord, deleting bool) int {
	return slices.IndexFunc(r.Left, func(c drivebay.LeftCopy) bool {
		return !isOffline(s, c.Location) && (!c.Unwiped || deleting || mirror.LostForGood(s, c.Location) || isWipedAgain(t, s, r.Volume.ID, c))
	})
}

// wipeAgain is the pause before a copy is wiped that could not be: each time the volume is at work for minutes.
const wipeAgain = time.Hour

// isWipedAgain reports whether a copy that could not be wiped is due again: after a pause, and when its drive is to leave. The drive must be
// sound: a volume does not wait for one that fails.
func isWipedAgain(t *moves.Tracker, s *drivebay.Snapshot, id string, c drivebay.LeftCopy) bool {
	d, known := steps.DriveOf(s, c.Location.Drives[0])
	if !known || d.Status != drivebay.StatusOnline || d.Health != drivebay.HealthGood || d.NotWritten() != "" {
		return false
	}
	last := t.Machine.Now().Add(-wipeAgain)
	switch {
	case d.Usage == drivebay.UsageReleasing && d.Leaving != nil && d.Leaving.Since.After(last):
		last = d.Leaving.Since
	case d.Usage != drivebay.UsageReleasing && d.Usage != drivebay.UsageInUse:
		return false
	}
	return !t.Moves.WasUnwiped(id, last)
}

// WipeCopies wipes every copy that is in the record of a volume before the volume is deleted. Growth
// that failed is given up for it.
func (e *Copier) WipeCopies(ctx context.Context, id string) error {
	for {
		r, err := e.Ledger.Record(id)
		if err != nil || len(r.Left) == 0 {
			return err
		}
		resumed, err := e.resumeCopy(id, true)
		switch {
		case err != nil:
			return err
		case !resumed: // no copy's drive is online
			drive := r.Left[0].Location.Drives[0]
			return fmt.Errorf("volume %s: %w: drive %s is offline and has a copy of it that has to be wiped: reconnect it, or run `drivebay release %s` and `drivebay force-remove %s`", id, drivebay.ErrUnavailable, drive, drive, drive)
		}
		if err := e.EndMoveFirst(ctx, id, true); err != nil {
			return err
		}
	}
}
