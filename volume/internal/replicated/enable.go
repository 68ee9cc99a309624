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
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// Enable replicates a volume that is not in use. Interrupted anywhere, the same call has the same result.
func (e *Replicator) Enable(ctx context.Context, v drivebay.Volume, r drivebay.ReplicationRequest, secret drbd.Secret) error {
	if r.Pair == v.ID {
		r.Pair = ""
	}
	err := replication.Check(r)
	newer := false
	if err == nil {
		newer, err = markIsNewer(ctx, e.Devices, &v)
	}
	if newer {
		if err = e.believeMark(ctx, &v); v.Replicated() { // rejoin refuses the source
			err = nil
		}
	}
	if err == nil && v.Replicated() && v.Replication.Ended {
		err = e.rejoin(ctx, &v, r)
	}
	if err == nil {
		err = same(&v, r)
	}
	if err != nil {
		return err
	}
	k, plan, err := e.decide(ctx, &v, replication.Call{Verb: replication.Enable, HoldsData: r.HoldsData, Secret: true})
	if err != nil {
		return err
	}
	defer k.Close()
	if plan != replication.Nothing {
		if err := e.free(ctx, &v); err != nil {
			return err
		}
		if v.Replication == nil && r.HoldsData {
			if err := e.refuseIncomplete(ctx, &v); err != nil {
				return err
			}
		}
		if err := e.makeRoom(ctx, &v, k, r); err != nil {
			return err
		}
		if err := e.Steps.Run(ctx, v.ID, e.setUp(k, &v)); err != nil {
			return err
		}
	}
	return e.connect(ctx, k, &v, secret, false)
}

// same refuses to replicate a volume in another way than it is.
func same(v *drivebay.Volume, r drivebay.ReplicationRequest) error {
	have := v.Replication
	switch {
	case have == nil:
		return nil
	case r.HoldsData && !have.HoldsData: // it was promoted neither
		return fmt.Errorf("%w: it is replicated as the target already, whose data are replaced: disable that first", drivebay.ErrExists)
	case !r.HoldsData && have.HoldsData && !v.Replicated():
		return fmt.Errorf("%w: it is to be replicated as the source already: disable that first", drivebay.ErrExists)
	}
	if have.ReplicationLink != r.ReplicationLink {
		return fmt.Errorf("%w: it is replicated from %s to %s already, with protocol %s, pair %q and a rate of %d KiB/s: disable that first", drivebay.ErrExists, have.Local, have.Peer, have.Protocol, pairOf(v), have.MaxResyncRate)
	}
	return nil
}

// rejoin lets a volume whose replication has ended get another copy. Metadata of an incomplete or old copy are used again. Those of
// a volume whose record was lost are not: by them, this side may have the newer data, and the peer would be the target.
func (e *Replicator) rejoin(ctx context.Context, v *drivebay.Volume, r drivebay.ReplicationRequest) error {
	if r.HoldsData {
		return fmt.Errorf("%w: %s", drivebay.ErrRefused, Incomplete(v))
	}
	if err := e.notMounted(ctx, v); err != nil {
		return err
	}
	if err := e.DropEnded(ctx, *v); err != nil { // it would stay connected to the peer that it had
		return err
	}
	k, err := e.kernel(ctx)
	if err != nil {
		return err
	}
	defer k.Close()
	e.choosing.Lock()
	defer e.choosing.Unlock()
	minor, err := e.freeMinor(ctx, v.ID, k, r)
	if err == nil && v.Replication.Lost() {
		err = e.startAnew(ctx, v, minor)
	}
	if err != nil {
		return err
	}
	return e.change(v, func(n *drivebay.Replication) {
		n.ReplicationLink = r.ReplicationLink
		n.Ended, n.Conflict, n.Since = false, "", e.Machine.Now()
	})
}

// startAnew writes new metadata for a volume whose record was lost, and completes the record: the size that its data have, and
// what its piece has beyond that. Killed before the record, the volume is still one whose record was lost.
func (e *Replicator) startAnew(ctx context.Context, v *drivebay.Volume, minor uint32) error {
	var piece, data uint64
	err := e.LUKS.On(ctx, v, e.belowOf(v), true, func(_ context.Context, disk host.Disk) error {
		piece = disk.Size()
		data = piece - min(piece, room(piece))
		if m, err := drbd.ReadMetadata(disk, piece); err == nil && m.Bytes > 0 && m.Bytes <= drbd.DeviceIn(piece) {
			data = m.Bytes
		}
		return nil
	})
	if err == nil {
		err = e.format(ctx, v, minor)
	}
	if err != nil {
		return err
	}
	rec, err := e.Ledger.Change(v.ID, func(r *drivebay.VolumeRecord) error {
		next := *r.Volume.Replication
		next.Minor, next.Disk, next.Room = minor, piece, piece-data
		r.Volume.Size, r.Volume.Replication = data-min(data, place.Overhead(r.Volume.LUKSUUID)), &next
		return nil
	})
	if err == nil {
		*v = rec.Volume
	}
	return err
}

// format writes new metadata at the end of the piece of a volume.
func (e *Replicator) format(ctx context.Context, v *drivebay.Volume, minor uint32) error {
	err := e.LUKS.On(ctx, v, e.belowOf(v), false, func(ctx context.Context, disk host.Disk) error {
		return e.drbdmeta(ctx, minor, nil, drbd.CreateMetadata(minor, disk.Path()))
	})
	if err != nil {
		return fmt.Errorf("volume %s: metadata of DRBD: %w", v.ID, err)
	}
	return nil
}

// free refuses a volume that DRBD cannot be put under now.
func (e *Replicator) free(ctx context.Context, v *drivebay.Volume) error {
	if err := instances.Undecided(v); err != nil {
		return err
	}
	if v.AwaitsKey {
		return fmt.Errorf("%w: it has no filesystem before it is staged first", drivebay.ErrRefused)
	}
	if v.Rest() != drivebay.CSICreated {
		return fmt.Errorf("%w: it is %s: unstage it first", drivebay.ErrRefused, inventory.UsedAt(&drivebay.Volume{Publications: v.Publications}))
	}
	state := v.State()
	if state.Status == drivebay.CSIFailed {
		state.Status = state.Before
	}
	ours := state.Status == drivebay.CSIResizing && v.Replication != nil // the growth that makes the room
	if state.Status == drivebay.CSIResizing && v.CSIStatus == drivebay.CSIFailed && !ours {
		return fmt.Errorf("%w: its growth has failed: `drivebay volume retry %s` completes it", drivebay.ErrRefused, v.ID)
	}
	if state.Status != drivebay.CSICreated && state.Status != drivebay.CSIResized && !ours {
		return fmt.Errorf("%w: it is %v", drivebay.ErrRefused, state.Status)
	}
	for _, s := range e.Ledger.Volumes().Snapshots {
		if s.Source == v.ID {
			return fmt.Errorf("%w: it has snapshots, which would get the metadata of the replication", drivebay.ErrNoSupport)
		}
	}
	if err := e.notMounted(ctx, v); err != nil {
		return err
	}
	e.Watch.StopScrub(ctx, v.ID)
	return nil
}

// notMounted refuses a volume that the kernel shows as in use, whatever the record says.
func (e *Replicator) notMounted(ctx context.Context, v *drivebay.Volume) error {
	shown, err := e.Mounts.Mounted(ctx, v)
	switch {
	case err != nil && !errors.Is(err, drivebay.ErrNotFound):
		return err
	case len(shown) > 0:
		return fmt.Errorf("%w: it is mounted at %s", drivebay.ErrRefused, shown[0].Target)
	}
	return nil
}

// refuseIncomplete refuses to make a volume the source whose record does not say that it was replicated, and whose metadata of DRBD say that
// the copy from its peer was not complete.
func (e *Devices) refuseIncomplete(ctx context.Context, v *drivebay.Volume) error {
	fs := v.FSType
	if v.Encrypted() || !v.HasFilesystem() {
		fs = ""
	}
	return e.LUKS.On(ctx, v, e.belowOf(v), false, func(_ context.Context, disk host.Disk) error {
		m, err := drbd.ReadMetadata(disk, disk.Size())
		if err != nil || !m.New() && m.Consistent && m.UpToDate || device.RefuseReplicated(disk, fs) == nil {
			return nil
		}
		return fmt.Errorf("%w: by the metadata of DRBD at its end, its data are not a complete copy: enable it with the role target, or delete it", drivebay.ErrRefused)
	})
}

// room is what a piece is grown by: metadata for 16 times the data, and at least for 100 GiB. The volume can grow so far
// while it is replicated (expand.WantSize).
func room(data uint64) uint64 {
	const unit = 4 * partitions.MiB // whole extents of LVM
	need := drbd.MetadataBytes(16*data) + 2*4096
	return (need + unit - 1) / unit * unit
}

// makeRoom chooses the minor and records how the volume is to be replicated, and grows its piece. The volume can be used
// as before until its metadata are written.
func (e *Replicator) makeRoom(ctx context.Context, v *drivebay.Volume, k drbd.Kernel, r drivebay.ReplicationRequest) error {
	if v.Replication == nil || v.CSIStatus == drivebay.CSIFailed {
		if err := e.want(ctx, v, k, r); err != nil {
			return err
		}
	}
	if v.CSIStatus == drivebay.CSIResizing {
		if err := e.Expand.Enlarge(ctx, v.ID); err != nil {
			return err
		}
	}
	rec, err := e.Ledger.Record(v.ID)
	if err == nil {
		*v = rec.Volume
	}
	return err
}

func (e *Replicator) want(ctx context.Context, v *drivebay.Volume, k drbd.Kernel, r drivebay.ReplicationRequest) error {
	e.choosing.Lock()
	defer e.choosing.Unlock()
	minor, err := e.freeMinor(ctx, v.ID, k, r)
	if err != nil {
		return err
	}
	size, err := e.sizeNow(ctx, v)
	if err != nil {
		return err
	}
	next := *v
	next.Size = size
	next.Replication = &drivebay.Replication{Minor: minor, ReplicationLink: r.ReplicationLink,
		HoldsData: r.HoldsData, Primary: r.HoldsData, Room: room(dataOf(&next)), Since: e.Machine.Now()}
	if err := e.Expand.FitsMore(v, size-v.Size+next.Replication.Room); err != nil {
		return err
	}
	rec, err := e.Ledger.Change(v.ID, func(rec *drivebay.VolumeRecord) (err error) {
		if rec.Volume.CSIStatus != drivebay.CSIResizing {
			if rec.Volume, err = rec.Volume.Moved(drivebay.CSIResize); err != nil {
				return err
			}
		}
		rec.Volume.Replication = next.Replication
		rec.Work = &drivebay.Work{Op: drivebay.WorkExpand, Since: e.Machine.Now(), Size: size}
		return nil
	})
	if err == nil {
		*v = rec.Volume
		e.seen.Forget(v) // what was said of the device that had the minor before
	}
	return err
}

// sizeNow is the size of a volume by its piece: its filesystem may use all of that. A growth that failed knows it.
func (e *Replicator) sizeNow(ctx context.Context, v *drivebay.Volume) (uint64, error) {
	rec, err := e.Ledger.Record(v.ID)
	if err != nil {
		return 0, err
	}
	if rec.Volume.Replication != nil && rec.Work != nil && rec.Work.Op == drivebay.WorkExpand {
		return rec.Work.Size, nil
	}
	d, err := e.belowOf(v).Ready(ctx)
	return max(v.Size, d.Size-min(d.Size, dataOf(v)-v.Size)), err
}

// freeMinor returns a minor that neither a record nor the kernel has, and refuses an address that another volume has:
// the kernel needs a local and a remote one of its own for each connection.
func (e *Replicator) freeMinor(ctx context.Context, id string, k drbd.Kernel, r drivebay.ReplicationRequest) (uint32, error) {
	all, err := k.List(ctx)
	if err != nil {
		return 0, err
	}
	taken := map[uint32]bool{}
	for _, s := range all {
		taken[s.Minor] = true
	}
	for _, rec := range e.Ledger.All() {
		o := rec.Volume.Replication
		if o == nil || rec.Volume.ID == id { // without metadata it has no device yet
			continue
		}
		taken[o.Minor] = true
		if !o.Ended && (o.Local == r.Local || o.Peer == r.Peer) {
			return 0, fmt.Errorf("%w: volume %s is replicated from %s to %s: each volume needs a local and a peer port of its own", drivebay.ErrInvalid, rec.Volume.ID, o.Local, o.Peer)
		}
	}
	minor := uint32(0)
	for taken[minor] {
		minor++
	}
	return minor, nil
}

// setUp are the steps after which a volume with room for metadata has its DRBD device.
func (e *Replicator) setUp(k drbd.Kernel, v *drivebay.Volume) []steps.Step {
	return []steps.Step{
		e.Write.MarkReplicated("mark replicated", v, true), // before DRBD writes anything
		{Name: "metadata", Done: func(context.Context) (bool, error) { return v.Replicated(), nil }, Do: func(ctx context.Context) error { return e.create(ctx, v) }},
		{Name: "attach", Done: func(ctx context.Context) (bool, error) { return attached(ctx, k, v) }, Do: func(ctx context.Context) error { return e.attach(ctx, k, v, e.belowOf(v)) }},
	}
}

// attached reports whether a volume has its DRBD device, with the role of its record.
func attached(ctx context.Context, k drbd.Kernel, v *drivebay.Volume) (bool, error) {
	st, err := statusOf(ctx, k, v)
	if errors.Is(err, drbd.ErrNotFound) {
		return false, nil
	}
	return err == nil && st.State.Disk != drbd.Diskless && (st.State.Role == drbd.RolePrimary) == v.Replication.Primary && !(st.New() && v.Replication.HoldsData), err
}

// create writes new metadata, and records that they are there. Before that record they were never in use.
func (e *Replicator) create(ctx context.Context, v *drivebay.Volume) error {
	if v.Replicated() {
		return nil
	}
	var size uint64
	below := e.belowOf(v)
	err := e.LUKS.On(ctx, v, below, true, func(_ context.Context, disk host.Disk) error { // drbdmeta works on a disk in use
		if size = disk.Size(); drbd.DeviceFor(dataOf(v))+drbd.MetadataBytes(size) > size {
			return fmt.Errorf("%w: its piece has %s, which leaves no room for metadata", drivebay.ErrRefused, partitions.SizeText(size))
		}
		return nil
	})
	if err == nil {
		err = e.format(ctx, v, v.Replication.Minor)
	}
	if err != nil {
		return err
	}
	rec, err := e.Ledger.Change(v.ID, func(rec *drivebay.VolumeRecord) (err error) {
		next := *rec.Volume.Replication
		next.Disk = size
		rec.Volume.Replication = &next
		if rec.Volume.CSIStatus == drivebay.CSIResized { // the filesystem has what it had
			rec.Volume, err = rec.Volume.Moved(drivebay.CSIDone)
		}
		return err
	})
	if err == nil {
		*v = rec.Volume
	}
	return err
}
