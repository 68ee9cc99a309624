package provision

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/drivebay/drivebay"
)

// ForgetDrive forgets a drive that is OFFLINE and that no record names. No record is written
// meanwhile.
func (e *Provisioner) ForgetDrive(ctx context.Context, id, why string) error {
	return e.Ledger.WithoutChanges(func() error {
		if r, is := namedDrives(e.Ledger.All(), e.Partitions.SnapshotRecords())[id]; is {
			return fmt.Errorf("drive %s: %w: the record of %s names it: give that up first with `%s`", id, drivebay.ErrRefused, r.owner, r.forget)
		}
		return e.Drives.Operate(ctx, id, drivebay.LeaveForget, why)
	})
}

// NamedDrives returns the drives that records of volumes and snapshots name, each with an owner; nil when the engine
// has ended.
func (e *Provisioner) NamedDrives() map[string]string {
	if e.Ctx.Err() != nil { // the next engine decides by its own records
		return nil
	}
	out := map[string]string{}
	for drive, by := range namedDrives(e.Ledger.All(), e.Partitions.SnapshotRecords()) {
		out[drive] = by.owner
	}
	return out
}

// namedBy is a record that names a drive, and the command that gives it up.
type namedBy struct{ owner, forget string }

// namedDrives returns the drives that records name: of volumes and snapshots, and of work on them.
func namedDrives(volumes []*drivebay.VolumeRecord, snapshots []*drivebay.SnapshotRecord) map[string]namedBy {
	out := map[string]namedBy{}
	add := func(by namedBy, l drivebay.Location, w *drivebay.Work) {
		drives := slices.Clone(l.Drives)
		if w != nil {
			drives = slices.AppendSeq(drives, maps.Keys(w.PVs))
			if w.Move != nil {
				drives = append(drives, slices.Concat(w.Move.From.Drives, w.Move.To.Drives)...)
			}
		}
		for _, drive := range drives {
			if _, is := out[drive]; !is {
				out[drive] = by
			}
		}
	}
	for _, r := range volumes {
		add(namedBy{"volume " + r.Volume.ID, "drivebay volume forget " + r.Volume.ID}, r.Volume.Location, r.Work)
		for _, c := range r.Left {
			for _, drive := range c.Location.Drives {
				add(namedBy{"volume " + r.Volume.ID + ", of which it has a copy that has to be wiped,", fmt.Sprintf("drivebay release %s` and `drivebay force-remove %s", drive, drive)},
					drivebay.Location{Drives: []string{drive}}, nil)
			}
		}
	}
	for _, r := range snapshots {
		add(namedBy{"snapshot " + r.Snapshot.ID, "drivebay volume snapshot-forget " + r.Snapshot.ID}, r.Snapshot.Location, r.Work)
	}
	return out
}
