package write

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/copies"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// WithTable opens a drive for writing, proves that it is the right drive and that everything on
// it is ours, and calls f with its table. For each drive, one call runs at a time.
func (e *Writer) WithTable(ctx context.Context, id string, f func(context.Context, host.Disk, *gpt.Table) error) error {
	_, err := e.QueryTable(ctx, id, func(ctx context.Context, disk host.Disk, t *gpt.Table) (bool, error) { return true, f(ctx, disk, t) })
	return err
}

// QueryTable is WithTable with an answer. The caller may be gone when the drive answers: so the
// answer is what f returns, not something that f writes to, and f is not called for a caller
// that is gone.
func (e *Writer) QueryTable(ctx context.Context, id string, f func(context.Context, host.Disk, *gpt.Table) (bool, error)) (bool, error) {
	return steps.Through(ctx, e.Steps, "table "+id, steps.TableTime, func(ctx context.Context) (bool, error) {
		disk, d, err := e.Device.OpenDrive(ctx, id)
		if err != nil {
			return false, err
		}
		defer disk.Close()
		t, err := e.ReadOurs(disk, d)
		if err != nil {
			return false, err
		}
		e.Partitions.KeepTable(id, t.Partitions)
		if err := errors.Join(e.Partitions.RelistDrive(ctx, d), ctx.Err()); err != nil {
			return false, err
		}
		before := len(t.Partitions)
		yes, err := f(ctx, disk, t)
		e.Partitions.KeepTable(id, t.Partitions)
		if before == 0 && len(t.Partitions) > 0 { // it was blank; after its last partition, the table is erased next
			err = errors.Join(err, e.Drives.Written(ctx, id))
		}
		return yes, errors.Join(err, e.Partitions.RelistDrive(ctx, d))
	})
}

// ReadOurs reads the table of a drive that is blank or ours, and refuses every other drive.
func (e *Writer) ReadOurs(disk host.Disk, d *drivebay.Drive) (*gpt.Table, error) {
	refuse := func(why string) (*gpt.Table, error) {
		return nil, fmt.Errorf("drive %s (%s): %w: %s", d.ID, d.Name, drivebay.ErrRefused, why)
	}
	c := content.DetectDrive(disk, disk.Size(), disk.BlockSize())
	if why := copies.Of(d.ID, c, e.Drives.Snapshot().Drives); why != "" {
		return refuse(why)
	}
	switch {
	case c.Beyond != "":
		return refuse(c.Beyond)
	case c.Kind == drivebay.ContentUnknown:
		return nil, fmt.Errorf("drive %s (%s): %w: its content %w: %s", d.ID, d.Name, drivebay.ErrRefused, host.ErrUnreadable, c.Reason)
	case c.Kind == drivebay.ContentBlank || c.Kind == drivebay.ContentForeign && e.begun(disk, d, c):
		t, err := partitions.NewTable(disk, d)
		if err != nil {
			return nil, err
		}
		return t, errors.Join(e.Partitions.SameLayout(d, t, disk), e.holdsRecorded(d, t))
	}
	t, err := gpt.Read(disk)
	if err == nil {
		if err := e.Partitions.SameLayout(d, t, disk); err != nil {
			return nil, err
		}
	}
	if c.Kind != drivebay.ContentOurs && !erase.EmptyOurs(disk, d, c) {
		if err == nil { // what the records name can be restored, or given up
			if err := e.holdsRecorded(d, t); err != nil {
				return nil, err
			}
		}
		return refuse("it has foreign content: " + partitions.Formats(c))
	}
	if err != nil {
		return refuse(err.Error())
	}
	for _, p := range t.Partitions {
		if !strings.HasPrefix(p.Name, content.OursPrefix) {
			return refuse(fmt.Sprintf("partition %d is not ours: %q", p.Number, p.Name))
		}
	}
	return t, e.holdsRecorded(d, t)
}

// holdsRecorded refuses a table, above all a new one, that lacks what the records name on the
// drive.
func (e *Writer) holdsRecorded(d *drivebay.Drive, t *gpt.Table) error {
	for _, u := range e.Inventory.RecordedOn(d.ID) {
		if err := u.InTable(fmt.Sprintf("drive %s (%s)", d.ID, d.Name), t, e.Groups.LVMNow().PVEnd(d.ID)); err != nil {
			return err
		}
	}
	return nil
}
