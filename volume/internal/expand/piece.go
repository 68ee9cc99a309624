package expand

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Piece returns the lowest layer of a volume: what it has of the drives.
func (e *Expander) Piece(v *drivebay.Volume) device.Layer { return e.piece(v) }

// piece is the lowest layer, with what a growth has to know of it.
type piece interface {
	device.Layer
	// unit returns the bytes of which the size is a multiple.
	unit() uint64
	// noRoom makes room for a size that the piece cannot have, where it can; have is what it can have.
	noRoom(s inventory.PlacementView, have, size uint64) error
}

func (e *Expander) piece(v *drivebay.Volume) piece {
	if v.Location.OnLVM() {
		return logicalVolume{e, v}
	}
	return partition{e, v}
}

// partition is the piece of a volume in a partition table.
type partition struct {
	e *Expander
	v *drivebay.Volume
}

// Drive returns the drive that the partition is on; "" if none is recorded.
func (p partition) Drive() string {
	if len(p.v.Location.Drives) == 0 {
		return ""
	}
	return p.v.Location.Drives[0]
}

func (p partition) State() (mounttable.Device, error) { return p.e.Device.Partition(p.v) }

func (p partition) Open(context.Context, device.Opening) (mounttable.Device, error) {
	return p.e.Mirror.IfTrusted(p.v, p.State)
}

func (p partition) Grow(ctx context.Context, _ device.Opening) error {
	rec, err := p.e.Ledger.Record(p.v.ID)
	if err != nil {
		return err
	}
	return p.e.Steps.Run(ctx, p.v.ID, p.e.growPartition(&rec))
}

func (p partition) unit() uint64 { return partitions.MiB }

// noRoom moves the volume, or the one behind it.
func (p partition) noRoom(s inventory.PlacementView, have, size uint64) error {
	return p.e.makeRoom(s, p.v, have, size)
}

// Close does nothing: the kernel shows a partition as long as its drive is there.
func (p partition) Close(context.Context) error { return nil }

// logicalVolume is the piece of a volume in a volume group.
type logicalVolume struct {
	e *Expander
	v *drivebay.Volume
}

func (l logicalVolume) State() (mounttable.Device, error) { return l.e.Device.LogicalVolume(l.v) }

func (l logicalVolume) Open(ctx context.Context, _ device.Opening) (mounttable.Device, error) {
	return l.e.Mirror.IfTrusted(l.v, func() (mounttable.Device, error) { return l.e.Mirror.Activate(ctx, l.v) })
}

// Grow extends the logical volume. It leaves no device of a volume that is not in use.
func (l logicalVolume) Grow(ctx context.Context, _ device.Opening) error {
	rec, err := l.e.Ledger.Record(l.v.ID)
	if err != nil {
		return err
	}
	if err := l.e.Steps.Run(ctx, l.v.ID, l.e.growLogical(&rec)); err != nil {
		if needsZeroes(l.v) && ctx.Err() == nil && !errors.Is(err, ledger.ErrStopped) {
			err = errors.Join(err, l.e.Steps.Run(ctx, l.v.ID, []steps.Step{l.e.Provision.DropReservations(l.v)}))
		}
		return err
	}
	if rec.Volume.Rest() != drivebay.CSICreated {
		return nil
	}
	l.e.Watch.StopScrub(ctx, l.v.ID)
	return l.e.Mounts.DeactivateUnused(ctx, l.v)
}

func (l logicalVolume) unit() uint64 { return lvm.ExtentSize }

func (l logicalVolume) noRoom(_ inventory.PlacementView, have, size uint64) error {
	if err := l.e.Provision.VerifyOnDrives(l.v); err != nil { // LVM does not report what it has
		return err
	}
	return fmt.Errorf("%w: requested %s, but the volume can have at most %s in its volume group", drivebay.ErrRange, partitions.SizeText(size), partitions.SizeText(have))
}

func (l logicalVolume) Close(ctx context.Context) error { return l.e.Mirror.Deactivate(ctx, l.v) }
