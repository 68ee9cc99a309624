package replicated

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Disable gives the plain volume back, with its data. It keeps the room that the metadata had. Where the copy from the peer is not
// complete, or is known to be old, only the replication ends: the volume can be used when an operator accepts its data.
func (e *Replicator) Disable(ctx context.Context, v drivebay.Volume) error {
	if v.Replication == nil {
		return nil
	}
	if v.Replication.Ended {
		return e.DropEnded(ctx, v)
	}
	if !v.Replicated() {
		return e.giveUp(ctx, &v)
	}
	if err := e.Device.MayChange(v.ID); err != nil {
		return err
	}
	k, err := e.kernel(ctx)
	if err != nil {
		return err
	}
	defer k.Close()
	if v.Rest() != drivebay.CSICreated {
		return fmt.Errorf("%w: it is in use: unstage it first", drivebay.ErrRefused)
	}
	e.Watch.StopScrub(ctx, v.ID)
	view, err := e.View(ctx, k, &v)
	switch {
	case errors.Is(err, drbd.ErrNoMetadata): // the call is repeated after they were wiped
	case err != nil:
		return err
	case view.State.Disk <= drbd.Failed: // whether its data are complete is on the disk
		return fmt.Errorf("%w: its disk is missing: put its drive back, or `drivebay volume forget %s --yes` when it is gone for good", drivebay.ErrUnavailable, v.ID)
	case !view.Complete() || v.Replication.Behind:
		return e.end(ctx, k, &v)
	}
	if err := e.Steps.Run(ctx, v.ID, []steps.Step{e.takeDown(k, &v)}); err != nil {
		return err
	}
	return e.strip(ctx, &v)
}

// giveUp makes a plain volume of one that was being replicated. Its metadata, if they were written, were never in use: else its record is
// older than they are, and its replication is lost. Its mark, if it has one, would be newer than its record.
func (e *Replicator) giveUp(ctx context.Context, v *drivebay.Volume) error {
	if err := e.endGrowth(ctx, v); err != nil {
		return err
	}
	marked, err := e.Write.MarkReplicated("", v, true).Done(ctx)
	if err != nil {
		return err
	}
	if marked {
		if err := e.Device.MayChange(v.ID); err != nil {
			return err
		}
		used, err := metadataUsed(ctx, e.Devices, v)
		if err == nil && used {
			if err = e.believeMark(ctx, v); v.Replicated() {
				err = e.DropEnded(ctx, *v)
			}
		}
		if err != nil || used {
			return err
		}
		d, err := e.belowOf(v).Ready(ctx)
		if err != nil {
			return err
		}
		half := *v.Replication
		half.Disk, v.Replication = d.Size, &half
		if err := e.Steps.Run(ctx, v.ID, []steps.Step{e.wipe(v), e.Write.MarkReplicated("mark plain", v, false)}); err != nil {
			return err
		}
	}
	return e.plain(v, nil)
}

// endGrowth completes the growth that makes room for metadata: no other call does. One that cannot be completed stays a failure that an
// operator can retry.
func (e *Replicator) endGrowth(ctx context.Context, v *drivebay.Volume) error {
	if v.State().Status != drivebay.CSIResizing && v.State().Before != drivebay.CSIResizing {
		return nil
	}
	rec, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) (err error) {
		if r.Volume.CSIStatus == drivebay.CSIFailed {
			r.Volume, err = r.Volume.Moved(drivebay.CSIResize)
		}
		return err
	})
	if err == nil {
		*v = rec.Volume
		err = e.Expand.Enlarge(ctx, v.ID)
	}
	if errors.Is(err, drivebay.ErrTimeout) || errors.Is(err, drivebay.ErrUnavailable) || errors.Is(err, drivebay.ErrPending) {
		return err
	}
	return nil
}

// strip wipes the metadata of a volume without a DRBD device, and records that it is a plain one.
func (e *Devices) strip(ctx context.Context, v *drivebay.Volume) error {
	// After a growth that was cut short, the metadata are at the end of the piece, and what is at the end that the record says
	// is data by now, or they are still there.
	d, err := e.belowOf(v).Ready(ctx)
	if err == nil {
		err = e.settle(ctx, v, e.belowOf(v), d.Size)
	}
	plan := []steps.Step{e.wipe(v), e.Write.MarkReplicated("mark plain", v, false)}
	if errors.Is(err, drbd.ErrNoMetadata) {
		var marked bool
		if marked, err = e.Write.MarkReplicated("", v, true).Done(ctx); !marked { // its replication was disabled since the record was written
			plan = plan[1:]
		}
	}
	if err != nil {
		return err
	}
	// A copy from the peer has the filesystem or the encryption of the peer, which only a promotion has looked at. A volume without one
	// has failed.
	none := e.identifyOn(ctx, v, e.belowOf(v).State)
	if none != nil && !errors.Is(none, drivebay.ErrRefused) {
		return none
	}
	if err := e.Steps.Run(ctx, v.ID, plan); err != nil {
		return err
	}
	return e.plain(v, none)
}

// end takes the device of a volume down, and leaves its metadata.
func (e *Replicator) end(ctx context.Context, k drbd.Kernel, v *drivebay.Volume) error {
	err := e.change(v, func(r *drivebay.Replication) { r.Ended, r.Primary, r.HoldsData = true, false, false })
	if err != nil {
		return err
	}
	if err := e.Steps.Run(ctx, v.ID, []steps.Step{e.takeDown(k, v)}); err != nil {
		return err
	}
	e.seen.Forget(v)
	return nil
}

// Accept makes a plain volume of one whose replication has ended, with its data as they are.
func (e *Replicator) Accept(ctx context.Context, v drivebay.Volume) error {
	if err := e.Device.MayChange(v.ID); err != nil {
		return err
	}
	if err := e.notMounted(ctx, &v); err != nil {
		return err
	}
	if err := e.DropEnded(ctx, v); err != nil {
		return err
	}
	return e.strip(ctx, &v)
}

// DropEnded takes down the device of a volume whose replication has ended, if a call that was cut short has left one: the peer
// would go on to write to it.
func (e *Devices) DropEnded(ctx context.Context, v drivebay.Volume) error {
	if !v.Replicated() || !v.Replication.Ended {
		return nil
	}
	return e.Drop(ctx, v)
}

// Drop takes down the device of a volume, if it has one. Nothing is written to its drive.
func (e *Devices) Drop(ctx context.Context, v drivebay.Volume) error {
	if !v.Replicated() {
		return nil
	}
	k, err := e.loaded()
	if errors.Is(err, drbd.ErrUnavailable) || errors.Is(err, drbd.ErrOtherVersion) || errors.Is(err, drivebay.ErrNoSupport) {
		return nil // then there is no device
	}
	if err != nil {
		return err
	}
	defer k.Close()
	e.seen.Forget(&v)
	if st, err := statusOf(ctx, k, &v); err == nil && st.State.Role == drbd.RolePrimary {
		e.down.Store(v.ID, true)
	}
	return e.Steps.Run(ctx, v.ID, []steps.Step{e.takeDown(k, &v)})
}

// takeDown is the step after which a volume has no DRBD device.
func (e *Devices) takeDown(k drbd.Kernel, v *drivebay.Volume) steps.Step {
	return steps.Step{
		Name: "down",
		Done: func(ctx context.Context) (bool, error) {
			all, err := k.List(ctx) // the minor of the record may be lost, or another volume's by now
			return err == nil && !slices.ContainsFunc(all, func(s drbd.Status) bool { return s.Resource == resourceOf(v) }), err
		},
		Do: func(ctx context.Context) error {
			return e.onceClosed(ctx, func() error { return k.Down(ctx, resourceOf(v)) })
		},
	}
}

// wipe is the step after which a volume without a DRBD device has no metadata.
func (e *Devices) wipe(v *drivebay.Volume) steps.Step {
	at := func(ctx context.Context, f func(context.Context, host.Disk, uint64) error) error {
		return e.LUKS.On(ctx, v, e.belowOf(v), true, func(ctx context.Context, disk host.Disk) error {
			switch _, err := drbd.ReadMetadata(disk, v.Replication.Disk); {
			case err == nil:
				return f(ctx, disk, v.Replication.Disk)
			case !errors.Is(err, drbd.ErrNoMetadata):
				return err
			}
			return nil
		})
	}
	return steps.Step{
		Name: "wipe metadata",
		Done: func(ctx context.Context) (bool, error) {
			none := true
			err := at(ctx, func(context.Context, host.Disk, uint64) error { none = false; return nil })
			return err == nil && none, err
		},
		Do: func(ctx context.Context) error {
			return at(ctx, func(ctx context.Context, disk host.Disk, end uint64) error {
				n := drbd.MetadataBytes(end)
				return errors.Join(disk.Zero(ctx, end-n, n), disk.Sync())
			})
		},
	}
}

// plain records that a volume is not replicated any more, and why it has failed, if it has.
func (e *Devices) plain(v *drivebay.Volume, why error) error {
	rec, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) (err error) {
		r.Volume.Replication = nil
		if why != nil {
			r.Volume, err = r.Volume.Failed(drivebay.Failure[drivebay.CSIStatus]{Cause: why.Error(), Since: e.Machine.Now(), Retry: drivebay.RetryOnCall})
		}
		return err
	})
	if err == nil {
		e.seen.Forget(v)
		*v = rec.Volume
	}
	return err
}

// MayUse refuses a volume whose replication has ended, or whose record is older than the mark on its drive. It makes a plain volume
// of one that is used before its metadata are written: its filesystem, or its user, may then use the room for them. Enable
// then measures the piece again, and grows it by another room.
func (e *Devices) MayUse(ctx context.Context, v *drivebay.Volume) error {
	switch {
	case v.Replicated() && v.Replication.Ended:
		return fmt.Errorf("%w: %s", drivebay.ErrRefused, Incomplete(v))
	case v.Replicated():
		return nil
	}
	newer, err := markIsNewer(ctx, e, v)
	switch {
	case err != nil:
		return err
	case newer:
		return e.believeMark(ctx, v)
	case v.Replication == nil:
		return nil
	}
	if e.Partitions.Marked(v) {
		if err := e.Steps.Run(ctx, v.ID, []steps.Step{e.Write.MarkReplicated("mark plain", v, false)}); err != nil {
			return err
		}
	}
	return e.plain(v, nil)
}

// markIsNewer reports whether the record of a volume is older than the mark on its drive: it does not know of its replication, or only
// that one is being prepared, while the metadata were in use.
func markIsNewer(ctx context.Context, e *Devices, v *drivebay.Volume) (bool, error) {
	if marked := e.Partitions.Marked(v); v.Replication == nil || v.Replicated() || !marked {
		return marked && v.Replication == nil, nil
	}
	return metadataUsed(ctx, e, v)
}

// metadataUsed reports whether the piece of a volume whose replication is being prepared has metadata that were in use. Of a piece that is
// larger than it was prepared, the record is older than a growth: where that was cut short, the metadata are not at the end.
func metadataUsed(ctx context.Context, e *Devices, v *drivebay.Volume) (bool, error) {
	m, err := metadataOf(ctx, e, v)
	if !errors.Is(err, drbd.ErrNoMetadata) {
		return err == nil && !m.New(), err
	}
	d, err := e.belowOf(v).Ready(ctx)
	return err == nil && d.Size > dataOf(v)+v.Replication.Room, err
}

// Correct corrects the record of a volume that is older than the mark on its drive.
func (e *Devices) Correct(ctx context.Context, id string) error {
	rec, err := e.Ledger.Record(id)
	if err != nil || rec.Volume.Replication != nil {
		return err
	}
	if err = e.believeMark(ctx, &rec.Volume); rec.Volume.Replication != nil {
		return nil
	}
	return err
}

// believeMark records that the replication of a volume is lost, if its piece is still marked.
func (e *Devices) believeMark(ctx context.Context, v *drivebay.Volume) error {
	marked, err := e.Write.MarkReplicated("", v, true).Done(ctx)
	if err == nil && marked {
		err = e.Instances.NotRemoved(ctx, v.ID)
	}
	if err != nil || !marked {
		return err
	}
	d, err := e.belowOf(v).Ready(ctx)
	if err != nil {
		return err
	}
	rec, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) error {
		r.Volume.Replication = drivebay.LostReplication(d.Size)
		return nil
	})
	if err != nil {
		return err
	}
	*v = rec.Volume
	return fmt.Errorf("%w: %s", drivebay.ErrRefused, Incomplete(v))
}
