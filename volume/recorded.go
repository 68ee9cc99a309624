package volume

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
)

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
	moving bool // the volume group is moving: which of its drives have a physical volume changes
}

// recordedUses returns what the records claim on each drive, by drive id.
func recordedUses(volumes []*drivebay.VolumeRecord, snapshots []*drivebay.SnapshotRecord) map[string][]recordedUse {
	out := map[string][]recordedUse{}
	add := func(l drivebay.Location, u recordedUse) {
		if u.guid = l.Partition; l.VG != "" {
			u.vg, u.lv, u.moving = l.VG, l.LV, isMoving(l)
		}
		for _, id := range l.Drives {
			out[id] = append(out[id], u)
		}
	}
	for _, r := range volumes {
		if v := &r.Volume; mustBeThere(r.Work) {
			u := recordedUse{owner: "volume " + v.ID, forget: "drivebay volume forget " + v.ID, names: []string{partitionName(v.ID)}}
			if m := moveOf(r); m != nil && moved(r) { // its partition has the copy's name for a while
				u.names = append(u.names, m.Name)
			}
			add(v.Location, u)
		}
	}
	for _, r := range snapshots {
		if s := &r.Snapshot; r.Work == nil {
			add(s.Location, recordedUse{owner: "snapshot " + s.ID, forget: "drivebay volume snapshot-forget " + s.ID})
		}
	}
	return out
}

// neverWhole marks the work of a removal when the volume was never whole: nothing of it
// has to be on its drives.
const neverWhole = "never whole"

// mustBeThere reports whether a volume must be on its drives, whatever a listing shows.
// A volume that is being made may not be there yet, and a volume that is being removed
// may be gone once its data is wiped.
func mustBeThere(w *drivebay.Work) bool {
	switch {
	case w == nil:
		return true
	case w.Op == drivebay.WorkCreate:
		return false
	case w.Op == drivebay.WorkRemove:
		return !slices.Contains(w.Made, "wipe") && !slices.Contains(w.Made, neverWhole)
	}
	return true
}

// recordedOn returns what the records claim on one drive.
func (e *Engine) recordedOn(drive string) []recordedUse {
	var volumes []*drivebay.VolumeRecord // a listing calls this for each drive: other drives' records must cost nothing
	for _, r := range e.all() {
		if contains(r.Volume.Location.Drives, drive) {
			volumes = append(volumes, r)
		}
	}
	snapshots := slices.DeleteFunc(e.snapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return !contains(r.Snapshot.Location.Drives, drive) })
	return recordedUses(volumes, snapshots)[drive]
}

var errLacking = fmt.Errorf("%w", drivebay.ErrRefused)

// lacking returns the error for a place that does not show what a record says is there.
func (u recordedUse) lacking(where, what, restore string) error {
	return fmt.Errorf("%s: %w: %s of %s is missing, and its place is not written over: %s, or give it up with `%s`",
		where, errLacking, what, u.owner, restore, u.forget)
}

const (
	restoreTable = "restore the partition table, for example with `sgdisk --load-backup`"
	restoreLVM   = "see what became of the physical volume with `pvck`, and restore it with `pvcreate --restorefile` and `vgcfgrestore`"
)

// inTable refuses a partition table without the partition that a record needs. The
// table of a drive that a volume group moves to or from may have the physical volume or
// not: LVM reports what lies there.
func (u recordedUse) inTable(where string, t *gpt.Table) error {
	if u.vg != "" {
		if u.moving || slices.ContainsFunc(t.Partitions, func(p gpt.Partition) bool { return p.Type == typePV || strings.HasPrefix(p.Name, pvPrefix) }) {
			return nil
		}
		return u.lacking(where, "the physical volume", restoreTable)
	}
	if slices.ContainsFunc(t.Partitions, func(p gpt.Partition) bool {
		return strings.EqualFold(p.GUID, u.guid) || slices.Contains(u.names, p.Name)
	}) {
		return nil
	}
	return u.lacking(where, "the partition", restoreTable)
}

// inIndex refuses a drive on which the kernel or LVM does not show what a record needs.
func (u recordedUse) inIndex(d *drivebay.Drive, parts []part, x *lvmIndex) error {
	where := fmt.Sprintf("drive %s (%s)", d.ID, d.Name)
	switch _, has := pvOn(parts); {
	case u.vg == "":
		if !slices.ContainsFunc(parts, func(p part) bool { return slices.Contains(u.names, p.title) }) {
			return u.lacking(where, "the partition", restoreTable)
		}
		return nil
	case u.moving:
		return nil
	case !has:
		return u.lacking(where, "the physical volume", restoreTable)
	case x == nil || x.pvs[d.ID] == "":
		return fmt.Errorf("%s: %w: LVM has not reported its physical volume yet", where, drivebay.ErrBusy)
	}
	if _, g := x.report.On(x.pvs[d.ID]); g == nil || g.Name != u.vg {
		return u.lacking(where, "the volume group", restoreLVM)
	}
	return u.inReport(x.report)
}

// inReport refuses a volume group that LVM reports without the logical volume that a
// record needs: its extents look free and are not.
func (u recordedUse) inReport(r *lvm.Report) error {
	if r.LV(u.vg, u.lv) != nil {
		return nil
	}
	return u.lacking("volume group "+u.vg, "logical volume "+u.lv, restoreLVM)
}

// doubt returns the reason why a drive must not be used for anything new: it does not
// show what the records say.
func (s placementView) doubt(d *drivebay.Drive, parts []part) error {
	if issue := s.layouts[d.ID]; issue != "" {
		return fmt.Errorf("drive %s (%s): %w: the layout of the drive is unknown: %s", d.ID, d.Name, errLacking, issue)
	}
	for _, u := range s.uses[d.ID] {
		if err := u.inIndex(d, parts, s.index.lvm); err != nil {
			return err
		}
	}
	return nil
}

// intact refuses to change a volume group while LVM does not report every logical volume
// that the records name on its drives.
func (e *Engine) intact(l drivebay.Location, r *lvm.Report) error {
	uses := recordedUses(e.all(), e.snapshotRecords())
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

// findBlankPVs finds partitions for a physical volume that LVM does not list and that
// read back blank: a killed creation whose record is lost left them. All others that LVM
// does not list are unknown, and their space is not free.
func (e *Engine) findBlankPVs(ctx context.Context, s *drivebay.Snapshot) error {
	e.mu.Lock()
	x := e.index
	e.mu.Unlock()
	found := map[string]part{}
	var errs []error
	for id, dev := range x.lvm.devices() {
		d, known := driveOf(s, id)
		p, there := pvOn(x.parts[id])
		if pv, _ := x.lvm.report.On(dev); pv != nil || !known || !there || p.dev != dev {
			continue
		}
		c, err := e.contentOfRange(ctx, d, p.start, p.size)
		if errs = append(errs, err); err == nil && c.Kind == drivebay.ContentBlank {
			found[id] = p
		}
	}
	e.mu.Lock()
	e.blankPVs = found
	e.mu.Unlock()
	return errors.Join(errs...)
}

// contentOfRange detects what is written in a range of a drive, through the drive's device node.
func (e *Engine) contentOfRange(ctx context.Context, d *drivebay.Drive, start, size uint64) (drivebay.Content, error) {
	return through(ctx, e, "read "+d.ID, tableTime, func(ctx context.Context) (drivebay.Content, error) {
		drive, err := e.machine.OpenDrive(ctx, "/dev/"+d.Name)
		if err != nil {
			return drivebay.Content{}, fmt.Errorf("drive %s: %w", d.ID, err)
		}
		defer drive.Close()
		return content.Detect(io.NewSectionReader(drive, int64(start), int64(size)), size, max(d.LogicalBlock, 512)), nil
	})
}

// devices returns the devices of the physical volumes that the report covers, by drive.
func (x *lvmIndex) devices() map[string]string {
	if x == nil {
		return nil
	}
	return x.pvs
}
