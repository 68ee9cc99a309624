package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/gpt"
	"github.com/drivebay/drivebay/internal/host"
)

// blank makes a drive blank again when its last partition has gone.
func (e *Engine) blank(id string) step {
	with := func(ctx context.Context, f func(host.Disk, *drivebay.Drive) error) error {
		_, err := through(ctx, e, "table "+id, tableTime, func(ctx context.Context) (struct{}, error) {
			disk, d, err := e.openDrive(ctx, id)
			if err != nil {
				return struct{}{}, err
			}
			defer disk.Close()
			return struct{}{}, f(disk, d)
		})
		return err
	}
	return step{
		name: "blank " + id,
		done: func(ctx context.Context) (done bool, err error) {
			err = with(ctx, func(disk host.Disk, d *drivebay.Drive) error {
				c := content.Detect(disk, disk.Size(), disk.BlockSize())
				done = c.Kind == drivebay.ContentBlank || c.Kind == drivebay.ContentOurs
				if !done && !emptyOurs(disk, d, c) {
					return fmt.Errorf("drive %s (%s): %w: %s", d.ID, d.Name, drivebay.ErrRefused, cannotBlank(c))
				}
				return nil
			})
			return done, err
		},
		do: func(ctx context.Context) error {
			return with(ctx, func(disk host.Disk, _ *drivebay.Drive) error { return gpt.Erase(disk) })
		},
	}
}

// emptyOurs says whether all that is written on a drive is a table of ours without
// a partition, or what an erasure that was cut short has left of it.
func emptyOurs(disk host.Disk, d *drivebay.Drive, c drivebay.Content) bool {
	if c.Kind != drivebay.ContentForeign || len(c.Signatures) != 1 {
		return false
	}
	t, err := gpt.Read(disk)
	if errors.Is(err, gpt.ErrNone) {
		return c.Signatures[0].Format == "PMBR"
	}
	return err == nil && len(t.Partitions) == 0 && t.GUID == tableGUID(d.ID)
}

func cannotBlank(c drivebay.Content) string {
	if c.Reason != "" {
		return "what is written on it cannot be read: " + c.Reason
	}
	return "something that is not ours is written on it: " + formats(c)
}

// reserve keeps the range behind each partition that is to grow into it: it counts
// as taken until release.
func (e *Engine) reserve(t *gpt.Table) (release func()) {
	sizes := map[string]uint64{}
	for _, r := range e.all() {
		if p, ok := t.FindName(partitionName(r.Volume.ID)); ok && r.Work != nil && r.Work.Op == drivebay.WorkExpand {
			sizes[p.GUID] = p.Size
			_ = t.Grow(p.GUID, max(p.Size, r.Work.Size)) // where that is not free, nothing is kept
		}
	}
	return func() {
		for i := range t.Partitions {
			if size, grown := sizes[t.Partitions[i].GUID]; grown {
				t.Partitions[i].Size = size
			}
		}
	}
}

// noRoom puts the table's word for a lack of space in ours.
func noRoom(err error) error {
	if errors.Is(err, gpt.ErrNoRoom) {
		return fmt.Errorf("%w: %w", drivebay.ErrNoSpace, err)
	}
	return err
}
