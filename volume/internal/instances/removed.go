package instances

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
)

// removedSince is why a volume is not used whose record is older than its removal.
const removedSince = "its removal had begun when the record store was replaced by an older one: its data may be wiped in part; create it again, or delete it"

// RemovedSince corrects a record that is older than the removal of its volume, which was cut short: the piece on the drive says so. The volume
// is then one that was found half removed: it is not used and not completed. The caller holds the volume.
func (e *Finder) RemovedSince(ctx context.Context, id string) error {
	if is, err := e.MarkedRemoved(ctx, id); err != nil || !is {
		return err
	}
	r, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		work := drivebay.Work{Op: drivebay.WorkCreate, Since: e.Machine.Now(), Size: r.Volume.Size, Made: []string{partitions.FoundHalf}}
		r.Work, r.Volume.CSIStatus, r.Volume.Failure, r.Volume.AwaitsKey, r.Volume.Replication = &work, drivebay.CSIUnknown, nil, false, nil
		if r.Volume, err = r.Volume.Moved(drivebay.CSICreate); err == nil {
			r.Volume, err = r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: removedSince, Since: e.Machine.Now(), Retry: drivebay.RetryOnCall})
		}
		return err
	})
	if err == nil {
		e.Ledger.Note(drivebay.EventVolumeFailed, &r.Volume, removedSince)
		e.NoteNewer(&r.Volume, "its drive has a volume whose removal has begun, and the record store does not know of that")
	}
	return err
}

// MarkedRemoved reports whether the piece of a volume on the drive says that its removal has begun, and its record does not. A volume that awaits
// its passphrase looks like that in every listing.
func (e *Finder) MarkedRemoved(ctx context.Context, id string) (bool, error) {
	r, err := e.Ledger.Record(id)
	if err != nil || !e.seemsRemoved(&r) {
		return false, nil // the caller asks for the record itself
	}
	half, removing, err := e.marksOf(ctx, &r.Volume)
	return err == nil && (removing || half && !unfinished(&r)), err
}

// NotRemoved refuses to use such a volume.
func (e *Finder) NotRemoved(ctx context.Context, id string) error {
	if err := e.RemovedSince(ctx, id); err != nil {
		return err
	}
	r, err := e.Ledger.Record(id)
	if err == nil && partitions.IsFoundHalf(&r) {
		err = fmt.Errorf("%w: %s", drivebay.ErrRefused, removedSince)
	}
	return err
}

// seemsRemoved reports whether the drives, as last listed, have the piece of a volume as unfinished, and neither the work in the record nor
// another piece explains that for certain.
func (e *Finder) seemsRemoved(r *drivebay.VolumeRecord) bool {
	v := &r.Volume
	if w := r.Work; partitions.IsFoundHalf(r) || w != nil && (w.Op == drivebay.WorkRemove || w.Op == drivebay.WorkMove) || v.Rest() != drivebay.CSICreated {
		return false
	}
	return slices.ContainsFunc(e.InstancesOf(v.ID), func(o OnDrive) bool { return o.Half && o.Is(v.Location) }) && len(e.OthersOf(v.ID, LocationsOf(r)...)) == 0
}

// unfinished reports whether the record itself says that the volume is not finished.
func unfinished(r *drivebay.VolumeRecord) bool {
	return r.Volume.AwaitsKey || r.Work != nil && r.Work.Op == drivebay.WorkCreate
}

// marksOf reads from the drives whether the piece of a volume is unfinished, and whether its removal has begun. The listing may be older than
// the end of the work in the record.
func (e *Finder) marksOf(ctx context.Context, v *drivebay.Volume) (half, removing bool, err error) {
	if v.Location.OnLVM() {
		e.Groups.Reports.Delete(v.Location.VG) // a volume that is taken for half removed may be wiped: read it now
		r, err := e.Groups.ReportOf(ctx, v.Location)
		if err != nil {
			return false, false, err
		}
		lv := partitions.LVOf(r, v.Location)
		return lv != nil && slices.Contains(lv.Tags, groups.StateTag()), lv != nil && slices.Contains(lv.Tags, groups.RemovingTag()), nil
	}
	d, err := e.Partitions.Drive(v.Location.Drives[0])
	if err != nil {
		return false, false, err
	}
	table, err := e.Partitions.ReadTitles(ctx, d)
	for _, p := range table {
		if strings.EqualFold(p.GUID, v.Location.Partition) {
			half, removing = p.Type == ledger.TypeMaking, p.Type == ledger.TypeMaking && p.TypeAttributes&partitions.AttributeRemoving != 0
		}
	}
	return half, removing, err
}
