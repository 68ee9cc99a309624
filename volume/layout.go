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

// The kernel and the partition table of a drive of ours have the same partitions, but for
// the moment in which a step of ours changes first the one and then the other. Where they
// differ otherwise, another program has changed the table or told the kernel, and neither
// says where data is: the layout of the drive is unknown.

// layout is what the last comparison of a drive found.
type layout struct {
	parts []part // of the kernel, as they were compared
	sum   uint32 // of the table as the drive manager last read it
	issue string // how table and kernel differ; empty when they agree
	same  bool   // they agree in all, also in what steps of ours change
}

// compareLayout compares the kernel's partitions of a drive with its table. It reads the
// drive when one of the two has changed since, or did not agree.
func (e *Engine) compareLayout(ctx context.Context, d *drivebay.Drive, parts []part) error {
	e.mu.Lock()
	last, known := e.layouts[d.ID]
	e.mu.Unlock()
	ours := d.Content.Kind == drivebay.ContentOurs || slices.ContainsFunc(parts, func(p part) bool { return strings.HasPrefix(p.title, content.OursPrefix) }) ||
		tableErased(d.Content) && len(e.recordedOn(d.ID)) > 0
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
		t, err := gpt.Read(onlyRead{drive, d})
		if errors.Is(err, gpt.ErrNone) {
			t, err = &gpt.Table{}, nil
		}
		if err != nil {
			return last, nil // who needs the table says what is wrong with it
		}
		return e.differences(d, t, drive)
	})
	if err == nil {
		found.sum = d.Content.TableSum
		e.keepLayout(d.ID, found)
	}
	return err
}

// tableErased says that a drive was read, and has no partition table, not even another one.
func tableErased(c drivebay.Content) bool {
	return c.Kind != drivebay.ContentUnknown && !slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool {
		return s.Partition == "" && (s.Format == "gpt" || s.Format == "dos")
	})
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

// layoutOf says how the table of a drive and the kernel differ; empty when they agree.
func (e *Engine) layoutOf(drive string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.layouts[drive].issue
}

// differences compares a table that was just read with the kernel's partitions of now.
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

// differ says how the kernel's partitions of a drive differ from those of its table,
// besides what a step of ours is changing.
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

// underWay says whether a partition of a table is one that a step of ours has yet to tell
// the kernel of, or has told it to drop. Nothing was ever handed out of one that is being
// made, or copied to.
func (e *Engine) underWay(d *drivebay.Drive, p gpt.Partition, r io.ReaderAt) bool {
	if p.Type == typeMaking || strings.HasPrefix(p.Name, newPrefix) {
		return true
	}
	pv := p.Type == typePV || strings.HasPrefix(p.Name, pvPrefix)
	works := func(w *drivebay.Work, l drivebay.Location) bool {
		if w == nil && !travels(l) {
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
		if r.Work != nil && r.Work.Op == drivebay.WorkRemove && mustBeThere(r.Work) && !travels(r.Volume.Location) { // not wiped yet
			return false
		}
		return works(r.Work, r.Volume.Location)
	}) ||
		slices.ContainsFunc(e.snapshotRecords(), func(r *drivebay.SnapshotRecord) bool { return works(r.Work, r.Snapshot.Location) }) ||
		pv && content.Detect(io.NewSectionReader(r, int64(p.Start), int64(p.Size)), p.Size, max(d.LogicalBlock, 512)).Kind == drivebay.ContentBlank
}

// restoreLayout is the way out of a layout that is unknown.
const restoreLayout = "restore the table, or have the kernel read it with `partprobe` while nothing of the drive is in use"
