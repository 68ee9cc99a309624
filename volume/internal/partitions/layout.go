package partitions

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// The kernel and the partition table of a drive with our table have the same partitions, except in the
// moment when one of our steps has changed only one of the two. If they differ otherwise, another program
// has changed the table or the kernel's partitions, and neither says where data is: the layout of the
// drive is unknown.

// Layout is the result of the last comparison of a drive.
type Layout struct {
	Parts []Part // of the kernel, as they were compared
	Sum   uint32 // of the table as the drive manager last read it
	Issue string // how table and kernel differ; empty when they agree
	Same  bool   // they agree in all, also in what our steps change
}

// NotedReads is a drive that remembers whether a read failed.
type NotedReads struct {
	OnlyRead
	Failed bool
}

func (r *NotedReads) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.OnlyRead.ReadAt(b, off)
	r.Failed = r.Failed || err != nil && n < len(b)
	return n, err
}

// OtherTable reports whether another program has written an MBR over the partition table of a drive. A damaged
// GPT may be ours, and so may the content of a drive that was not read.
func OtherTable(c drivebay.Content) bool {
	has := func(format string) bool {
		return slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool { return s.Partition == "" && s.Format == format })
	}
	return has("dos") && !has("gpt")
}

// SamePlace reports whether two entries are the same partition at the same place.
func SamePlace(a, b Part) bool {
	return a.Device == b.Device && a.Number == b.Number && a.Start == b.Start && a.Size == b.Size
}

// KeepLayout stores the result of a comparison.
func (e *Catalog) KeepLayout(drive string, l Layout) {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	if e.Layouts[drive].Issue != l.Issue {
		e.Index.Changes++
	}
	e.Layouts[drive] = l
}

// LayoutOf returns how the table of a drive differs from the kernel, or from what LVM needs; empty when they agree. A drive that is
// offline has no partitions in the kernel: the last comparison may have been made while the kernel removed
// them, and the next one is made when the drive returns.
func (e *Catalog) LayoutOf(drive string) string {
	if d, known := steps.DriveOf(e.Drives.Snapshot(), drive); !known || d.Status != drivebay.StatusOnline {
		return ""
	}
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	return e.IssueOn(drive)
}

// IssueOn is LayoutOf as last listed; Ledger.Mu is held. Behind a partition that is smaller than its physical volume lie data of the group.
func (e *Catalog) IssueOn(drive string) string {
	return cmp.Or(e.Layouts[drive].Issue, e.Index.LVM.smallerPV(drive))
}

// Differences compares a table that was just read with the kernel's current partitions.
func (e *Catalog) Differences(d *drivebay.Drive, t *gpt.Table, r io.ReaderAt) (Layout, error) {
	parts, err := ListParts(e.Machine, d.Name)
	if err != nil {
		return Layout{}, err
	}
	out := Layout{Parts: parts, Same: true} // the caller's list may be older
	out.Issue = differ(parts, t.Partitions, func(p gpt.Partition) bool {
		out.Same = false
		return e.underWay(d, p, r)
	})
	out.Same = out.Same && out.Issue == ""
	return out, nil
}

// SameLayout refuses to change a table that differs from the kernel's partitions.
func (e *Catalog) SameLayout(d *drivebay.Drive, t *gpt.Table, r io.ReaderAt) error {
	is, err := e.Differences(d, t, r)
	if err == nil && is.Issue != "" {
		err = fmt.Errorf("%w: the layout of the drive is unknown: %s; %s", drivebay.ErrRefused, is.Issue, restoreLayout)
	}
	if err != nil {
		return fmt.Errorf("drive %s (%s): %w", d.ID, d.Name, err)
	}
	return nil
}

// differ returns how the kernel's partitions of a drive differ from those of its table, except for what
// one of our steps is changing.
func differ(parts []Part, table []gpt.Partition, underWay func(gpt.Partition) bool) string {
	for _, p := range table {
		i := slices.IndexFunc(parts, func(k Part) bool { return k.Number == p.Number })
		switch {
		case i >= 0 && parts[i].Start != p.Start:
			return fmt.Sprintf("the kernel has partition %d at byte %d, the partition table at %d", p.Number, parts[i].Start, p.Start)
		case i >= 0 && parts[i].Size == p.Size || underWay(p):
		case i < 0:
			return fmt.Sprintf("the kernel does not have partition %d of the partition table (%q)", p.Number, p.Name)
		default:
			return fmt.Sprintf("the kernel has partition %d with %d bytes, the partition table with %d", p.Number, parts[i].Size, p.Size)
		}
	}
	for _, k := range parts {
		if !slices.ContainsFunc(table, func(p gpt.Partition) bool { return p.Number == k.Number }) {
			return fmt.Sprintf("the kernel has partition %d (%s), the partition table does not", k.Number, k.Name)
		}
	}
	return ""
}

// underWay reports whether one of our steps is changing a partition of a table: the kernel does not know
// the partition yet, or has dropped it already. A partition that is being made or copied to has never been
// in use.
func (e *Catalog) underWay(d *drivebay.Drive, p gpt.Partition, r io.ReaderAt) bool {
	if p.Type == ledger.TypeMaking || strings.HasPrefix(p.Name, ledger.NewPrefix) {
		return true
	}
	pv := p.Type == ledger.TypePV || strings.HasPrefix(p.Name, ledger.PVPrefix)
	works := func(w *drivebay.Work, l drivebay.Location) bool {
		if w == nil && !ledger.IsMoving(l) {
			return false
		}
		places := []drivebay.Location{l}
		if w != nil && w.Move != nil {
			places = append(places, w.Move.From, w.Move.To)
		}
		return slices.ContainsFunc(places, func(l drivebay.Location) bool {
			return slices.Contains(l.Drives, d.ID) && (pv && l.OnLVM() || strings.EqualFold(l.Partition, p.GUID))
		})
	}
	return slices.ContainsFunc(e.Ledger.All(), func(r *drivebay.VolumeRecord) bool {
		if r.Work != nil && r.Work.Op == drivebay.WorkRemove && MustBeThere(r.Work) && !ledger.IsMoving(r.Volume.Location) && r.Work.Size == 0 { // not wiped yet, and no growth was cut short by the removal
			return false
		}
		return works(r.Work, r.Volume.Location)
	}) ||
		slices.ContainsFunc(e.SnapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return works(r.Work, r.Snapshot.Location) }) ||
		pv && content.DetectDrive(io.NewSectionReader(r, int64(p.Start), int64(p.Size)), p.Size, max(d.LogicalBlock, 512)).Kind == drivebay.ContentBlank
}

// restoreLayout is the advice for a layout that is unknown.
const restoreLayout = "restore the table, or have the kernel read it with `partprobe` while nothing of the drive is in use"
