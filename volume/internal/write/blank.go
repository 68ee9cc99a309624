package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// blank returns the step that blanks a drive when its last partition is gone.
func (e *Writer) blank(id, owner string) steps.Step {
	with := func(ctx context.Context, f func(context.Context, host.Disk, *drivebay.Drive) (bool, error)) (bool, error) {
		return steps.Through(ctx, e.Steps, "table "+id, steps.TableTime, func(ctx context.Context) (bool, error) {
			disk, d, err := e.Device.OpenDrive(ctx, id)
			if err != nil {
				return false, err
			}
			defer disk.Close()
			return f(ctx, disk, d)
		})
	}
	return steps.Step{
		Name: "blank " + id,
		Done: func(ctx context.Context) (bool, error) {
			return with(ctx, func(_ context.Context, disk host.Disk, d *drivebay.Drive) (bool, error) {
				c := content.Detect(disk, disk.Size(), disk.BlockSize())
				done := c.Kind == drivebay.ContentBlank || c.Kind == drivebay.ContentOurs
				if !done && !erase.EmptyOurs(disk, d, c) && !e.begun(disk, d, c) {
					return false, fmt.Errorf("drive %s (%s): %w: %w", d.ID, d.Name, drivebay.ErrRefused, erase.CannotBlank(c))
				}
				return done, nil
			})
		},
		Do: func(ctx context.Context) error {
			_, err := with(ctx, func(ctx context.Context, disk host.Disk, _ *drivebay.Drive) (bool, error) {
				switch t, err := gpt.Read(disk); {
				case err != nil && !errors.Is(err, gpt.ErrNone): // it may have partitions
					return false, err
				case err == nil && len(t.Partitions) > 0: // another volume was made meanwhile
					return false, nil
				}
				if err := errors.Join(ctx.Err(), e.Erase.RecordStep(owner, inventory.NoTable+id)); err != nil {
					return false, err
				}
				if err := erase.ZeroSamples(ctx, disk, 0, disk.Size()); err != nil {
					return false, err
				}
				return true, errors.Join(gpt.Erase(disk), e.Drives.Written(ctx, id))
			})
			return err
		},
	}
}

// begun reports whether a drive holds only what a loss of power left of our first table, or of
// the erasure of our last one. The record of the work has to name that step.
func (e *Writer) begun(disk host.Disk, d *drivebay.Drive, c drivebay.Content) bool {
	if !erase.OnlyTable(c) || !erase.BlankButTable(disk, content.DetectDrive) {
		return false
	}
	if e.begunByMove(disk, d, c) {
		return true
	}
	for _, r := range e.Ledger.All() {
		m := partitions.MoveOf(r)
		if r.Work == nil || !slices.Contains(r.Volume.Location.Drives, d.ID) && (m == nil || m.From.Drives[0] != d.ID && m.To.Drives[0] != d.ID) {
			continue
		}
		t, err := partitions.NewTable(disk, d)
		if err != nil {
			return false
		}
		switch {
		case slices.Contains(r.Work.Made, inventory.FirstTable+d.ID):
			n := OfVolume(r)
			if m != nil {
				n = EntryOfMove(r)
			}
			if uuid := r.Work.PVs[d.ID]; uuid != "" {
				n = EntryOfPV(r.Volume.ID, d.ID, uuid)
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
		case slices.Contains(r.Work.Made, inventory.NoTable+d.ID):
			if _, err := gpt.Read(disk); errors.Is(err, gpt.ErrNone) && len(c.Signatures) == 1 && c.Signatures[0].Format == "PMBR" {
				return true
			}
		}
	}
	return false
}

// begunByMove reports the same for a drive that a group moves to or from. The move is recorded
// before anything is done to the drive.
func (e *Writer) begunByMove(disk gpt.Disk, d *drivebay.Drive, c drivebay.Content) bool {
	vg, is := e.Inventory.PlacementView().Moving[d.ID]
	if !is {
		return false
	}
	t, err := partitions.NewTable(disk, d)
	if err != nil {
		return false
	}
	n := EntryOfPV("", d.ID, groups.PVUUID(vg, d.ID))
	if _, err := n.addTo(t, t.Largest(gpt.Align).Size); err != nil {
		return false
	}
	if begun, err := t.Begun(disk); err == nil && begun {
		return true
	}
	_, err = gpt.Read(disk)
	return errors.Is(err, gpt.ErrNone) && len(c.Signatures) == 1 && c.Signatures[0].Format == "PMBR"
}
