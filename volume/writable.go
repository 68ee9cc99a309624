package volume

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// The engine writes to no unclaimed drive. All code that writes to a drive, a partition or
// a logical volume, itself or by a program, gets the device from openForWriting, or runs
// LVM by lvmRun. Staging and publishing need no claim: they use what is there.

// writeTarget is a device that is to be opened for writing.
type writeTarget struct {
	device
	drives []string // drives that it is on, by the records; none: it is only read
	on     string   // the drive that the open device is proved to be on; empty: its number and name are enough
	whole  uint64   // size that a whole drive must have; 0: no whole drive
	alone  bool     // nothing else may have it open, and no mount may show it
}

// openForWriting opens a device for writing, if its drives are claimed and the open
// device is proved to be the intended one.
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
		err = e.drives.ProveIdentity(ctx, t.on, disk.DevNum())
	}
	if err == nil && t.whole > 0 && disk.Size() != t.whole {
		err = fmt.Errorf("drive %s: %w: the device has %s, expected %s", t.on, drivebay.ErrRefused, sizeText(disk.Size()), sizeText(t.whole))
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
	if len(t.drives) == 0 {
		return disk, nil
	}
	return claimedDisk{disk, func() error { return e.mayWrite(t.drives...) }}, nil
}

// claimedDisk is an open device that accepts writes while its drives are claimed: withdrawing
// the claim ends a copy or a wipe at its next piece.
type claimedDisk struct {
	host.Disk
	mayWrite func() error
}

func (d claimedDisk) WriteAt(p []byte, off int64) (int, error) {
	if err := d.mayWrite(); err != nil {
		return 0, err
	}
	return d.Disk.WriteAt(p, off)
}

func (d claimedDisk) Zero(ctx context.Context, off, n uint64) error {
	if err := d.mayWrite(); err != nil {
		return err
	}
	return d.Disk.Zero(ctx, off, n)
}

func (d claimedDisk) Discard(ctx context.Context, off, n uint64) error {
	if err := d.mayWrite(); err != nil {
		return err
	}
	return d.Disk.Discard(ctx, off, n)
}

// movingGroup returns why the claim of a drive cannot be withdrawn now; "" if it can. The kernel
// continues a pvmove without the engine, and stopping it needs another write.
func (e *Engine) movingGroup(drive string) string {
	if e.ctx.Err() != nil { // the next engine decides by its own records
		return ""
	}
	for _, h := range e.groupsByName() {
		if isMoving(h.Location) && slices.Contains(h.Drives, drive) {
			return fmt.Sprintf("volume group %s is moving between drives %s: retry when it has moved, or take the move back with `drivebay cancel`", h.VG, strings.Join(h.Drives, ", "))
		}
	}
	return ""
}

// shownNowhere refuses a device that a mount shows. A pod opens the node of a block volume
// without O_EXCL, and may close it and open it again: so O_EXCL does not show that it is in
// use (open(2)). The node of a removed drive counts as well: it may have the number of this
// device.
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

// mayWrite refuses a drive that is here and not claimed, and one that trusted refuses.
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

// lvmRun changes the volume group of a location. It refuses if a drive is not claimed, if LVM
// does not report all volumes that the records have in the group, or if a volume would get
// extents with data that another one left and that is not wiped yet.
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
	if !isMoving(l) && slices.ContainsFunc(steps, func(s lvm.Step) bool { return s.Allocates }) {
		if err := e.wipeFree(ctx, l); err != nil {
			return err
		}
	}
	return e.lvmWithoutLost(ctx, l, guarded)
}

// lvmWithoutLost changes a volume group that has lost a drive for good: the records still have
// the volumes on that drive, the group does not.
func (e *Engine) lvmWithoutLost(ctx context.Context, l drivebay.Location, steps []lvm.Step) error {
	if err := e.mayWrite(l.Drives...); err != nil {
		return err
	}
	return e.lvmActivate(ctx, l, steps)
}
