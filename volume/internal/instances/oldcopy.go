package instances

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// A move marks the partition that its volume has left, before the volume is used on the new drive. Where the record is lost, or is older than
// the move, the mark says that this is an old copy, and that the volume is on another drive, which may be away.

// oldCopiesOf returns the marked partitions of a volume, as last listed.
func (e *Finder) oldCopiesOf(id string) (out []drivebay.Location) {
	s, title := e.Drives.Snapshot(), ledger.PartitionName(id)
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for i := range s.Drives {
		d := &s.Drives[i]
		for _, p := range e.Partitions.Index.Parts[d.ID] {
			if p.Title == title && !LeftBehind(d, p) && e.Partitions.OldCopy(d.ID, p.GUID) {
				out = append(out, drivebay.Location{Kind: drivebay.LocationPartition, Drives: []string{d.ID}, Partition: p.GUID})
			}
		}
	}
	return out
}

// unrecordedCopies returns the old copies of a volume that its record does not name as such, and that were neither forgotten nor left by a
// volume that was deleted.
func (e *Finder) unrecordedCopies(id string) []drivebay.Location {
	var named []drivebay.Location
	e.Ledger.Mu.Lock()
	if r := e.Ledger.Records[id]; r != nil {
		named = LocationsOf(r)[1:] // an older record has the volume itself there
	}
	e.Ledger.Mu.Unlock()
	return slices.DeleteFunc(e.oldCopiesOf(id), func(l drivebay.Location) bool {
		f := drivebay.ForgottenVolume{ID: id, Instance: InstanceOf(l)}
		_, forgotten := e.ForgottenAs(f.Key())
		return forgotten || e.DeletedBefore(f) || slices.ContainsFunc(named, func(n drivebay.Location) bool { return strings.EqualFold(n.Partition, l.Partition) })
	})
}

// RefuseOldCopy returns an error while a drive has an old copy of a volume that is on no drive here: the volume is neither deleted nor made
// again while the drive that it was moved to is away.
func (e *Finder) RefuseOldCopy(id string) error {
	for _, l := range e.unrecordedCopies(id) {
		return fmt.Errorf("volume %s: %w: drive %s has only an old copy of it: the volume was moved to another drive, which is not here: reconnect that drive; if it is lost, stop drivebay, delete partition %s (`sfdisk --delete`), and start drivebay again",
			id, drivebay.ErrUnavailable, l.Drives[0], l.Partition)
	}
	return nil
}

// OldCopyOn returns the id of a volume of which a drive has an old copy in no record; "": it has none.
func (e *Finder) OldCopyOn(drive string) string {
	for _, p := range e.Partitions.PartsOn(drive) {
		id := ledger.IDOfPartition(p.Title)
		if id != "" && slices.ContainsFunc(e.unrecordedCopies(id), func(l drivebay.Location) bool { return l.Drives[0] == drive }) {
			return id
		}
	}
	return ""
}

// KeepOldCopies adds the old copies that a record does not name to the record of a volume that is on its drive: they are wiped like those of
// a move that the record knows. The caller holds the volume.
func (e *Finder) KeepOldCopies(id string) error {
	r, err := e.Ledger.Record(id)
	if err != nil || r.Work != nil && r.Work.Op != drivebay.WorkMove || !e.OwnIsThere(&r.Volume) {
		return nil
	}
	copies := slices.DeleteFunc(e.unrecordedCopies(id), func(l drivebay.Location) bool {
		return !isOlderInstance(InstanceOf(l), InstanceOf(r.Volume.Location))
	})
	if len(copies) == 0 {
		return nil
	}
	_, err = e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		r.Left = slices.Clone(r.Left)
		for _, l := range copies {
			r.Left = append(r.Left, drivebay.LeftCopy{Location: l, Name: ledger.PartitionName(id)})
		}
		return nil
	})
	return err
}
