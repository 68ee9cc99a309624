package instances

import (
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
)

// A snapshot is in the volume group of its source. Two snapshots with one id are therefore beside two
// volumes with one id, and the decision between the volumes decides between the snapshots.

// RefuseSecondSnapshot returns an error while the drives have another snapshot with the id of a recorded one
// that is not certainly older: what a copy of the recorded one would get is not known.
func (e *Finder) RefuseSecondSnapshot(s *drivebay.VolumeSnapshot) error {
	for _, o := range e.OthersOf(s.ID, s.Location) {
		if !isOlderInstance(o.Instance, InstanceOf(s.Location)) {
			return fmt.Errorf("snapshot %s: %w: %s has another snapshot of that name (%s), which may be newer than the one in volume group %s: `drivebay volume clear %s` chooses the latter with its volume, or take its drive out and use `drivebay volume forget %[6]s`",
				s.ID, drivebay.ErrRefused, o.Drive, o.Instance, s.Location.VG, s.Source)
		}
	}
	return nil
}

// SupersedeSnapshot is Supersede for a snapshot.
func (e *Finder) SupersedeSnapshot(s *drivebay.VolumeSnapshot) error {
	return e.markOtherSnapshots(s, func(o OnDrive) bool { return isOlderInstance(o.Instance, InstanceOf(s.Location)) })
}

// ChooseSnapshots marks the others of all snapshots of a volume as forgotten, once an operator has chosen
// the volume.
func (e *Finder) ChooseSnapshots(volume string) error {
	var errs []error
	for _, r := range e.Partitions.SnapshotRecords() {
		if r.Snapshot.Source == volume {
			errs = append(errs, e.markOtherSnapshots(&r.Snapshot, func(OnDrive) bool { return true }))
		}
	}
	return errors.Join(errs...)
}

func (e *Finder) markOtherSnapshots(s *drivebay.VolumeSnapshot, which func(OnDrive) bool) error {
	beside := &drivebay.Volume{ID: s.Source, Location: s.Location}
	return e.markOthers(e.OthersOf(s.ID, s.Location), which, beside, fmt.Sprintf("another snapshot %q", s.Name))
}
