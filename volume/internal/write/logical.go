package write

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/content"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// HalfMade reports whether a logical volume is being made: only then is it cleared.
func (e *Writer) HalfMade(v *drivebay.Volume) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		r, err := e.Groups.ReportOf(ctx, v.Location)
		if err != nil {
			return false, err
		}
		lv := partitions.LVOf(r, v.Location)
		return lv != nil && slices.Contains(lv.Tags, groups.StateTag()), nil
	}
}

// VerifyPVPartition refuses the partition of a physical volume unless it is blank or holds that physical
// volume. It was blank before it was in the table, and another creation at the same time may have made the
// physical volume since.
func (e *Writer) VerifyPVPartition(drive, uuid string) steps.Step {
	fits := func(_ context.Context, disk host.Disk) error {
		c := content.DetectDrive(disk, disk.Size(), disk.BlockSize())
		is := func(s drivebay.Signature) bool {
			return s.Format == "LVM2_member" && strings.ReplaceAll(s.UUID, "-", "") == strings.ReplaceAll(uuid, "-", "")
		}
		if c.Kind == drivebay.ContentBlank || c.Reason == "" && slices.ContainsFunc(c.Signatures, is) {
			return nil
		}
		return fmt.Errorf("drive %s: its physical volume: %w: it is not blank: %w", drive, drivebay.ErrRefused, erase.CannotBlank(c))
	}
	return steps.Step{Name: "fit " + ledger.PVName(uuid), Done: func(ctx context.Context) (bool, error) {
		p, ok := e.Groups.PVPart(drive)
		if !ok {
			return false, fmt.Errorf("drive %s: its physical volume: %w", drive, drivebay.ErrNotFound)
		}
		t := device.WriteTarget{Device: p.Device, Drives: []string{drive}, On: drive}
		return true, e.Erase.OnDisk(ctx, "volume "+p.Title, t, fits)
	}}
}

// clearRemoved clears the partition of a physical volume that was removed, unless it holds another one by
// now: none can be made while the device is open alone.
func (e *Writer) clearRemoved(ctx context.Context, drive string) error {
	p, ok := e.Groups.PVPart(drive)
	if !ok {
		return nil
	}
	t := device.WriteTarget{Device: p.Device, Drives: []string{drive}, On: drive, Alone: true}
	return e.Erase.OnDisk(ctx, "volume "+p.Title, t, func(ctx context.Context, disk host.Disk) error {
		if labelled, err := hasLabel(disk, 0); err != nil || labelled {
			return err
		}
		return erase.BlankStretch(ctx, disk, 0, disk.Size())
	})
}

// RestoreReturned plans to use the physical volumes again that LVM counts as missing and that are there:
// LVM changes no group while it counts any as missing. The activation of a mirror decides which of its
// legs are complete.
func RestoreReturned(g *lvm.Group) (plan []lvm.Step) {
	if g == nil {
		return nil
	}
	for _, p := range g.PVs {
		if p.Missing && p.Device != "" {
			plan = append(plan, lvm.RestoreMissing(g.Name, p.UUID)...)
		}
	}
	return plan
}
