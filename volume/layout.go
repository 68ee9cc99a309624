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
)

// The kernel and the partition table of a drive with our table have the same partitions, except in the
// moment when one of our steps has changed only one of the two. If they differ otherwise, another program
// has changed the table or the kernel's partitions, and neither says where data is: the layout of the
// drive is unknown.

// layout is the result of the last comparison of a drive.
type layout struct {
	parts []part // of the kernel, as they were compared
	sum   uint32 // of the table as the drive manager last read it
	issue string // how table and kernel differ; empty when they agree
	same  bool   // they agree in all, also in what our steps change
}

// compareLayout compares the kernel's partitions of a drive with its table. It reads the drive if one of
// the two has changed since, or they did not agree.
func (e *Engine) compareLayout(ctx context.Context, d *drivebay.Drive, parts []part) error {
	e.mu.Lock()
	last, known := e.layouts[d.ID]
	e.mu.Unlock()
	ours := d.Content.Kind == drivebay.ContentOurs || slices.ContainsFunc(parts, func(p part) bool { return strings.HasPrefix(p.title, content.OursPrefix) }) ||
		!otherTable(d.Content) && len(e.recordedOn(d.ID)) > 0
	switch {
	case !ours:
		e.keepLayout(d.ID, layout{})
		return nil
	case stuck(*d), known && last.same && last.sum == d.Content.TableSum && slices.EqualFunc(last.parts, parts, samePlace):
		return nil
	}
	found, err := through(ctx, e, "table "+d.ID, listTime, func(ctx context.Context) (layout, error) {
		drive, err := e.machine.OpenDrive(ctx, "/dev/"+d.Name)
		if err != nil {
			return layout{}, err
		}
		defer drive.Close()
		disk := &notedReads{onlyRead: onlyRead{drive, d}}
		t, err := gpt.Read(disk)
		if errors.Is(err, gpt.ErrNone) {
			t, err = &gpt.Table{}, nil
		}
		switch {
		case err == nil:
			return e.differences(d, t, drive)
		case e.tableBegun(d.ID) || e.begunByMove(onlyRead{drive, d}, d, d.Content): // no volume was on the drive
			return layout{}, nil
		}
		if disk.failed { // the drive is at fault; its table is compared when the drive answers again
			now, err := listParts(e.machine, d.Name)
			if err != nil || len(now) > 0 {
				return layout{parts: last.parts, issue: last.issue}, err
			}
		}
		return layout{issue: "the partition table cannot be read: " + err.Error()}, nil
	})
	if err == nil {
		found.sum = d.Content.TableSum
		e.keepLayout(d.ID, found)
	}
	return err
}

// notedReads is a drive that remembers whether a read failed.
type notedReads struct {
	onlyRead
	failed bool
}

func (r *notedReads) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.onlyRead.ReadAt(b, off)
	r.failed = r.failed || err != nil && n < len(b)
	return n, err
}

// otherTable reports whether another program has written an MBR over the partition table of a drive. A damaged
// GPT may be ours, and so may the content of a drive that was not read.
func otherTable(c drivebay.Content) bool {
	has := func(format string) bool {
		return slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool { return s.Partition == "" && s.Format == format })
	}
	return has("dos") && !has("gpt")
}

func samePlace(a, b part) bool {
	return a.device == b.device && a.number == b.number && a.start == b.start && a.size == b.size
}

func (e *Engine) keepLayout(drive string, l layout) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.layouts[drive].issue != l.issue {
		e.index.changes++
	}
	e.layouts[drive] = l
}

// layoutOf returns how the table of a drive and the kernel differ; empty when they agree. A drive that is
// offline has no partitions in the kernel: the last comparison may have been made while the kernel removed
// them, and the next one is made when the drive returns.
func (e *Engine) layoutOf(drive string) string {
	if d, known := driveOf(e.drives.Snapshot(), drive); !known || d.Status != drivebay.StatusOnline {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.layouts[drive].issue
}

// differences compares a table that was just read with the kernel's current partitions.
func (e *Engine) differences(d *drivebay.Drive, t *gpt.Table, r io.ReaderAt) (layout, error) {
	parts, err := listParts(e.machine, d.Name)
	if err != nil {
		return layout{}, err
	}
	out := layout{parts: parts, same: true} // the caller's list may be older
	out.issue = differ(parts, t.Partitions, func(p gpt.Partition) bool {
		out.same = false
		return e.underWay(d, p, r)
	})
	out.same = out.same && out.issue == ""
	return out, nil
}

// sameLayout refuses to change a table that differs from the kernel's partitions.
func (e *Engine) sameLayout(d *drivebay.Drive, t *gpt.Table, r io.ReaderAt) error {
	is, err := e.differences(d, t, r)
	if err == nil && is.issue != "" {
		err = fmt.Errorf("%w: the layout of the drive is unknown: %s; %s", drivebay.ErrRefused, is.issue, restoreLayout)
	}
	if err != nil {
		return fmt.Errorf("drive %s (%s): %w", d.ID, d.Name, err)
	}
	return nil
}

// differ returns how the kernel's partitions of a drive differ from those of its table, except for what
// one of our steps is changing.
func differ(parts []part, table []gpt.Partition, underWay func(gpt.Partition) bool) string {
	for _, p := range table {
		i := slices.IndexFunc(parts, func(k part) bool { return k.number == p.Number })
		switch {
		case i >= 0 && parts[i].start != p.Start:
			return fmt.Sprintf("the kernel has partition %d at byte %d, the partition table at %d", p.Number, parts[i].start, p.Start)
		case i >= 0 && parts[i].size == p.Size || underWay(p):
		case i < 0:
			return fmt.Sprintf("the kernel does not have partition %d of the partition table (%q)", p.Number, p.Name)
		default:
			return fmt.Sprintf("the kernel has partition %d with %d bytes, the partition table with %d", p.Number, parts[i].size, p.Size)
		}
	}
	for _, k := range parts {
		if !slices.ContainsFunc(table, func(p gpt.Partition) bool { return p.Number == k.number }) {
			return fmt.Sprintf("the kernel has partition %d (%s), the partition table does not", k.number, k.name)
		}
	}
	return ""
}

// underWay reports whether one of our steps is changing a partition of a table: the kernel does not know
// the partition yet, or has dropped it already. A partition that is being made or copied to has never been
// in use.
func (e *Engine) underWay(d *drivebay.Drive, p gpt.Partition, r io.ReaderAt) bool {
	if p.Type == typeMaking || strings.HasPrefix(p.Name, newPrefix) {
		return true
	}
	pv := p.Type == typePV || strings.HasPrefix(p.Name, pvPrefix)
	works := func(w *drivebay.Work, l drivebay.Location) bool {
		if w == nil && !isMoving(l) {
			return false
		}
		places := []drivebay.Location{l}
		if w != nil && w.Move != nil {
			places = append(places, w.Move.From, w.Move.To)
		}
		return slices.ContainsFunc(places, func(l drivebay.Location) bool {
			return slices.Contains(l.Drives, d.ID) && (pv && l.VG != "" || strings.EqualFold(l.Partition, p.GUID))
		})
	}
	return slices.ContainsFunc(e.all(), func(r *drivebay.VolumeRecord) bool {
		if r.Work != nil && r.Work.Op == drivebay.WorkRemove && mustBeThere(r.Work) && !isMoving(r.Volume.Location) { // not wiped yet
			return false
		}
		return works(r.Work, r.Volume.Location)
	}) ||
		slices.ContainsFunc(e.snapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return works(r.Work, r.Snapshot.Location) }) ||
		pv && content.Detect(io.NewSectionReader(r, int64(p.Start), int64(p.Size)), p.Size, max(d.LogicalBlock, 512)).Kind == drivebay.ContentBlank
}

// restoreLayout is the advice for a layout that is unknown.
const restoreLayout = "restore the table, or have the kernel read it with `partprobe` while nothing of the drive is in use"
