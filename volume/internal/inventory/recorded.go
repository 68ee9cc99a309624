package inventory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// FirstTable and NoTable are recorded before the first table of a drive is written, or the last
// one erased. Only then can a half-written table be ours.
const (
	FirstTable = "first table of "
	NoTable    = "no table on "
)

// Untrusted reports whether one of the drives shrank, or has an unknown layout.
func (e *Inventory) Untrusted(drives []string) bool {
	return e.Steps.Shrank(drives) || slices.ContainsFunc(drives, func(id string) bool { return e.Partitions.LayoutOf(id) != "" })
}

// A record is a claim on bytes. It counts more than what a listing shows on a drive: an
// erased partition table, a label with a wrong bit and a volume group that LVM does not
// list all look like free space, and none of them is. All code that chooses space or
// takes "blank" for a permission asks recordedUses.

// recordedUse is something that must be on a drive because a record says so: the
// partition of a volume, or a logical volume in a volume group with a physical volume
// on the drive.
type recordedUse struct {
	owner  string   // "volume ID" or "snapshot ID"
	forget string   // the command that forgets it
	guid   string   // of its partition; empty for a logical volume
	names  []string // that the partition may have
	vg, lv string
	least  uint64 // bytes that it has at least
	moving bool   // the volume group is moving: which of its drives have a physical volume changes
}

// recordedUses returns what the records claim on each drive, by drive id. moved selects the volumes that may have moved since their record.
func recordedUses(volumes []*drivebay.VolumeRecord, snapshots []*drivebay.SnapshotRecord, moved func(*drivebay.VolumeRecord) bool) map[string][]recordedUse {
	out := map[string][]recordedUse{}
	add := func(l drivebay.Location, u recordedUse) {
		if u.guid = l.Partition; l.OnLVM() {
			u.vg, u.lv, u.moving = l.VG, l.LV, ledger.IsMoving(l)
		}
		for _, id := range l.Drives {
			out[id] = append(out[id], u)
		}
	}
	for _, r := range volumes {
		if v := &r.Volume; partitions.MustBeThere(r.Work) {
			u := recordedUse{owner: "volume " + v.ID, forget: "drivebay volume forget " + v.ID, names: []string{ledger.PartitionName(v.ID)}, least: partitions.LeastOf(v)}
			if m := partitions.MoveOf(r); m != nil && Moved(r) { // its partition has the copy's name for a while
				u.names = append(u.names, m.Name)
			}
			add(v.Location, u)
			if moved(r) {
				m := partitions.MoveOf(r)
				u.names = append(u.names, m.Name)
				add(m.To, u)
			}
		}
	}
	for _, r := range snapshots {
		if s := &r.Snapshot; r.Work == nil {
			add(s.Location, recordedUse{owner: "snapshot " + s.ID, forget: "drivebay volume snapshot-forget " + s.ID})
		}
	}
	return out
}

// RecordedOn returns what the records claim on one drive.
func (e *Inventory) RecordedOn(drive string) []recordedUse {
	var volumes []*drivebay.VolumeRecord // a listing calls this for each drive: other drives' records must cost nothing
	for _, r := range e.Ledger.All() {
		if m := partitions.MoveOf(r); slices.Contains(r.Volume.Location.Drives, drive) || m != nil && slices.Contains(m.To.Drives, drive) {
			volumes = append(volumes, r)
		}
	}
	snapshots := slices.DeleteFunc(e.Partitions.SnapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return !slices.Contains(r.Snapshot.Location.Drives, drive) })
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return recordedUses(volumes, snapshots, e.mayHaveMoved)[drive]
}

var ErrLacking = fmt.Errorf("%w", drivebay.ErrRefused)

// lacking returns the error for a place that does not show what a record says is there.
func (u recordedUse) lacking(where, what, restore string) error {
	return fmt.Errorf("%s: %w: %s of %s is missing, and its place is not written over: %s, or give it up with `%s`",
		where, ErrLacking, what, u.owner, restore, u.forget)
}

// smaller returns the error for a place that shows less than a record says is there: what is behind it is not free.
func (u recordedUse) smaller(where, what string, have, least uint64, restore string) error {
	return fmt.Errorf("%s: %w: %s of %s is smaller than before, and what lies behind it is not written over: %s: %s, or give it up with `%s`",
		where, ErrLacking, what, u.owner, partitions.SmallerText(have, least), restore, u.forget)
}

const (
	restoreTable = "restore the partition table, for example with `sgdisk --load-backup`"
	restoreLV    = "restore the metadata of LVM with `vgcfgrestore`"
	restoreLVM   = "see what became of the physical volume with `pvck`, and restore it with `pvcreate --restorefile` and `vgcfgrestore`"
)

// InTable refuses a partition table without the partition that a record needs, or with less of it. The
// table of a drive that a volume group moves to or from may have the physical volume or
// not: LVM reports what lies there, up to pvEnd.
func (u recordedUse) InTable(where string, t *gpt.Table, pvEnd uint64) error {
	what, least, is := "the partition", u.least, func(p gpt.Partition) bool { return strings.EqualFold(p.GUID, u.guid) }
	if u.vg != "" {
		what, least, is = "the physical volume", pvEnd, func(p gpt.Partition) bool {
			return p.Type == ledger.TypePV || strings.HasPrefix(p.Name, ledger.PVPrefix)
		}
	}
	switch i := slices.IndexFunc(t.Partitions, is); {
	case u.moving:
		return nil
	case i >= 0 && t.Partitions[i].Size < least:
		return u.smaller(where, what, t.Partitions[i].Size, least, restoreTable)
	case i < 0 && (u.vg != "" || !slices.ContainsFunc(t.Partitions, func(p gpt.Partition) bool { return slices.Contains(u.names, p.Name) })):
		return u.lacking(where, what, restoreTable)
	}
	return nil
}

// inIndex refuses a drive on which the kernel or LVM does not show what a record needs.
func (u recordedUse) inIndex(d *drivebay.Drive, parts []partitions.Part, x *partitions.LVMIndex) error {
	where := fmt.Sprintf("drive %s (%s)", d.ID, d.Name)
	held, has := partitions.PVOn(parts)
	switch {
	case u.vg == "":
		return u.inParts(where, parts)
	case u.moving:
		return nil
	case !has:
		return u.lacking(where, "the physical volume", restoreTable)
	case x == nil || x.PVs[d.ID] == "":
		return fmt.Errorf("%s: %w: LVM has not reported its physical volume yet", where, drivebay.ErrBusy)
	}
	switch pv, g := x.Report.On(x.PVs[d.ID]); {
	case g == nil || g.Name != u.vg:
		return u.lacking(where, "the volume group", restoreLVM)
	case held.Size < pv.DataEnd():
		return u.smaller(where, "the physical volume", held.Size, pv.DataEnd(), restoreTable)
	}
	return u.inReport(x.Report)
}

// inParts refuses partitions as the kernel has them without the one that a record needs, or with less of it.
func (u recordedUse) inParts(where string, parts []partitions.Part) error {
	named := false
	for _, p := range parts {
		if !slices.Contains(u.names, p.Title) {
			continue
		}
		if named = true; p.Size < u.least && partitions.SameGUID(p.GUID, u.guid) {
			return u.smaller(where, "the partition", p.Size, u.least, restoreTable)
		}
	}
	if !named {
		return u.lacking(where, "the partition", restoreTable)
	}
	return nil
}

// inReport refuses a volume group that LVM reports without the logical volume that a
// record needs, or with less of it: its extents look free and are not.
func (u recordedUse) inReport(r *lvm.Report) error {
	switch lv := r.LV(u.vg, u.lv); {
	case lv == nil:
		return u.lacking("volume group "+u.vg, "logical volume "+u.lv, restoreLVM)
	case lv.Size < u.least:
		return u.smaller("volume group "+u.vg, "logical volume "+u.lv, lv.Size, u.least, restoreLV)
	}
	return nil
}

// doubt returns the reason why a drive must not be used for anything new: it does not
// show what the records say.
func (s PlacementView) doubt(d *drivebay.Drive, parts []partitions.Part) error {
	if issue := s.layouts[d.ID]; issue != "" {
		return fmt.Errorf("drive %s (%s): %w: the layout of the drive is unknown: %s", d.ID, d.Name, ErrLacking, issue)
	}
	for _, u := range s.uses[d.ID] {
		if err := u.inIndex(d, parts, s.Index.LVM); err != nil {
			return err
		}
	}
	return nil
}

// Intact refuses to change a volume group while LVM does not report every logical volume
// that the records name on its drives.
func (e *Inventory) Intact(l drivebay.Location, r *lvm.Report) error {
	uses := recordedUses(e.Ledger.All(), e.Partitions.SnapshotRecords(), func(*drivebay.VolumeRecord) bool { return false }) // only partitions move
	for _, id := range l.Drives {
		for _, u := range uses[id] {
			if u.vg != l.VG {
				continue
			}
			if err := u.inReport(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// FindBlankPVs finds partitions for a physical volume that LVM does not list and that
// read back blank: a killed creation whose record is lost left them. All others that LVM
// does not list are unknown, and their space is not free.
func (e *Inventory) FindBlankPVs(ctx context.Context, s *drivebay.Snapshot) error {
	e.Ledger.Mu.Lock()
	x := e.Partitions.Index
	e.Ledger.Mu.Unlock()
	found := map[string]partitions.Part{}
	var errs []error
	for id, dev := range x.LVM.Devices() {
		d, known := steps.DriveOf(s, id)
		p, there := partitions.PVOn(x.Parts[id])
		if pv, _ := x.LVM.Report.On(dev); pv != nil || !known || !there || p.Dev != dev {
			continue
		}
		c, err := e.ContentOfRange(ctx, d, p.Start, p.Size)
		if errs = append(errs, err); err == nil && c.Kind == drivebay.ContentBlank {
			found[id] = p
		}
	}
	e.Ledger.Mu.Lock()
	e.Groups.BlankPVs = found
	e.Ledger.Mu.Unlock()
	return errors.Join(errs...)
}

// ContentOfRange detects what is written in a range of a drive, through the drive's device node. The range is
// sampled like a drive: behind an erased label, a physical volume has its data between the ends.
func (e *Inventory) ContentOfRange(ctx context.Context, d *drivebay.Drive, start, size uint64) (drivebay.Content, error) {
	return readRange(ctx, e, d, start, size, func(r *io.SectionReader) (drivebay.Content, error) {
		return content.DetectDrive(r, size, max(d.LogicalBlock, 512)), nil
	})
}

// readRange reads a range of a drive through the drive's device node.
func readRange[T any](ctx context.Context, e *Inventory, d *drivebay.Drive, start, size uint64, read func(*io.SectionReader) (T, error)) (T, error) {
	return steps.Through(ctx, e.Steps, "read "+d.ID, steps.TableTime, func(ctx context.Context) (none T, err error) {
		drive, err := e.Partitions.Open(ctx, d)
		if err != nil {
			return none, fmt.Errorf("drive %s: %w", d.ID, err)
		}
		defer drive.Close()
		return read(io.NewSectionReader(drive, int64(start), int64(size)))
	})
}
