package replicated

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/device"
)

// GrowSecondary moves the metadata of a volume that is not primary here to the end of its piece: then the primary can
// grow, where it is staged, and the secondary grows with it. The device keeps its size until then.
func (e *Replicator) GrowSecondary(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil || !rec.Volume.Replicates() || rec.Volume.Replication.Primary {
		return err
	}
	l := &layer{e.Devices, &rec.Volume, e.belowOf(&rec.Volume)}
	piece, err := l.below.State()
	if err != nil || piece.Size == l.v.Replication.Disk {
		return err
	}
	is, err := l.attached()
	if errors.Is(err, drivebay.ErrNotFound) { // they are moved when it is attached
		return nil
	}
	if err != nil {
		return err
	}
	k, err := e.kernel(ctx)
	if err != nil {
		return err
	}
	defer k.Close()
	st, err := statusOf(ctx, k, l.v)
	if err == nil && st.State.Connection < drbd.Connected { // the size that it wants counts when the peer connects: it may have been too small
		is.Size = max(is.Size, drbd.DeviceFor(dataOf(l.v)))
	}
	if err == nil {
		err = k.Resize(ctx, l.v.Replication.Minor, is.Size)
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", id, inOurWords(err))
	}
	return e.settle(ctx, l.v, l.below, piece.Size)
}

// MayGrow refuses to grow the piece of a volume whose metadata are not known to be at the end of the piece: where the growth
// before was cut short, the next one would leave two places at which they may be.
func (e *Replicator) MayGrow(ctx context.Context, v drivebay.Volume) error {
	if !v.Replicated() {
		return e.refuseWithoutRecord(ctx, &v)
	}
	if v.Replication.Ended {
		return fmt.Errorf("%w: %s", drivebay.ErrRefused, Incomplete(&v))
	}
	d, err := e.belowOf(&v).Ready(ctx)
	if err != nil || d.Size == v.Replication.Disk {
		return err
	}
	if err := e.settle(ctx, &v, e.belowOf(&v), d.Size); err != nil {
		return fmt.Errorf("%w: its last growth is not complete: %w", drivebay.ErrPending, err)
	}
	return nil
}

// refuseWithoutRecord refuses to grow the piece of a volume that has metadata of DRBD at its end, and whose record does not say that it is
// replicated: after the growth they are not at the end any more, and nothing else refuses to mount an incomplete copy. One
// that is staged was looked at then. A piece that cannot be read refuses nothing.
func (e *Replicator) refuseWithoutRecord(ctx context.Context, v *drivebay.Volume) error {
	if v.Replication == nil && e.Partitions.Marked(v) {
		return e.believeMark(ctx, v)
	}
	if v.Replication != nil || v.Rest() != drivebay.CSICreated || !v.HasFilesystem() && !v.Encrypted() {
		return nil
	}
	fs := v.FSType
	if v.Encrypted() {
		fs = ""
	}
	var why error
	if err := e.LUKS.On(ctx, v, e.belowOf(v), false, func(_ context.Context, disk host.Disk) error {
		why = device.RefuseReplicated(disk, fs)
		return nil
	}); err != nil {
		return nil
	}
	return errors.Join(why, e.Mounts.DeactivateUnused(ctx, v))
}

// Grow moves the metadata to the end of the piece, and makes the device as large as the volume, which the peer's disk
// has to allow.
func (l *layer) Grow(ctx context.Context, _ device.Opening) error {
	if is, remote := l.e.remote(l.v); remote {
		if is.Size < drbd.DeviceFor(dataOf(l.v)) {
			return fmt.Errorf("volume %s: %w: its drive is gone, and its device grows when the drive is back", l.v.ID, drivebay.ErrPending)
		}
		return nil
	}
	d, err := l.below.State()
	if err != nil {
		return err
	}
	is, err := l.attached()
	if errors.Is(err, drivebay.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	want := drbd.DeviceFor(dataOf(l.v))
	if d.Size == l.v.Replication.Disk && is.Size >= want {
		return nil
	}
	k, err := l.e.kernel(ctx)
	if err != nil {
		return err
	}
	defer k.Close()
	// One request for both: the peer's answer to an earlier one for the old size would make the device smaller again.
	if err := k.Resize(ctx, l.v.Replication.Minor, max(want, is.Size)); err != nil {
		return fmt.Errorf("volume %s: %w", l.v.ID, inOurWords(err))
	}
	if err := l.e.settle(ctx, l.v, l.below, d.Size); err != nil {
		return err
	}
	if is, err = l.attached(); err == nil && is.Size < want {
		return fmt.Errorf("volume %s: %w: its device does not grow before the volume of the peer has grown and is connected; it grows when it is staged the next time", l.v.ID, drivebay.ErrPending)
	}
	return err
}

// settle records that the metadata are at the end of a piece that has grown, once they are. What the kernel left at the old
// end stays: the device may show that range already.
func (e *Devices) settle(ctx context.Context, v *drivebay.Volume, below device.Stack, size uint64) error {
	if size == v.Replication.Disk {
		return nil
	}
	err := e.LUKS.On(ctx, v, below, false, func(_ context.Context, disk host.Disk) error {
		_, err := drbd.ReadMetadata(disk, size)
		return err
	})
	if err != nil {
		return fmt.Errorf("volume %s: metadata of DRBD after its growth: %w", v.ID, inOurWords(err))
	}
	return e.change(v, func(r *drivebay.Replication) { r.Disk = size })
}
