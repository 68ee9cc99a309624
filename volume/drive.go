package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// drive finds an online drive by its id.
func (e *Engine) drive(id string) (*drivebay.Drive, error) {
	d, ok := driveOf(e.drives.Snapshot(), id)
	switch {
	case !ok:
		return nil, fmt.Errorf("drive %s: %w", id, drivebay.ErrNotFound)
	case d.Status != drivebay.StatusOnline:
		return nil, fmt.Errorf("drive %s: %w", id, away("it is %v", d.Status))
	}
	return d, nil
}

// tableGUID returns the GUID of our partition table on a drive. It identifies an empty table
// that a killed process left.
func tableGUID(drive string) string { return drivebay.TableGUID(drive) }

// withTable opens a drive for writing, proves that it is the right drive and that everything on
// it is ours, and calls f with its table. For each drive, one call runs at a time.
func (e *Engine) withTable(ctx context.Context, id string, f func(context.Context, host.Disk, *gpt.Table) error) error {
	_, err := e.queryTable(ctx, id, func(ctx context.Context, disk host.Disk, t *gpt.Table) (bool, error) { return true, f(ctx, disk, t) })
	return err
}

// queryTable is withTable with an answer. The caller may be gone when the drive answers: so the
// answer is what f returns, not something that f writes to, and f is not called for a caller
// that is gone.
func (e *Engine) queryTable(ctx context.Context, id string, f func(context.Context, host.Disk, *gpt.Table) (bool, error)) (bool, error) {
	return through(ctx, e, "table "+id, tableTime, func(ctx context.Context) (bool, error) {
		disk, d, err := e.openDrive(ctx, id)
		if err != nil {
			return false, err
		}
		defer disk.Close()
		t, err := e.readOurs(disk, d)
		if err != nil {
			return false, err
		}
		e.keepTable(id, t.Partitions)
		if err := errors.Join(e.relistDrive(ctx, d), ctx.Err()); err != nil {
			return false, err
		}
		before := len(t.Partitions)
		yes, err := f(ctx, disk, t)
		e.keepTable(id, t.Partitions)
		if before == 0 && len(t.Partitions) > 0 { // it was blank; after its last partition, the table is erased next
			err = errors.Join(err, e.drives.Written(ctx, id))
		}
		return yes, errors.Join(err, e.relistDrive(ctx, d))
	})
}

// openDrive opens a drive exclusively while it has no partitions. The open device is proved to
// be the drive, whatever its name was a moment ago.
func (e *Engine) openDrive(ctx context.Context, id string) (host.Disk, *drivebay.Drive, error) {
	d, err := e.drive(id)
	if err != nil {
		return nil, nil, err
	}
	parts, err := listParts(e.machine, d.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("drive %s: partitions: %w", id, err)
	}
	disk, err := e.openForWriting(ctx, writeTarget{device: device{dev: "/dev/" + d.Name}, drives: []string{id}, on: id, whole: d.Size, alone: len(parts) == 0})
	if err != nil {
		return nil, nil, fmt.Errorf("drive %s: %w", id, err)
	}
	return disk, d, nil
}

// readOurs reads the table of a drive that is blank or ours, and refuses every other drive.
func (e *Engine) readOurs(disk host.Disk, d *drivebay.Drive) (*gpt.Table, error) {
	refuse := func(why string) (*gpt.Table, error) {
		return nil, fmt.Errorf("drive %s (%s): %w: %s", d.ID, d.Name, drivebay.ErrRefused, why)
	}
	c := content.DetectDrive(disk, disk.Size(), disk.BlockSize())
	if why := drivebay.CopyOf(d.ID, c, e.drives.Snapshot().Drives); why != "" {
		return refuse(why)
	}
	switch {
	case c.Beyond != "":
		return refuse(c.Beyond)
	case c.Kind == drivebay.ContentUnknown:
		return nil, fmt.Errorf("drive %s (%s): %w: what is written on it %w: %s", d.ID, d.Name, drivebay.ErrRefused, host.ErrUnreadable, c.Reason)
	case c.Kind == drivebay.ContentBlank || c.Kind == drivebay.ContentForeign && e.begun(disk, d, c):
		t, err := newTable(disk, d)
		if err != nil {
			return nil, err
		}
		return t, errors.Join(e.sameLayout(d, t, disk), e.holdsRecorded(d, t))
	}
	t, err := gpt.Read(disk)
	if err == nil {
		if err := e.sameLayout(d, t, disk); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Kind != drivebay.ContentOurs && !emptyOurs(disk, d, c):
		return refuse("something that is not ours is written on it: " + formats(c))
	case err != nil:
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
func (e *Engine) holdsRecorded(d *drivebay.Drive, t *gpt.Table) error {
	for _, u := range e.recordedOn(d.ID) {
		if err := u.inTable(fmt.Sprintf("drive %s (%s)", d.ID, d.Name), t); err != nil {
			return err
		}
	}
	return nil
}

func newTable(disk gpt.Disk, d *drivebay.Drive) (*gpt.Table, error) {
	t, err := gpt.New(disk)
	if err == nil {
		t.GUID = tableGUID(d.ID)
	}
	return t, err
}

func formats(c drivebay.Content) string {
	var out []string
	for _, s := range c.Signatures {
		out = append(out, s.Format)
	}
	return strings.Join(out, ", ")
}

// keepTable remembers a drive's partitions: the kernel does not know the names of those that
// the engine has added.
func (e *Engine) keepTable(drive string, parts []gpt.Partition) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tables[drive] = slices.Clone(parts)
}

// title fills in the names that the kernel does not know, from the table as it was last read.
// If one is missing there, it reads the table now.
func (e *Engine) title(ctx context.Context, d *drivebay.Drive, list []part) error {
	e.mu.Lock()
	known := e.tables[d.ID]
	e.mu.Unlock()
	fill(list, known)
	switch {
	case !slices.ContainsFunc(list, nameless) && slices.ContainsFunc(list, unidentified) && d.Content.Kind == drivebay.ContentOurs:
		if known, err := e.readTitles(ctx, d); err == nil { // else the name is enough until it is used
			fill(list, known)
		}
		return nil
	case !slices.ContainsFunc(list, nameless) || d.Content.Kind == drivebay.ContentForeign:
		return nil
	case d.Content.Kind != drivebay.ContentOurs: // a drive that was blank was read before it had partitions
		return fmt.Errorf("%w: %s", drivebay.ErrUnavailable, notReadYet(d))
	case stuck(*d):
		return fmt.Errorf("%w: it does not answer", drivebay.ErrUnavailable)
	}
	known, err := e.readTitles(ctx, d)
	fill(list, known)
	return err
}

func nameless(p part) bool { return p.title == "" }

// unidentified reports whether only the name of a volume's partition is known.
func unidentified(p part) bool { return p.guid == "" && idOfPartition(p.title) != "" }

func fill(list []part, known []gpt.Partition) {
	for i := range list {
		for _, k := range known {
			p := &list[i]
			if k.Number != p.number || k.Start != p.start || !sameGUID(p.guid, k.GUID) {
				continue
			}
			if p.title == "" {
				p.title = k.Name
			}
			if p.title == k.Name {
				p.guid, p.kind = k.GUID, k.Type
			}
		}
	}
}

// readTitles reads the table of a drive, and writes nothing.
func (e *Engine) readTitles(ctx context.Context, d *drivebay.Drive) ([]gpt.Partition, error) {
	return through(ctx, e, "read "+d.ID, listTime, func(ctx context.Context) ([]gpt.Partition, error) {
		drive, err := e.machine.OpenDrive(ctx, "/dev/"+d.Name)
		if err != nil {
			return nil, fmt.Errorf("drive %s: %w", d.ID, err)
		}
		defer drive.Close()
		t, err := gpt.Read(onlyRead{drive, d})
		if errors.Is(err, gpt.ErrNone) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("drive %s: %w", d.ID, err)
		}
		e.keepTable(d.ID, t.Partitions)
		return t.Partitions, nil
	})
}

// onlyRead is a drive that was opened for reading, as a disk.
type onlyRead struct {
	host.Drive
	d *drivebay.Drive
}

func (r onlyRead) Size() uint64   { return r.d.Size }
func (r onlyRead) BlockSize() int { return max(r.d.LogicalBlock, 512) }
func (r onlyRead) Sync() error    { return nil }
func (r onlyRead) WriteAt([]byte, int64) (int, error) {
	return 0, fmt.Errorf("drive %s: %w: it was opened to be read", r.d.ID, drivebay.ErrRefused)
}
