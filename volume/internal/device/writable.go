package device

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// The engine writes to no unclaimed drive. All code that writes to a drive, a partition or
// a logical volume, itself or by a program, gets the device from OpenForWriting, or runs
// LVM by LVMRun. All other code gets it from OpenSame, which needs no claim and returns a
// device that cannot be written: staging and publishing use what is there.

// WriteTarget is a device that is to be opened for writing.
type WriteTarget struct {
	mounttable.Device
	Drives []string // drives that it is on, by the records; none: it is only read
	On     string   // the drive that the open device is proved to be on; empty: its number is enough
	whole  uint64   // size that a whole drive must have; 0: no whole drive
	Alone  bool     // nothing else may have it open, and no mount may show it
}

// OpenForWriting opens a device for writing, if its drives are claimed and the open
// device is proved to be the intended one.
func (e *Opener) OpenForWriting(ctx context.Context, t WriteTarget) (host.Disk, error) {
	if err := e.MayWrite(t.Drives...); err != nil {
		return nil, err
	}
	disk, err := e.openProved(ctx, t)
	if err == nil && t.Alone {
		if err = e.shownNowhere(ctx, mounttable.Device{Num: disk.DevNum(), Name: path.Base(t.Dev)}); err == nil {
			err = ctx.Err()
		}
		if err == nil && t.whole == 0 && len(t.Drives) > 0 { // a publication that was cut short, or whose record was lost, can have left it read-only
			err = disk.SetReadOnly(false)
		}
		if err != nil {
			disk.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return claimedDisk{disk, func() error {
		if len(t.Drives) == 0 {
			return errReading
		}
		return e.MayWrite(t.Drives...)
	}}, nil
}

var errReading = fmt.Errorf("%w: the device is open for reading", drivebay.ErrRefused)

// OpenSame opens a device that no drive has to be claimed for, if it is still the one that has the number.
// Nothing can be written to it. With alone, nothing else may have it open.
func (e *Opener) OpenSame(ctx context.Context, d mounttable.Device, alone bool) (host.Disk, error) {
	return e.OpenProved(ctx, WriteTarget{Device: d, Alone: alone})
}

// OpenProved is OpenSame for a device that is also proved to be on its drive.
func (e *Opener) OpenProved(ctx context.Context, t WriteTarget) (host.Disk, error) {
	disk, err := e.openProved(ctx, t)
	if err != nil {
		return nil, err
	}
	return claimedDisk{disk, func() error { return errReading }}, nil
}

// OpenOf is OpenShown for the device that a volume had when it was looked up.
func (e *Opener) OpenOf(ctx context.Context, v *drivebay.Volume, was mounttable.Device) (host.Disk, error) {
	disk, err := e.openAgain(ctx, was, e.Stack(v).State)
	if err != nil {
		return nil, e.OrAway(v, err)
	}
	return disk, nil
}

// OpenShown is OpenSame for the device that look returns. It is looked up again while it is open: since it was looked up another drive
// can have got its name and its number, and its content need not show which volume it is.
func (e *Opener) OpenShown(ctx context.Context, look func() (mounttable.Device, error)) (host.Disk, error) {
	d, err := look()
	if err != nil {
		return nil, err
	}
	return e.openAgain(ctx, d, look)
}

func (e *Opener) openAgain(ctx context.Context, was mounttable.Device, look func() (mounttable.Device, error)) (host.Disk, error) {
	disk, err := e.OpenSame(ctx, was, false)
	if err != nil {
		return nil, err
	}
	is, err := look()
	if err == nil && is.Num != was.Num {
		err = fmt.Errorf("%w: its device was %s, and is %s now", drivebay.ErrBusy, was.Num, is.Num)
	}
	if err != nil {
		disk.Close()
		return nil, err
	}
	return disk, nil
}

// openProved opens a device, and proves that the open device is the intended one. Every device is opened
// here.
func (e *Opener) openProved(ctx context.Context, t WriteTarget) (host.Disk, error) {
	switch {
	case t.Dev == "":
		return nil, fmt.Errorf("device: %w", drivebay.ErrNotFound)
	case t.Num == "" && t.On == "":
		return nil, fmt.Errorf("%s: %w: neither its number nor its drive is known", t.Dev, drivebay.ErrRefused)
	}
	disk, err := e.Machine.OpenDisk(ctx, t.Dev, t.Alone)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Num != "" && disk.DevNum() != t.Num:
		err = fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, t.Dev)
	case t.On != "":
		err = e.Drives.ProveIdentity(ctx, t.On, disk.DevNum())
	}
	if err == nil && t.whole > 0 && disk.Size() != t.whole {
		err = fmt.Errorf("drive %s: %w: the device has %s, expected %s", t.On, drivebay.ErrRefused, partitions.SizeText(disk.Size()), partitions.SizeText(t.whole))
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

// claimedDisk is an open device that accepts writes while its drives are claimed: withdrawing
// the claim ends a copy or a wipe at its next piece. One that was opened for reading accepts none.
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

// shownNowhere refuses a device that a mount shows. A pod opens the node of a block volume
// without O_EXCL, and may close it and open it again: so O_EXCL does not show that it is in
// use (open(2)). The node of a removed drive counts as well: it may have the number of this
// device.
func (e *Opener) shownNowhere(ctx context.Context, d mounttable.Device) error {
	t, err := e.MountTable.FreshTable(ctx)
	if err != nil {
		return err
	}
	if shown := t.Of(d); len(shown) > 0 {
		return fmt.Errorf("%s: %w: it is mounted at %s", d.Name, drivebay.ErrBusy, shown[0].Target)
	}
	return nil
}

// MayWrite refuses a drive that is here and not claimed, and one that trusted refuses.
func (e *Opener) MayWrite(drives ...string) error {
	s := e.Drives.Snapshot()
	for _, id := range drives {
		if d, known := steps.DriveOf(s, id); known && d.Claim == nil && d.Status == drivebay.StatusOnline {
			return fmt.Errorf("drive %s (%s): %w: it is not claimed, and nothing is written to it: `drivebay claim %s`", d.ID, d.Name, drivebay.ErrRefused, d.ID)
		}
	}
	return e.Partitions.Trusted(drives)
}

// MayChange refuses to grow, move or remove a volume on a drive that is not claimed.
func (e *Opener) MayChange(id string) error {
	r, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	return e.MayWrite(r.Volume.Location.Drives...)
}

// LVMWithoutLost changes a volume group that has lost a drive for good: the records still have
// the volumes on that drive, the group does not.
func (e *Opener) LVMWithoutLost(ctx context.Context, l drivebay.Location, steps []lvm.Step) error {
	if err := e.MayWrite(l.Drives...); err != nil {
		return err
	}
	guarded := slices.Clone(steps)
	for i, s := range steps {
		guarded[i].May = func(r *lvm.Report) error { // the plan has waited for others of its group, and for LVM's report
			if err := e.MayWrite(l.Drives...); err != nil || s.May == nil {
				return err
			}
			return s.May(r)
		}
		guarded[i].Hold = func(ctx context.Context, devices []string) (func(), error) { return e.hold(ctx, l, devices) }
	}
	return e.Groups.LVMActivate(ctx, l, guarded)
}

// hold opens partitions of a location's physical volumes, and proves that each is on its drive. LVM opens them by their
// names, and labels what it finds there: while a device is open, the kernel gives its name to no other one (Linux,
// drivers/scsi/sd.c, scsi_disk_release; drivers/nvme/host/core.c, nvme_free_ns_head).
func (e *Opener) hold(ctx context.Context, l drivebay.Location, devices []string) (release func(), err error) {
	var held []host.Disk
	release = func() {
		for _, disk := range held {
			disk.Close()
		}
	}
	for _, id := range l.Drives {
		p, ok := e.Groups.PVPart(id)
		if !ok || !slices.Contains(devices, p.Dev) {
			continue
		}
		disk, err := e.OpenProved(ctx, WriteTarget{Device: p.Device, On: id})
		if err != nil {
			release()
			return nil, fmt.Errorf("drive %s: its physical volume: %w", id, err)
		}
		held = append(held, disk)
	}
	if len(held) < len(devices) {
		release()
		return nil, fmt.Errorf("%w: %v are not all on drives of volume group %s any more", drivebay.ErrRefused, devices, l.VG)
	}
	return release, nil
}
