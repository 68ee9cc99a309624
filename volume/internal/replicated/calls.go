package replicated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/replication"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// View returns what the kernel says of a volume's replication; nil: it is not replicated.
func (e *Devices) View(ctx context.Context, k drbd.Kernel, v *drivebay.Volume) (*replication.View, error) {
	if !v.Replicates() {
		return nil, nil
	}
	// A demotion that was cut short has not recorded its role, and the peer is primary by now: the view shows the role of the kernel, so
	// that the demotion can be repeated. A volume whose drive is gone can be demoted as well.
	without := e.attach(ctx, k, v, e.belowOf(v))
	if without != nil && !errors.Is(without, drbd.ErrTwoPrimaries) && !errors.Is(without, errBehind) && !e.Gone(v) {
		return nil, without
	}
	st, err := statusOf(ctx, k, v)
	if err != nil {
		return nil, cmp.Or(without, fmt.Errorf("volume %s: %w", v.ID, inOurWords(err)))
	}
	return &replication.View{Status: st, Conflict: e.seen.Conflict(st, v.Replication.Conflict)}, nil
}

// Look is View for a caller that has not opened the kernel's DRBD.
func (e *Devices) Look(ctx context.Context, v drivebay.Volume) (*replication.View, error) {
	k, err := e.kernel(ctx)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	return e.View(ctx, k, &v)
}

// Gone reports whether the kernel lacks what the piece of a volume lies on. A mirror lies on each of its drives.
func (e *Devices) Gone(v *drivebay.Volume) bool {
	s, absent := e.Drives.Snapshot(), 0
	for _, id := range v.Location.Drives {
		if d, known := steps.DriveOf(s, id); !known || d.Status == drivebay.StatusOffline {
			absent++
		}
	}
	return s.Complete && absent > 0 && (v.Location.Kind != drivebay.LocationMirror || absent == len(v.Location.Drives))
}

// OnBadDrive reports whether a disk that DRBD detached stays so, because its drive is BAD: it would be detached again.
func OnBadDrive(v *drivebay.Volume, drives []drivebay.Drive) bool {
	return !v.Location.Mirrored() && slices.ContainsFunc(drives, func(d drivebay.Drive) bool {
		return d.Health == drivebay.HealthBad && slices.Contains(v.Location.Drives, d.ID)
	})
}

// LetGo detaches a volume from a drive that is gone. The kernel notices that only by the next write: until then both sides count as
// having the data.
func (e *Devices) LetGo(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	k, err := e.loaded()
	if err != nil {
		return nil // then there is no device
	}
	defer k.Close()
	v := &rec.Volume
	st, err := statusOf(ctx, k, v)
	if err != nil || st.State.Disk <= drbd.Diskless || !mayDetach(st) || e.stands(v) {
		return nil
	}
	return e.detach(ctx, k, v, st)
}

// mayDetach reports whether a disk can be detached: a primary without the disk of its peer has nothing to go on with, and keeps what it has.
func mayDetach(st drbd.Status) bool {
	return st.State.Role != drbd.RolePrimary || st.State.Connection >= drbd.Connected && st.State.PeerDisk == drbd.UpToDate
}

// detach detaches a volume from a disk that the kernel lacks. A primary is behind its peer from now on, which nothing but the record says after
// a restart: the metadata are on the disk.
func (e *Devices) detach(ctx context.Context, k drbd.Kernel, v *drivebay.Volume, st drbd.Status) error {
	if st.State.Role == drbd.RolePrimary {
		if err := e.change(v, func(r *drivebay.Replication) { r.Behind = true }); err != nil {
			return err
		}
	}
	e.Log.Warn("the drive of a replicated volume is gone: DRBD detaches it", "op", "replication", "volume", v.ID)
	if err := k.Detach(ctx, v.Replication.Minor, true); err != nil {
		return fmt.Errorf("volume %s: detach it from its drive, which is gone: %w", v.ID, inOurWords(err))
	}
	return nil
}

// stands reports whether the kernel has what is below the DRBD device of a volume, whatever drives the listing takes it for: the partition or
// drive, or a logical volume that stands on the drives that it needs.
func (e *Devices) stands(v *drivebay.Volume) bool {
	if v.Location.OnLVM() {
		_, err := e.Device.Device(v)
		return err == nil
	}
	below, _ := e.Machine.ReadDir(fmt.Sprintf("sys/class/block/drbd%d/slaves", v.Replication.Minor))
	return slices.ContainsFunc(below, func(name string) bool {
		_, err := e.Machine.ReadFile("sys/class/block/" + name + "/dev")
		return err == nil
	})
}

// Restore attaches a replicated volume after a restart, and connects it if the engine has the secret.
func (e *Devices) Restore(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err == nil && !e.Partitions.Marked(&rec.Volume) {
		if _, err := metadataOf(ctx, e, &rec.Volume); err != nil { // its replication was disabled since the record was written
			return err
		}
		err = e.Steps.Run(ctx, id, []steps.Step{e.Write.MarkReplicated("mark replicated", &rec.Volume, true)})
	}
	if err == nil {
		_, err = e.Look(ctx, rec.Volume)
	}
	if err == nil {
		err = e.reconnect(ctx, rec.Volume)
	}
	return err
}

// belowOf returns the layers below the DRBD device.
func (e *Devices) belowOf(v *drivebay.Volume) device.Stack { return e.Device.Stack(v).Piece() }

// decide opens the kernel's DRBD and asks package replication. The caller closes the kernel.
func (e *Replicator) decide(ctx context.Context, v *drivebay.Volume, c replication.Call) (drbd.Kernel, replication.Plan, error) {
	if err := e.Device.MayChange(v.ID); err != nil {
		return nil, 0, err
	}
	k, err := e.kernel(ctx)
	if err != nil {
		return nil, 0, err
	}
	c.VolumeID, c.Exists = v.ID, true
	if c.View, err = e.View(ctx, k, v); err == nil {
		if r := v.Replication; r != nil && c.Verb != replication.Enable {
			c.HoldsData = r.HoldsData
		}
		var plan replication.Plan
		if plan, err = replication.Decide(c); err == nil {
			return k, plan, nil
		}
	}
	return nil, 0, errors.Join(err, k.Close())
}

// connect lets a volume connect to its peer, if it does not already. A side whose data have no generation of their own is
// not connected.
func (e *Devices) connect(ctx context.Context, k drbd.Kernel, v *drivebay.Volume, secret drbd.Secret, discard bool) error {
	r := v.Replication
	st, err := statusOf(ctx, k, v)
	switch {
	case err != nil:
		return fmt.Errorf("volume %s: %w", v.ID, inOurWords(err))
	case st.State.Connection != drbd.StandAlone && !discard, secret == drbd.Secret{}:
		return nil
	case st.New() && r.HoldsData:
		return fmt.Errorf("volume %s: %w: its data have no generation of their own", v.ID, drivebay.ErrRefused)
	case discard:
		err = k.Disconnect(ctx, r.Local, r.Peer, true)
	}
	if err == nil {
		err = k.Connect(ctx, resourceOf(v), drbd.Peer{Local: r.Local, Remote: r.Peer, Protocol: drbd.ProtocolOf(r.Protocol), Secret: secret.For(pairOf(v)), DiscardMyData: discard})
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, inOurWords(err))
	}
	return nil
}

// Promote makes a volume primary, and connects it if the call has the secret. Force declares its data to be the current ones.
func (e *Replicator) Promote(ctx context.Context, v drivebay.Volume, force bool, secret drbd.Secret) error {
	k, plan, err := e.decide(ctx, &v, replication.Call{Verb: replication.Promote, Force: force, Secret: true})
	if err != nil {
		return err
	}
	defer k.Close()
	if plan == replication.BecomePrimary || plan == replication.BecomePrimaryByForce {
		if err := k.Primary(ctx, v.Replication.Minor, plan == replication.BecomePrimaryByForce); err != nil {
			return fmt.Errorf("volume %s: %w", v.ID, inOurWords(err))
		}
	}
	if err := e.change(&v, func(r *drivebay.Replication) {
		r.Primary, r.HoldsData, r.Behind = true, true, r.Behind && (!force || plan == replication.Nothing)
	}); err != nil {
		return err
	}
	if st, err := statusOf(ctx, k, &v); err != nil || st.State.Disk > drbd.Failed { // without a disk it was identified before
		if err := e.identify(ctx, &v); err != nil {
			return err
		}
	}
	return e.connect(ctx, k, &v, secret, false)
}

// Demote makes a volume secondary. It must not be in use.
func (e *Replicator) Demote(ctx context.Context, v drivebay.Volume, secret drbd.Secret) error {
	k, plan, err := e.decide(ctx, &v, replication.Call{Verb: replication.Demote, Secret: true})
	if err != nil {
		return err
	}
	defer k.Close()
	if v.Rest() != drivebay.CSICreated {
		return fmt.Errorf("%w: it is in use: unstage it first", drivebay.ErrRefused)
	}
	if plan == replication.BecomeSecondary {
		e.Watch.StopScrub(ctx, v.ID)
		if err := e.onceClosed(ctx, func() error { return k.Secondary(ctx, v.Replication.Minor) }); err != nil {
			return fmt.Errorf("volume %s: %w", v.ID, err)
		}
	}
	if err := e.change(&v, func(r *drivebay.Replication) { r.Primary = false }); err != nil {
		return err
	}
	return e.connect(ctx, k, &v, secret, false)
}

// Resync reconnects a secondary, and reports whether both sides have the same data. After a split brain, force gives up
// the data of this side.
func (e *Replicator) Resync(ctx context.Context, v drivebay.Volume, force bool, secret drbd.Secret) (ready bool, err error) {
	k, plan, err := e.decide(ctx, &v, replication.Call{Verb: replication.Resync, Force: force, Secret: true})
	if err != nil {
		return false, err
	}
	defer k.Close()
	if plan == replication.Nothing {
		return true, nil
	}
	return false, e.connect(ctx, k, &v, secret, plan == replication.DiscardLocal)
}
