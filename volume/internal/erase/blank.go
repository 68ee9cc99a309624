package erase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
)

// RecordStep records what the engine is about to do for a volume.
func (e *Eraser) RecordStep(id, what string) error {
	if _, err := e.Ledger.Record(id); err != nil { // a snapshot's: an operator has to check its drive
		return nil
	}
	_, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) error {
		if r.Work != nil && !slices.Contains(r.Work.Made, what) {
			r.Work.Made = append(r.Work.Made, what)
		}
		return nil
	})
	return err
}

// ZeroSamples zeroes the places that are sampled before a drive, or the range of a physical volume, counts as
// blank: volumes that were not wiped have left their data there. The table still shows that the drive is ours.
func ZeroSamples(ctx context.Context, disk host.Disk, start, size uint64) error {
	for _, at := range content.Samples(size) {
		if err := disk.Zero(ctx, start+at, content.SampleSize); err != nil {
			return err
		}
	}
	return disk.Sync()
}

// EmptyOurs reports whether a drive holds only our table, without a partition.
func EmptyOurs(disk host.Disk, d *drivebay.Drive, c drivebay.Content) bool {
	if c.Kind != drivebay.ContentForeign || !OnlyTable(c) || !BlankButTable(disk, content.Detect) {
		return false
	}
	t, err := gpt.Read(disk)
	return err == nil && len(t.Partitions) == 0 && t.GUID == partitions.TableGUID(d.ID)
}

// OnlyTable reports whether a drive has nothing but a partition table.
func OnlyTable(c drivebay.Content) bool {
	return !slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool {
		return s.Format != "gpt" && s.Format != "PMBR" && s.Format != "unrecognised data"
	})
}

// BlankButTable reports whether a drive reads back blank except for the places of a partition
// table. Half of our table is no permission to overwrite the data beside it.
func BlankButTable(disk host.Disk, detect func(io.ReaderAt, uint64, int) drivebay.Content) bool {
	places, err := gpt.Places(disk)
	if err != nil {
		return false
	}
	c := detect(withoutTable{disk, places}, disk.Size(), disk.BlockSize())
	return c.Kind == drivebay.ContentBlank
}

// withoutTable is a drive that reads as zeros in the places of a partition table.
type withoutTable struct {
	host.Disk
	places []gpt.Range
}

func (w withoutTable) ReadAt(b []byte, off int64) (int, error) {
	n, err := w.Disk.ReadAt(b, off)
	for _, r := range w.places {
		from, to := max(int64(r.Start), off), min(int64(r.Start+r.Size), off+int64(n))
		if from < to {
			clear(b[from-off : to-off])
		}
	}
	return n, err
}

// CannotBlank returns why a drive cannot be proved blank; nil if it can.
func CannotBlank(c drivebay.Content) error {
	if c.Reason != "" {
		return fmt.Errorf("what is written on it %w: %s", host.ErrUnreadable, c.Reason)
	}
	return errors.New("it has foreign content: " + partitions.Formats(c))
}

// Reserve marks as taken the range behind each partition that is to grow, until release is
// called.
func (e *Eraser) Reserve(t *gpt.Table) (release func()) {
	sizes := map[string]uint64{}
	keep := func(p gpt.Partition, end uint64) {
		if _, kept := sizes[p.GUID]; !kept {
			sizes[p.GUID] = p.Size
		}
		_ = t.Grow(p.GUID, max(p.Size, end-min(end, p.Start))) // if the range is not free, nothing is reserved
	}
	all := e.Ledger.All()
	for _, r := range all {
		if p, ok := t.Find(r.Volume.Location.Partition); ok && r.Work != nil && r.Work.Op == drivebay.WorkExpand {
			keep(p, p.Start+inventory.SizeOfWork(r))
		}
		g, room := inventory.GrowingBeside(all, r)
		if room == nil {
			continue
		}
		p, ok := t.Find(g.Volume.Location.Partition)
		if !ok {
			continue
		}
		end := p.Start + room.Size + place.OverheadOf(&g.Volume)
		if old, there := t.Find(partitions.MoveOf(r).From.Partition); there && old.Start > p.Start {
			keep(old, end)
			end = old.Start
		}
		keep(p, end)
	}
	return func() {
		for i := range t.Partitions {
			if size, grown := sizes[t.Partitions[i].GUID]; grown {
				t.Partitions[i].Size = size
			}
		}
	}
}

// NoRoom adds ErrNoSpace to the table's error for a lack of space.
func NoRoom(err error) error {
	if errors.Is(err, gpt.ErrNoRoom) {
		return fmt.Errorf("%w: %w", drivebay.ErrNoSpace, err)
	}
	return err
}
