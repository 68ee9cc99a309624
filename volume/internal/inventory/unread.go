package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// An id without a record does not prove that there is no such volume: its record may be
// lost, and its drive not read yet. This file decides between "not found" and "not
// known yet", for every call.

// Listed returns nil when the records name all volumes of this machine. It ignores an
// unread drive on which the records have a volume.
func (e *Inventory) Listed() error {
	if e.UnreadDrives(EveryDrive) != nil { // else the records need not be searched, at each page of a list
		recorded := map[string]bool{}
		for _, r := range e.Ledger.All() {
			for _, id := range r.Volume.Location.Drives {
				recorded[id] = true
			}
		}
		if err := e.UnreadDrives(func(d *drivebay.Drive) bool { return !recorded[d.ID] }); err != nil {
			return err
		}
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for id, err := range e.NotAdopted {
		return fmt.Errorf("%w: drive %s carries volumes whose records are not restored yet: %w; retry later", drivebay.ErrUnavailable, id, err)
	}
	return nil
}

// EveryDrive selects all drives.
func EveryDrive(*drivebay.Drive) bool { return true }

// UnlistedInUse reports whether a drive is ours and its partitions are not listed.
// Ledger.Mu is held.
func (e *Inventory) UnlistedInUse(d *drivebay.Drive) bool {
	_, listed := e.Partitions.Index.Parts[d.ID]
	return !listed && (d.Claim != nil || d.Content.Kind == drivebay.ContentOurs)
}

// UnreadDrives returns nil when the volumes on all drives that of selects have records,
// else an error with the drives that were not read. It calls of with Ledger.Mu held.
func (e *Inventory) UnreadDrives(of func(*drivebay.Drive) bool) error {
	unread, listed := e.unreadOf(of)
	if !listed {
		return fmt.Errorf("%w: the drives of this machine are not listed yet; retry later", drivebay.ErrUnavailable)
	}
	if len(unread) == 0 {
		return nil
	}
	next := "pull a drive that does not recover"
	if slices.ContainsFunc(unread, func(u unreadDrive) bool { return u.Content.Kind != drivebay.ContentOurs && u.Claim == nil }) { // see mayCarry
		next += ", or run `drivebay cordon` for one that is not claimed and carries no volume"
	}
	return fmt.Errorf("%w: waiting to read %s; retry later; %s", drivebay.ErrUnavailable, strings.Join(said(unread), ", "), next)
}

// WhyUnlisted returns why it is not proved that the records name all volumes on a drive; "" if it is. A
// drive that is away proves nothing, and cannot: the records decide, or a drive that died before a restart
// could not be released.
func (e *Inventory) WhyUnlisted(drive string) string {
	unread, listed := e.unreadOf(func(d *drivebay.Drive) bool { return d.ID == drive })
	e.Ledger.Mu.Lock()
	notAdopted := e.NotAdopted[drive]
	e.Ledger.Mu.Unlock()
	switch {
	case !listed:
		return "the drives of this machine are not listed yet"
	case len(unread) > 0:
		return unread[0].why
	case notAdopted != nil:
		return "the records of its volumes are not restored yet: " + notAdopted.Error()
	}
	o, is := e.Instances.UnrecordedOn(drive)
	switch {
	case is && e.Instances.Recorded(o.ID):
		return fmt.Sprintf("it has another volume %s (%s) than the records: `drivebay explain %s` shows the choice", o.ID, o.Instance, o.ID)
	case is:
		return fmt.Sprintf("its volume %s (%s) is in no record: `drivebay volume adopt %s` records it", o.ID, o.Instance, o.ID)
	}
	if id := e.Instances.OldCopyOn(drive); id != "" {
		return fmt.Sprintf("it has an old copy of volume %s, which was moved to a drive that is not here: reconnect that drive, and the copy is wiped", id)
	}
	return ""
}

// DependsOn returns what depends on a drive that is recorded as RELEASED, or why that is not known; "" if nothing does.
func (e *Inventory) DependsOn(drive string) string {
	if e.Ctx.Err() != nil { // the next engine decides by its own records
		return "the volumes are not known"
	}
	for _, r := range e.Ledger.All() {
		if v := &r.Volume; v.Usage != drivebay.VolumeReleased && slices.Contains(v.Location.Drives, drive) {
			return fmt.Sprintf("on it is volume %s (%s)", v.Name, v.ID)
		}
	}
	if why := e.WhyUnlisted(drive); why != "" {
		return "it is not known what is on it: " + why
	}
	return ""
}

// unreadDrive is a drive whose volumes are not known, and why.
type unreadDrive struct {
	*drivebay.Drive
	why string
}

func said(unread []unreadDrive) (out []string) {
	for _, u := range unread {
		out = append(out, fmt.Sprintf("drive %s (%s): %s", u.ID, u.Name, u.why))
	}
	return out
}

// unreadOf returns the drives that of selects and that may carry volumes without a
// record. Listed is false until the first listing of all drives has ended.
func (e *Inventory) unreadOf(of func(*drivebay.Drive) bool) (out []unreadDrive, listed bool) {
	s := e.Drives.Snapshot()
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	for i := range s.Drives {
		d := &s.Drives[i]
		if !mayCarry(d) || !of(d) {
			continue
		}
		why, known := e.unlisted[d.ID]
		if !known {
			why = "it is not listed yet"
		}
		if why == "" && e.claimedSince(s, d.ID) {
			why = "its volumes have no records yet"
		}
		if why != "" {
			out = append(out, unreadDrive{d, why})
		}
	}
	return out, s.Seq > 0 && e.complete
}

// claimedSince reports whether the last listing found a volume on an unclaimed drive that is
// claimed by now: the next listing adopts the volume. Ledger.Mu is held.
func (e *Inventory) claimedSince(s *drivebay.Snapshot, id string) bool {
	return slices.ContainsFunc(e.Instances.Found, func(f drivebay.FoundVolume) bool {
		return f.Issue == "" && slices.Contains(f.Drives, id) && len(steps.Unclaimed(s, f.Drives)) == 0
	})
}

// mayCarry reports whether a drive may carry a volume that no record names. A drive that
// was read as blank or foreign carries none. An operator declares the same for a drive
// that was never read by cordoning it. No volume is adopted from a drive that has left
// service.
func mayCarry(d *drivebay.Drive) bool {
	switch {
	case d.Status == drivebay.StatusOffline, d.System, instances.Left(d), d.Size == 0 && (d.Kernel == nil || !d.Kernel.Dead()): // of size 0: it has no medium
		return false
	case readBlank(d), d.Content.Kind == drivebay.ContentForeign && !namesOurs(d.Content):
		return false
	}
	return d.Content.Kind == drivebay.ContentOurs || namesOurs(d.Content) || d.Claim != nil || !d.Cordoned
}

// namesOurs reports whether something on a drive has a name of ours, whatever else is on it: what is left of a table whose front was erased.
func namesOurs(c drivebay.Content) bool {
	return slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool { return strings.HasPrefix(s.Label, drivebay.PartitionPrefix) })
}

// readBlank reports whether a drive was read as blank and has got no partitions since.
func readBlank(d *drivebay.Drive) bool {
	return d.Content.Kind == drivebay.ContentBlank && len(d.Uses) == 0
}

// NoteRead records which drives the listing has read. A drive that was read once
// stays read while it is here: all its volumes have records.
func (e *Inventory) NoteRead(ctx context.Context, s *drivebay.Snapshot, failed map[string]error, reported bool) {
	next := map[string]string{}
	for i := range s.Drives {
		d := &s.Drives[i]
		e.Ledger.Mu.Lock()
		was, before := e.unlisted[d.ID]
		e.Ledger.Mu.Unlock()
		if d.Status != drivebay.StatusOnline {
			continue
		}
		if before && was == "" {
			next[d.ID] = ""
		} else {
			next[d.ID] = e.whyUnread(ctx, d, failed[d.ID])
		}
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	e.unlisted, e.complete = next, e.complete || s.Complete && reported
}

// whyUnread returns why the volumes on a drive are not known; "" if they are.
func (e *Inventory) whyUnread(ctx context.Context, d *drivebay.Drive, err error) string {
	e.Ledger.Mu.Lock()
	parts, listed := e.Partitions.Index.Parts[d.ID]
	e.Ledger.Mu.Unlock()
	switch {
	case errors.Is(err, drivebay.ErrUnavailable):
		return partitions.NotReadYet(d)
	case err != nil:
		return err.Error()
	case !listed:
		return "it is not listed yet"
	case len(parts) == 0 && d.Content.Kind == drivebay.ContentUnknown:
		return partitions.NotReadYet(d)
	case len(parts) == 0 && (d.Content.Kind == drivebay.ContentOurs || namesOurs(d.Content)):
		return e.whyHidden(ctx, d)
	}
	if d.Content.Kind == drivebay.ContentUnknown && slices.ContainsFunc(parts, e.unrecordedPart) {
		return partitions.NotReadYet(d) // it is not known whether it can be claimed, either
	}
	if p, ok := partitions.PVOn(parts); ok {
		return e.whyUnreadPV(ctx, d, p)
	}
	return ""
}

// TableBegun reports whether the first table of a drive was being written, or the last
// one erased: the drive had no volume then.
func (e *Inventory) TableBegun(drive string) bool {
	return slices.ContainsFunc(e.Ledger.All(), func(r *drivebay.VolumeRecord) bool {
		return r.Work != nil && (slices.Contains(r.Work.Made, FirstTable+drive) || slices.Contains(r.Work.Made, NoTable+drive))
	})
}

func (e *Inventory) unrecordedPart(p partitions.Part) bool {
	id := ledger.IDOfPartition(p.Title)
	return id != "" && !e.Instances.Recorded(id)
}

// whyHidden returns which partition of our drive may carry an unrecorded volume, when the
// kernel has none of its partitions; "" if none. One that is being made was never used.
func (e *Inventory) whyHidden(ctx context.Context, d *drivebay.Drive) string {
	table, err := e.Partitions.ReadTitles(ctx, d)
	switch {
	case errors.Is(err, gpt.ErrDamaged) && e.TableBegun(d.ID):
		return ""
	case err != nil:
		return "its table cannot be read: " + err.Error()
	}
	if blocks := otherBlocks(d); len(table) == 0 && blocks != "" {
		return "its partition table is for blocks of another size than the " + blocks + " bytes that it has here: connect it as it was before, or pull it"
	}
	for _, p := range table {
		_, whole := ledger.Types[p.Type]
		if whole && !e.Instances.Recorded(ledger.IDOfPartition(p.Name)) || p.Type == ledger.TypePV && !e.blankRange(ctx, d, p) && !e.hasLeft(ctx, d, p.Start, p.Size) {
			return fmt.Sprintf("the kernel does not have partition %d of its table (`partx --update` on its device reads the table again)", p.Number)
		}
	}
	return ""
}

// otherBlocks returns the size of the blocks that a drive has, if a partition table was found on it where only
// other blocks have one (UEFI 2.10, 5.3.1: in the second block, and in the last one); "" if not.
func otherBlocks(d *drivebay.Drive) string {
	block := uint64(max(d.LogicalBlock, 512))
	for _, s := range d.Content.Signatures {
		if s.Format == "gpt" && s.Offset != block && s.Offset != d.Size/block*block-block {
			return strconv.FormatUint(block, 10)
		}
	}
	return ""
}

// blankRange reports whether a range of a drive reads back blank.
func (e *Inventory) blankRange(ctx context.Context, d *drivebay.Drive, p gpt.Partition) bool {
	c, err := e.ContentOfRange(ctx, d, p.Start, p.Size)
	return err == nil && c.Kind == drivebay.ContentBlank
}

// whyUnreadPV is whyUnread for the logical volumes of a drive. A partition that reads
// back blank was meant for a physical volume and has none. Another one whose physical
// volume LVM does not see has none if it is in no group, or if the groups that it was in go on without it.
func (e *Inventory) whyUnreadPV(ctx context.Context, d *drivebay.Drive, p partitions.Part) string {
	e.Ledger.Mu.Lock()
	x := e.Partitions.Index.LVM
	e.Ledger.Mu.Unlock()
	if x == nil || x.PVs[d.ID] != p.Dev {
		return e.whyUnseen(d, p)
	}
	pv, g := x.Report.On(p.Dev)
	switch {
	case pv != nil && pv.Unreadable(g):
		return "LVM cannot read the metadata of the volume group in its partition " + p.Name
	case pv != nil:
		return ""
	}
	why := e.whyUnseen(d, p)
	if why != "" && e.hasLeft(ctx, d, p.Start, p.Size) {
		return ""
	}
	return why
}

// hasLeft reports whether a range of a drive, in which LVM sees no physical volume, is in no group, or was one of groups
// that have removed it since.
func (e *Inventory) hasLeft(ctx context.Context, d *drivebay.Drive, start, size uint64) bool {
	b, err := readRange(ctx, e, d, start, min(size, lvm.LeftTexts), func(r *io.SectionReader) ([]byte, error) { return io.ReadAll(r) })
	return err == nil && (lvm.InNoGroup(b) || e.Groups.LVMNow().Reported().HaveLeft(b))
}

// whyUnseen returns why LVM does not see the physical volume in a partition; "" if it
// does.
func (e *Inventory) whyUnseen(d *drivebay.Drive, p partitions.Part) string {
	e.Ledger.Mu.Lock()
	x := e.Partitions.Index.LVM
	blank, is := e.Groups.BlankPVs[d.ID]
	e.Ledger.Mu.Unlock()
	switch {
	case is && blank == p:
		return ""
	case partitions.Stuck(*d):
		return "it does not answer"
	case e.Capabilities.LacksLVM() != nil:
		return "its logical volumes cannot be listed: " + e.Capabilities.LacksLVM().Error()
	case x == nil || x.PVs[d.ID] != p.Dev:
		return cmp.Or(d.Copy, "LVM has not read it yet") // LVM is not asked about a copy
	}
	return "LVM does not see the physical volume in its partition " + p.Name
}

// orForget returns the next step for a volume that cannot be wiped because it is not found.
func orForget(id string) string {
	return "bring it back and retry, or leave the data as they are with `drivebay volume forget " + id + "`"
}

// Absent returns nil if what LVM does not report of a volume or snapshot is gone from its drives. w is the work on it.
func (e *Inventory) Absent(r *lvm.Report, id string, l drivebay.Location, w *drivebay.Work) error {
	if !partitions.MustBeThere(w) {
		return nil
	}
	if err := instances.RefuseOther(r, l); err != nil {
		return err
	}
	return e.AllSeen(r, id, l)
}

// Unwiped returns the error for the removal of a logical volume that another program removed: its data
// are left in extents that no record names.
func Unwiped(id string, l drivebay.Location) error {
	return partitions.Away("logical volume %s/%s was removed by another program, so that nothing can be wiped: %s; %s", l.VG, l.LV, restoreLV, orForget(id))
}

// AllSeen returns nil when LVM has reported the physical volumes of a location: then a
// volume that the report lacks does not exist. A physical volume that LVM does not see
// may hold it, also one that reads as blank: an erased label leaves the data.
func (e *Inventory) AllSeen(r *lvm.Report, volume string, l drivebay.Location) error {
	for _, id := range l.Drives {
		d, err := e.Partitions.Drive(id)
		if err != nil {
			return err
		}
		p, ok := e.Groups.PVPart(id)
		if !ok {
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, partitions.Away("the partition of its physical volume is not there, so that nothing can be wiped; %s", orForget(volume)))
		}
		switch pv, g := r.On(p.Dev); {
		case pv != nil && g != nil && g.Name == l.VG:
			continue
		case pv != nil:
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, partitions.Away("volume group %s is not on its physical volume, so that nothing can be wiped; %s", l.VG, orForget(volume)))
		}
		why := e.whyUnseen(d, p)
		if why == "" {
			return fmt.Errorf("drive %s (%s): %w", id, d.Name, partitions.Away("the physical volume in its partition %s has no label, so that nothing can be wiped: %s; %s", p.Name, restoreLVM, orForget(volume)))
		}
		return fmt.Errorf("drive %s (%s): %w", id, d.Name, partitions.Away("%s; retry when it does", why))
	}
	return nil
}

// ListErrors returns the errors of a listing in the order of the drives' ids.
func ListErrors(failed map[string]error) []error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		errs = append(errs, fmt.Errorf("drive %s: partitions: %w", id, failed[id]))
	}
	return errs
}
