package provision

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
)

// ForgetDrive forgets a drive that is OFFLINE and that no record names. No record is written
// meanwhile.
func (e *Provisioner) ForgetDrive(ctx context.Context, id, why string) error {
	return e.Ledger.WithoutChanges(func() error {
		if owner, forget := neededBy(id, e.Ledger.All(), e.Partitions.SnapshotRecords()); owner != "" {
			return fmt.Errorf("drive %s: %w: the record of %s names it: give that up first with `%s`", id, drivebay.ErrRefused, owner, forget)
		}
		return e.Drives.Operate(ctx, id, drivebay.LeaveForget, why)
	})
}

// NeedsDrive returns why the record of a missing drive has to stay, "" if no volume or
// snapshot needs it.
func (e *Provisioner) NeedsDrive(drive string) string {
	if e.Ctx.Err() != nil { // the next engine decides by its own records
		return "the volumes are not known"
	}
	owner, _ := neededBy(drive, e.Ledger.All(), e.Partitions.SnapshotRecords())
	return owner
}

// neededBy finds a record that names a drive: of a volume or snapshot, or of work on one. It
// returns the owner and the command that gives it up.
func neededBy(drive string, volumes []*drivebay.VolumeRecord, snapshots []*drivebay.SnapshotRecord) (owner, forget string) {
	names := func(l drivebay.Location, w *drivebay.Work) bool {
		if slices.Contains(l.Drives, drive) {
			return true
		}
		if w == nil {
			return false
		}
		_, pv := w.PVs[drive]
		return pv || w.Move != nil && (slices.Contains(w.Move.From.Drives, drive) || slices.Contains(w.Move.To.Drives, drive))
	}
	for _, r := range volumes {
		if names(r.Volume.Location, r.Work) {
			return "volume " + r.Volume.ID, "drivebay volume forget " + r.Volume.ID
		}
		if slices.ContainsFunc(r.Left, func(c drivebay.LeftCopy) bool { return slices.Contains(c.Location.Drives, drive) }) {
			return "volume " + r.Volume.ID + ", of which it has a copy that has to be wiped,", fmt.Sprintf("drivebay release %s` and `drivebay force-remove %s", drive, drive)
		}
	}
	for _, r := range snapshots {
		if names(r.Snapshot.Location, r.Work) {
			return "snapshot " + r.Snapshot.ID, "drivebay volume snapshot-forget " + r.Snapshot.ID
		}
	}
	return "", ""
}
