package volume

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// Unclaimed means untouched. Everything that writes to a drive, a partition or a logical
// volume, by itself or by a program, has the device from openForWriting, or runs LVM by
// lvmRun. Staging and publishing need no claim: they hand out what is there.

// writeTarget is a device that is to be opened for writing.
type writeTarget struct {
	device
	drives []string // that it stands on, by their records; none: it is only read
	on     string   // the drive that the open device is proved to be on; empty: its number and name say enough
	whole  uint64   // size that a whole drive must have; 0: no whole drive
	alone  bool     // nothing else may have it open or be shown it
}

// openForWriting opens a device for writing, once its drives are claimed and the open
// device is proved to be the one that was meant.
func (e *Engine) openForWriting(ctx context.Context, t writeTarget) (host.Disk, error) {
	if err := e.mayWrite(t.drives...); err != nil {
		return nil, err
	}
	disk, err := e.machine.OpenDisk(ctx, t.dev, t.alone)
	if err != nil {
		return nil, err
	}
	switch {
	case t.num != "" && disk.DevNum() != t.num:
		err = fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, t.dev)
	case t.on != "":
		err = e.drives.Same(ctx, t.on, disk.DevNum())
	}
	if err == nil && t.whole > 0 && disk.Size() != t.whole {
		err = fmt.Errorf("drive %s: %w: it has %d bytes and not %d", t.on, drivebay.ErrRefused, disk.Size(), t.whole)
	}
	if err == nil && t.alone {
		err = e.shownNowhere(ctx, device{num: disk.DevNum(), name: path.Base(t.dev)})
	}
	if err == nil {
		err = ctx.Err() // the caller may have given up: the device must not stay open
	}
	if err != nil {
		disk.Close()
		return nil, err
	}
	return disk, nil
}

// shownNowhere wants no path to show a device. A pod opens the node of a block volume
// without O_EXCL, and opens it again when it likes: so
// O_EXCL does not tell that it is in use (open(2)). The node of a drive that was removed counts
// as well: it may have the number of this device.
func (e *Engine) shownNowhere(ctx context.Context, d device) error {
	t, err := e.freshTable(ctx)
	if err != nil {
		return err
	}
	if shown := t.of(d); len(shown) > 0 {
		return fmt.Errorf("%s: %w: it is mounted at %s", d.name, drivebay.ErrBusy, shown[0].Target)
	}
	return nil
}

// mayWrite refuses a drive that is here and not claimed, and one that another drive is a
// copy of.
func (e *Engine) mayWrite(drives ...string) error {
	s := e.drives.Snapshot()
	for _, id := range drives {
		if d, known := driveOf(s, id); known && d.Claim == nil && d.Status == drivebay.StatusOnline {
			return fmt.Errorf("drive %s (%s): %w: it is not claimed, and nothing is written to it: `drivebay claim %s`", d.ID, d.Name, drivebay.ErrRefused, d.ID)
		}
	}
	return e.trusted(drives)
}

// mayChange refuses to grow, move or remove a volume on a drive that is not claimed.
func (e *Engine) mayChange(id string) error {
	r, err := e.record(id)
	if err != nil {
		return err
	}
	return e.mayWrite(r.Volume.Location.Drives...)
}

// lvmRun changes the volume group of a location: on claimed drives, while LVM reports all
// that the records say is in the group, and no extents are given to a volume in which
// another one has left data that are to be wiped.
func (e *Engine) lvmRun(ctx context.Context, l drivebay.Location, steps []lvm.Step) error {
	guarded := make([]lvm.Step, len(steps))
	for i, s := range steps {
		may := s.May
		s.May = func(r *lvm.Report) error {
			if err := e.intact(l, r); err != nil {
				return err
			}
			if s.Allocates {
				if err := e.unwiped(l, r); err != nil {
					return err
				}
			}
			if may == nil {
				return nil
			}
			return may(r)
		}
		guarded[i] = s
	}
	if !travels(l) && slices.ContainsFunc(steps, func(s lvm.Step) bool { return s.Allocates }) {
		if err := e.wipeFree(ctx, l); err != nil {
			return err
		}
	}
	return e.lvmWithoutLost(ctx, l, guarded)
}

// lvmWithoutLost changes a volume group that has lost a drive for good: what was on that
// drive is in the records still, and not in the group.
func (e *Engine) lvmWithoutLost(ctx context.Context, l drivebay.Location, steps []lvm.Step) error {
	if err := e.mayWrite(l.Drives...); err != nil {
		return err
	}
	return e.lvmActivate(ctx, l, steps)
}
