package write

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// compareLayout compares the kernel's partitions of a drive with its table. It reads the drive if one of
// the two has changed since, or they did not agree.
func (e *Writer) compareLayout(ctx context.Context, d *drivebay.Drive, parts []partitions.Part) error {
	e.Ledger.Mu.Lock()
	last, known := e.Partitions.Layouts[d.ID]
	e.Ledger.Mu.Unlock()
	ours := d.Content.Kind == drivebay.ContentOurs || slices.ContainsFunc(parts, func(p partitions.Part) bool { return strings.HasPrefix(p.Title, content.OursPrefix) }) ||
		!partitions.OtherTable(d.Content) && len(e.Inventory.RecordedOn(d.ID)) > 0
	switch {
	case !ours:
		e.Partitions.KeepLayout(d.ID, partitions.Layout{})
		e.Partitions.KeepTable(d.ID, nil)
		return nil
	case partitions.Stuck(*d), known && last.Same && last.Sum == d.Content.TableSum && slices.EqualFunc(last.Parts, parts, partitions.SamePlace):
		return nil
	}
	found, err := steps.Through(ctx, e.Steps, "table "+d.ID, partitions.ListTime, func(ctx context.Context) (partitions.Layout, error) {
		drive, err := e.Partitions.Open(ctx, d)
		if err != nil {
			return partitions.Layout{}, err
		}
		defer drive.Close()
		disk := &partitions.NotedReads{OnlyRead: partitions.OnlyRead{OpenDrive: drive, D: d}}
		t, err := gpt.Read(disk)
		if errors.Is(err, gpt.ErrNone) {
			t, err = &gpt.Table{}, nil
		}
		switch {
		case err == nil:
			e.Partitions.KeepTable(d.ID, t.Partitions)
			return e.Partitions.Differences(d, t, drive)
		case e.Inventory.TableBegun(d.ID) || e.begunByMove(partitions.OnlyRead{OpenDrive: drive, D: d}, d, d.Content): // no volume was on the drive
			return partitions.Layout{}, nil
		}
		if disk.Failed { // the drive is at fault; its table is compared when the drive answers again
			now, err := partitions.ListParts(e.Machine, d.Name)
			if err != nil || len(now) > 0 {
				return partitions.Layout{Parts: last.Parts, Issue: last.Issue}, err
			}
		}
		return partitions.Layout{Issue: "the partition table cannot be read: " + err.Error()}, nil
	})
	if err == nil {
		found.Sum = d.Content.TableSum
		e.Partitions.KeepLayout(d.ID, found)
	}
	return err
}
