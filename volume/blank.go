package volume

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
)

// firstTable and noTable are recorded before the first table of a drive is written, or the last
// one erased. Only then can a half-written table be ours.
const (
	firstTable = "first table of "
	noTable    = "no table on "
)

// recordStep records what the engine is about to do for a volume.
func (e *Engine) recordStep(id, what string) error {
	if _, err := e.record(id); err != nil { // a snapshot's: an operator has to check its drive
		return nil
	}
	_, err := e.change(id, func(r *drivebay.VolumeRecord) error {
		if r.Work != nil && !slices.Contains(r.Work.Made, what) {
			r.Work.Made = append(r.Work.Made, what)
		}
		return nil
	})
	return err
}

// blank returns the step that blanks a drive when its last partition is gone.
func (e *Engine) blank(id, owner string) step {
	with := func(ctx context.Context, f func(context.Context, host.Disk, *drivebay.Drive) (bool, error)) (bool, error) {
		return through(ctx, e, "table "+id, tableTime, func(ctx context.Context) (bool, error) {
			disk, d, err := e.openDrive(ctx, id)
			if err != nil {
				return false, err
			}
			defer disk.Close()
			return f(ctx, disk, d)
		})
	}
	return step{
		name: "blank " + id,
		done: func(ctx context.Context) (bool, error) {
			return with(ctx, func(_ context.Context, disk host.Disk, d *drivebay.Drive) (bool, error) {
				c := content.Detect(disk, disk.Size(), disk.BlockSize())
				done := c.Kind == drivebay.ContentBlank || c.Kind == drivebay.ContentOurs
				if !done && !emptyOurs(disk, d, c) && !e.begun(disk, d, c) {
					return false, fmt.Errorf("drive %s (%s): %w: %w", d.ID, d.Name, drivebay.ErrRefused, cannotBlank(c))
				}
				return done, nil
			})
		},
		do: func(ctx context.Context) error {
			_, err := with(ctx, func(ctx context.Context, disk host.Disk, _ *drivebay.Drive) (bool, error) {
				switch t, err := gpt.Read(disk); {
				case err != nil && !errors.Is(err, gpt.ErrNone): // it may have partitions
					return false, err
				case err == nil && len(t.Partitions) > 0: // another volume was made meanwhile
					return false, nil
				}
				if err := errors.Join(ctx.Err(), e.recordStep(owner, noTable+id)); err != nil {
					return false, err
				}
				if err := zeroSamples(ctx, disk); err != nil {
					return false, err
				}
				return true, errors.Join(gpt.Erase(disk), e.drives.Written(ctx, id))
			})
			return err
		},
	}
}

// zeroSamples zeroes the places that are sampled before a drive counts as blank: volumes that
// were not wiped have left their data there. The table still shows that the drive is ours.
func zeroSamples(ctx context.Context, disk host.Disk) error {
	for _, at := range content.Samples(disk.Size()) {
		if err := disk.Zero(ctx, at, content.SampleSize); err != nil {
			return err
		}
	}
	return disk.Sync()
}

// emptyOurs reports whether a drive holds only our table, without a partition.
func emptyOurs(disk host.Disk, d *drivebay.Drive, c drivebay.Content) bool {
	if c.Kind != drivebay.ContentForeign || !onlyTable(c) || !blankButTable(disk, content.Detect) {
		return false
	}
	t, err := gpt.Read(disk)
	return err == nil && len(t.Partitions) == 0 && t.GUID == tableGUID(d.ID)
}

func onlyTable(c drivebay.Content) bool {
	return !slices.ContainsFunc(c.Signatures, func(s drivebay.Signature) bool {
		return s.Format != "gpt" && s.Format != "PMBR" && s.Format != "unrecognised data"
	})
}

// blankButTable reports whether a drive reads back blank except for the places of a partition
// table. Half of our table is no permission to overwrite the data beside it.
func blankButTable(disk host.Disk, detect func(io.ReaderAt, uint64, int) drivebay.Content) bool {
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

// begun reports whether a drive holds only what a loss of power left of our first table, or of
// the erasure of our last one. The record of the work has to name that step.
func (e *Engine) begun(disk host.Disk, d *drivebay.Drive, c drivebay.Content) bool {
	if !onlyTable(c) || !blankButTable(disk, content.DetectDrive) {
		return false
	}
	if e.begunByMove(disk, d, c) {
		return true
	}
	for _, r := range e.all() {
		m := moveOf(r)
		if r.Work == nil || !slices.Contains(r.Volume.Location.Drives, d.ID) && (m == nil || m.From.Drives[0] != d.ID && m.To.Drives[0] != d.ID) {
			continue
		}
		t, err := newTable(disk, d)
		if err != nil {
			return false
		}
		switch {
		case slices.Contains(r.Work.Made, firstTable+d.ID):
			n := ofVolume(r)
			if m != nil {
				n = entryOfMove(r)
			}
			if uuid := r.Work.PVs[d.ID]; uuid != "" {
				n = entryOfPV(r.Volume.ID, d.ID, uuid)
			}
			if n.size == 0 {
				n.size = t.Largest(gpt.Align).Size
			}
			if _, err := n.addTo(t, n.size); err != nil {
				continue
			}
			if begun, err := t.Begun(disk); err == nil && begun {
				return true
			}
		case slices.Contains(r.Work.Made, noTable+d.ID):
			if _, err := gpt.Read(disk); errors.Is(err, gpt.ErrNone) && len(c.Signatures) == 1 && c.Signatures[0].Format == "PMBR" {
				return true
			}
		}
	}
	return false
}

// begunByMove reports the same for a drive that a group moves to or from. The move is recorded
// before anything is done to the drive.
func (e *Engine) begunByMove(disk gpt.Disk, d *drivebay.Drive, c drivebay.Content) bool {
	vg, is := e.placementView().moving[d.ID]
	if !is {
		return false
	}
	t, err := newTable(disk, d)
	if err != nil {
		return false
	}
	n := entryOfPV("", d.ID, pvUUID(vg, d.ID))
	if _, err := n.addTo(t, t.Largest(gpt.Align).Size); err != nil {
		return false
	}
	if begun, err := t.Begun(disk); err == nil && begun {
		return true
	}
	_, err = gpt.Read(disk)
	return errors.Is(err, gpt.ErrNone) && len(c.Signatures) == 1 && c.Signatures[0].Format == "PMBR"
}

func cannotBlank(c drivebay.Content) error {
	if c.Reason != "" {
		return fmt.Errorf("what is written on it %w: %s", host.ErrUnreadable, c.Reason)
	}
	return errors.New("something that is not ours is written on it: " + formats(c))
}

// reserve marks as taken the range behind each partition that is to grow, until release is
// called.
func (e *Engine) reserve(t *gpt.Table) (release func()) {
	sizes := map[string]uint64{}
	keep := func(p gpt.Partition, end uint64) {
		if _, kept := sizes[p.GUID]; !kept {
			sizes[p.GUID] = p.Size
		}
		_ = t.Grow(p.GUID, max(p.Size, end-min(end, p.Start))) // if the range is not free, nothing is reserved
	}
	all := e.all()
	for _, r := range all {
		if p, ok := t.Find(r.Volume.Location.Partition); ok && r.Work != nil && r.Work.Op == drivebay.WorkExpand {
			keep(p, p.Start+sizeOfWork(r))
		}
		g, room := growingBeside(all, r)
		if room == nil {
			continue
		}
		p, ok := t.Find(g.Volume.Location.Partition)
		if !ok {
			continue
		}
		end := p.Start + room.Size + overhead(g.Volume.LUKSUUID)
		if old, there := t.Find(moveOf(r).From.Partition); there && old.Start > p.Start {
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

// noRoom adds ErrNoSpace to the table's error for a lack of space.
func noRoom(err error) error {
	if errors.Is(err, gpt.ErrNoRoom) {
		return fmt.Errorf("%w: %w", drivebay.ErrNoSpace, err)
	}
	return err
}
