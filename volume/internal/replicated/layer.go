package replicated

import (
	"context"
	"errors"
	"fmt"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/replication"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/mounttable"
)

// layer is the DRBD device of a volume.
type layer struct {
	e     *Devices
	v     *drivebay.Volume
	below device.Stack
}

// Layer returns the DRBD device of a volume; nil: it is not replicated.
func (e *Devices) Layer(v *drivebay.Volume, below device.Stack) device.Layer {
	if !v.Replicated() || v.Replication.Ended && v.CSIStatus == drivebay.CSIRemoving { // the removal works on the piece
		return nil
	}
	return &layer{e, v, below}
}

// State returns the DRBD device, also one that works with the disk of the peer because its own is gone.
func (l *layer) State() (mounttable.Device, error) {
	d, err := l.attached()
	if errors.Is(err, drivebay.ErrNotFound) {
		if d, remote := l.e.remote(l.v); remote {
			return d, nil
		}
	}
	return d, err
}

// attached returns the DRBD device above the piece.
func (l *layer) attached() (mounttable.Device, error) {
	d, err := l.below.State()
	if err != nil {
		return mounttable.Device{}, err
	}
	return l.e.deviceOn(d, l.v)
}

// remoteIn reports whether a volume works with the disk of its peer by what the kernel says.
func remoteIn(st drbd.Status, v *drivebay.Volume) bool {
	return st.Resource == resourceOf(v) && (replication.View{Status: st}).Remote()
}

// remote returns the DRBD device of a primary that works with the disk of its peer. Nothing in sysfs says whose device that is: it is
// what the kernel said when it was asked last, because asking may wait for a disk of another volume.
func (e *Devices) remote(v *drivebay.Volume) (mounttable.Device, bool) {
	if v.Replication == nil || !v.Replication.Primary || !v.Replication.Behind || !e.seen.IsRemote(v.ID) {
		return mounttable.Device{}, false
	}
	d, err := e.Device.Named(fmt.Sprintf("drbd%d", v.Replication.Minor))
	return d, err == nil && d.Size > 0
}

// Remote reports whether the volume works with the disk of its peer.
func (l *layer) Remote() bool { _, remote := l.e.remote(l.v); return remote }

// Open attaches the disk, and gives it back the role of primary. A secondary is not opened, not to be read either: what it
// shows changes below the reader.
func (l *layer) Open(ctx context.Context, _ device.Opening) (mounttable.Device, error) {
	if l.v.Replication.Ended {
		return mounttable.Device{}, fmt.Errorf("volume %s: %w: %s", l.v.ID, drivebay.ErrRefused, Incomplete(l.v))
	}
	secondary := fmt.Errorf("volume %s: %w: its replication is secondary here: promote it first", l.v.ID, drivebay.ErrRefused)
	if !l.v.Replication.Primary {
		return mounttable.Device{}, secondary
	}
	k, err := l.e.kernel(ctx)
	if err != nil {
		return mounttable.Device{}, err
	}
	defer k.Close()
	if err := l.e.attach(ctx, k, l.v, l.below); err != nil {
		if d, remote := l.e.remote(l.v); remote {
			return d, nil
		}
		return mounttable.Device{}, err
	}
	if !l.v.Replication.Primary { // the peer was promoted meanwhile
		return mounttable.Device{}, secondary
	}
	return l.State()
}

// Incomplete is why a volume cannot be used whose replication has ended, with the ways out.
func Incomplete(v *drivebay.Volume) string {
	return fmt.Sprintf("%s: enable it again with the role target, delete the volume, or use its data as they are after `drivebay volume accept-loss %s --yes`", v.Replication.Why(), v.ID)
}

// Close does nothing: the peer gets the writes of the other side whether the volume is staged here or not.
func (l *layer) Close(context.Context) error { return nil }

// Stays means that the layers below stay open.
func (l *layer) Stays() bool { _, err := l.attached(); return err == nil }

// attach makes the DRBD device of a volume appear, with the role that the record says. What is done is left as it is.
func (e *Devices) attach(ctx context.Context, k drbd.Kernel, v *drivebay.Volume, below device.Stack) error {
	r, name := v.Replication, resourceOf(v)
	st, err := statusOf(ctx, k, v)
	e.seen.Works(v.ID, remoteIn(st, v))
	switch {
	case err != nil && !errors.Is(err, drbd.ErrNotFound):
		return fmt.Errorf("volume %s: %w", v.ID, inOurWords(err))
	case err != nil || st.State.Disk == drbd.Diskless:
		if err := errors.Join(k.NewResource(ctx, name), k.NewMinor(ctx, name, 0, r.Minor)); err != nil {
			return fmt.Errorf("volume %s: %w", v.ID, inOurWords(err))
		}
		if err := e.attachDisk(ctx, k, v, below); err != nil {
			return fmt.Errorf("volume %s: attach its piece to DRBD: %w", v.ID, inOurWords(err))
		}
	case e.replugged(v, below): // before a listing saw that the drive was gone, or while the peer was away
		if !mayDetach(st) {
			if err := k.Secondary(ctx, r.Minor); errors.Is(err, drbd.ErrInUse) { // until nothing has it open
				break
			} else if err != nil {
				return fmt.Errorf("volume %s: %w", v.ID, inOurWords(err))
			}
			st.State.Role = drbd.RoleSecondary // the piece has all that was written, and is primary again below
		}
		if err := e.detach(ctx, k, v, st); err != nil {
			return err
		}
		if err := e.attachDisk(ctx, k, v, below); err != nil {
			return fmt.Errorf("volume %s: attach its piece to DRBD again: %w", v.ID, inOurWords(err))
		}
	}
	if err := e.role(ctx, k, v); err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, inOurWords(err))
	}
	return nil
}

// replugged reports whether DRBD has a device that is gone, while the piece of the volume is here as another device. A logical volume leads to the
// drives that it was activated on: it is activated again once DRBD has closed it.
func (e *Devices) replugged(v *drivebay.Volume, below device.Stack) bool {
	if e.stands(v) {
		return false
	}
	if v.Location.OnLVM() {
		return !e.Gone(v)
	}
	d, err := below.State()
	if err == nil {
		_, err = e.deviceOn(d, v)
		return errors.Is(err, drivebay.ErrNotFound)
	}
	return false
}

// errBehind is why a side does not become primary with what it has.
var errBehind = fmt.Errorf("%w: its own data are older than those of its peer, or may be: it is primary again once it is connected to the peer; "+
	"`drivebay replication promote --force` uses its data as they are", drivebay.ErrUnavailable)

// attachDisk proves that the piece is the volume's, that nothing has it open, and that its metadata are at the end of the
// piece, and attaches it. The disk stays open meanwhile, so that no other one gets its number.
func (e *Devices) attachDisk(ctx context.Context, k drbd.Kernel, v *drivebay.Volume, below device.Stack) error {
	r := v.Replication
	size := uint64(0)
	if err := e.Instances.NotRemoved(ctx, v.ID); err != nil { // the peer would take what is wiped in part for a copy
		return err
	}
	err := e.LUKS.On(ctx, v, below, true, func(_ context.Context, disk host.Disk) error { // drbdmeta works on a disk in use
		size = disk.Size()
		return nil
	})
	if err != nil {
		return err
	}
	err = e.LUKS.On(ctx, v, below, false, func(ctx context.Context, disk host.Disk) error {
		m, err := drbd.ReadMetadata(disk, size)
		var moved []byte
		if errors.Is(err, drbd.ErrNoMetadata) && r.Disk < size && e.Partitions.Marked(v) { // else its replication was disabled since the record was written
			if m, err = drbd.ReadMetadata(disk, r.Disk); err == nil { // the growth ended before the kernel moved them
				moved = drbd.MovedFrom(r.Disk)
			}
		}
		if err == nil && m.New() && r.Used { // as the source it would replace the data of its peer, or be used in their place
			err = e.believeMark(ctx, v)
		}
		if err != nil {
			return err
		}
		if err := e.drbdmeta(ctx, r.Minor, moved, drbd.ApplyActivityLog(r.Minor, disk.Path())); err != nil {
			return err
		}
		return k.Attach(ctx, r.Minor, drbd.Backing{Disk: disk.Path(), Bytes: min(drbd.DeviceFor(max(dataOf(v), m.Bytes)), drbd.DeviceIn(size)), MaxResyncRate: r.MaxResyncRate})
	})
	if err != nil || size == r.Disk {
		return err
	}
	return e.settle(ctx, v, below, size)
}

// role gives an attached device the role of the record. The side that holds the data gets a generation of its own
// before it is connected for the first time: without one, the first peer that has one would replace them.
func (e *Devices) role(ctx context.Context, k drbd.Kernel, v *drivebay.Volume) error {
	r := v.Replication
	st, err := statusOf(ctx, k, v)
	if err != nil {
		return err
	}
	if st.New() && r.HoldsData {
		if err := k.Primary(ctx, r.Minor, true); err != nil {
			return err
		}
		st.State.Role = drbd.RolePrimary
	}
	if r.HoldsData && !r.Used {
		if err := e.change(v, func(r *drivebay.Replication) { r.Used = true }); err != nil {
			return err
		}
		r = v.Replication
	}
	if r.Primary && st.State.Role != drbd.RolePrimary {
		if st, err = e.meet(ctx, k, v, st); err != nil {
			return err
		}
		if st.State.Connection >= drbd.Connected && st.State.Peer == drbd.RolePrimary {
			e.Log.Info("the peer was promoted meanwhile: the volume is secondary here", "op", "replication", "volume", v.ID)
			return e.change(v, func(r *drivebay.Replication) { r.Primary = false })
		}
		_, down := e.down.Load(v.ID)
		if (r.Behind || st.Demoted() && !down) && (st.State.Connection < drbd.Connected || st.State.PeerDisk != drbd.UpToDate) {
			return errBehind // a record that its metadata contradict is older than the demotion
		}
	}
	switch {
	case r.Primary && st.State.Role != drbd.RolePrimary:
		e.down.Delete(v.ID)
		return k.Primary(ctx, r.Minor, false)
	case !r.Primary && st.State.Role == drbd.RolePrimary:
		return e.onceClosed(ctx, func() error { return k.Secondary(ctx, r.Minor) })
	}
	return nil
}
