package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/erase"
	"github.com/drivebay/drivebay/volume/internal/instances"
	"github.com/drivebay/drivebay/volume/internal/inventory"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/luks"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/place"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// SourceThere refuses a copy whose source is missing, before the request is checked.
func (e *Provisioner) SourceThere(r drivebay.VolumeRequest) error {
	if r.Source == (drivebay.Source{}) || e.Instances.Recorded(drivebay.VolumeID(r.Name)) {
		return nil
	}
	_, err := e.originOf(r.Source)
	if errors.Is(err, drivebay.ErrNotFound) || errors.Is(err, drivebay.ErrUnavailable) {
		return fmt.Errorf("create volume %q: source: %w", r.Name, err)
	}
	return nil
}

// Recreate answers a repeated request for an existing volume, or completes what the first
// request did not.
func (e *Provisioner) Recreate(ctx context.Context, have drivebay.VolumeRecord, r drivebay.VolumeRequest) error {
	if err := e.Instances.RemovedSince(ctx, have.Volume.ID); err != nil {
		return err
	}
	have, err := e.Ledger.Record(have.Volume.ID)
	if err != nil {
		return err
	}
	v := &have.Volume
	if was, is := e.Instances.WasForgotten(v.ID, v.Location); is {
		return e.createAnew(ctx, have, was, r)
	}
	if v.Mode == drivebay.ModeUnknown { // found half made: it becomes what this request asks for
		luks.Encrypt(v, r.Class)
	}
	if err := v.Fits(r); err != nil {
		return err
	}
	if partitions.IsFoundHalf(&have) {
		return e.replaceHalf(ctx, v, r)
	}
	state := v.State()
	if state.Status == drivebay.CSIRemoving || state.Status == drivebay.CSIFailed && state.Before == drivebay.CSIRemoving {
		return fmt.Errorf("volume %s: %w: it is being removed", v.ID, drivebay.ErrPending)
	}
	half := isHalfMade(v)
	if !half {
		if err := e.VerifyOnDrives(v); err != nil {
			return err
		}
	}
	if v.Name != "" && !half {
		return nil
	}
	_, err = e.Ledger.Change(v.ID, func(rec *drivebay.VolumeRecord) (err error) {
		rec.Volume.Name, rec.Volume.Parameters = r.Name, r.Class.Parameters()
		if half && rec.Volume.CSIStatus == drivebay.CSIFailed {
			rec.Volume.Mode, rec.Volume.FSType = r.Mode(), cmp.Or(rec.Volume.FSType, r.Filesystem())
			if !r.Block && rec.Volume.FSUUID == "" {
				rec.Volume.FSUUID = ledger.NewUUID()
			}
			rec.Volume.LUKSUUID, rec.Volume.Size, rec.Volume.AwaitsKey = v.LUKSUUID, v.Size, awaitsKey(r)
			if rec.Work == nil {
				rec.Work = &drivebay.Work{Op: drivebay.WorkCreate, Since: e.Machine.Now()}
			}
			rec.Work.Size = v.Size
			rec.Volume, err = rec.Volume.Moved(drivebay.CSICreate)
		}
		return err
	})
	if err != nil || !half {
		return err
	}
	return e.make(ctx, v.ID, r.Secrets)
}

// replaceHalf removes a volume that was found half made or half removed, as its class requires, and makes a new one. It is not completed: it
// can have the data of a volume that was being removed, and an older copy of the store would go on with that removal.
func (e *Provisioner) replaceHalf(ctx context.Context, v *drivebay.Volume, r drivebay.VolumeRequest) error {
	if err := errors.Join(e.Device.MayChange(v.ID), e.MayRemove(ctx, v)); err != nil {
		return err
	}
	if err := e.WantRemoved(v.ID); err != nil {
		return err
	}
	if err := e.Remove(ctx, v.ID); err != nil {
		return fmt.Errorf("volume %s: what is left of an earlier one of its name: %w", v.ID, e.Retriable(v, err))
	}
	return e.Create(ctx, v.ID, r)
}

// VerifyOnDrives refuses to acknowledge a volume or snapshot that only its record shows: the record
// may be older than the drives.
func (e *Provisioner) VerifyOnDrives(v *drivebay.Volume) error {
	return e.verifyThere("volume", v, "drivebay volume forget "+v.ID)
}

// VerifySnapshot is VerifyOnDrives for a snapshot.
func (e *Provisioner) VerifySnapshot(s *drivebay.VolumeSnapshot) error {
	return e.verifyThere("snapshot", &drivebay.Volume{ID: s.ID, Location: s.Location}, "drivebay volume snapshot-forget "+s.ID)
}

func (e *Provisioner) verifyThere(kind string, v *drivebay.Volume, forget string) error {
	there := e.Instances.OwnIsThere(v)
	if !v.Location.OnLVM() && !there { // a partition on a drive that leaves is there as well
		e.Ledger.Mu.Lock()
		_, there = e.Partitions.Listed(v)
		e.Ledger.Mu.Unlock()
	}
	switch {
	case there:
		return nil
	case e.Groups.Gone(v):
		return fmt.Errorf("%s %s: %w: it is no longer on drive %s, where it was made: restore it, or run `%s` and create it again",
			kind, v.ID, drivebay.ErrUnavailable, strings.Join(v.Location.Drives, ", "), forget)
	}
	return fmt.Errorf("%s %s: %w: only its record shows it: %w", kind, v.ID, drivebay.ErrUnavailable, e.Device.NotHere(v))
}

// createAnew makes a volume in the place of a forgotten one that is back: the data of that one
// belongs to an earlier request.
func (e *Provisioner) createAnew(ctx context.Context, have drivebay.VolumeRecord, was drivebay.ForgottenVolume, r drivebay.VolumeRequest) error {
	v := &have.Volume
	if err := e.MayRemove(ctx, v); err != nil {
		return fmt.Errorf("%w: a volume of that name was forgotten, is back on its drive with its data, and is used: %w", drivebay.ErrExists, err)
	}
	was.Replaced = true
	if err := errors.Join(e.Instances.MarkForgotten(was), e.Ledger.Forget(v.ID)); err != nil {
		return err
	}
	return e.Create(ctx, v.ID, r)
}

// Create finds a place and makes a volume there. If a drive turns out to be unfit, and nothing
// was written to it, create tries the next.
func (e *Provisioner) Create(ctx context.Context, id string, r drivebay.VolumeRequest) error {
	if r.Source == (drivebay.Source{}) { // a copy gets no new filesystem
		if err := e.Capabilities.CanFormat(r.Filesystem()); err != nil {
			return err
		}
	}
	if err := e.Inventory.RefuseSecond(id); err != nil {
		return err
	}
	without := map[string]bool{}
	var refused error
	for {
		rec, err := e.place(id, r, without)
		if errors.Is(err, drivebay.ErrNoSpace) && e.AwaitReread(ctx) {
			rec, err = e.place(id, r, without)
		}
		if err != nil {
			return noOtherPlace(err, refused)
		}
		var wrote atomic.Bool
		err = e.runCreatePlan(ctx, id, r.Secrets, &wrote)
		switch {
		case err == nil:
			return e.finish(id)
		case ctx.Err() != nil || errors.Is(err, ledger.ErrStopped):
			return err
		case wrote.Load():
			return e.Ledger.Failed(ctx, id, err)
		}
		if forgot := e.Ledger.Forget(id); forgot != nil {
			return errors.Join(err, forgot)
		}
		if r.Source != (drivebay.Source{}) {
			return copyRefused(e, &rec.Volume, err)
		}
		refused = err
		without[place.KeyOf(rec.Volume.Location.Drives)] = true
	}
}

// copyRefused makes the error of a copy one that is retried, if neither the request nor a lack of space is its cause: a copy has no other place than
// the pool of its source.
func copyRefused(e *Provisioner, v *drivebay.Volume, err error) error {
	if errors.Is(err, drivebay.ErrNoSpace) || slices.ContainsFunc(ofRequest, func(target error) bool { return errors.Is(err, target) }) {
		return err
	}
	return e.Retriable(v, err)
}

// noOtherPlace joins the error of the place that was tried last with that of the next choice. Where LVM or a drive has failed or did not answer in
// time, there may be space: the caller tries again. A drive that is gone has none, and content that is not ours stays.
func noOtherPlace(none, refused error) error {
	is := func(target error) bool { return errors.Is(refused, target) }
	if refused == nil || !errors.Is(none, drivebay.ErrNoSpace) || is(drivebay.ErrNoSpace) || is(drivebay.ErrRefused) || is(drivebay.ErrPermission) || is(host.ErrGone) || slices.ContainsFunc(ofRequest, is) {
		return errors.Join(none, refused)
	}
	return fmt.Errorf("%w: %w; there is no other place: %v", drivebay.ErrUnavailable, refused, none)
}

// place chooses where a volume goes and records it, with all identities that distinguish its
// pieces from anything else.
func (e *Provisioner) place(id string, r drivebay.VolumeRequest, without map[string]bool) (drivebay.VolumeRecord, error) {
	e.Placing.Lock()
	defer e.Placing.Unlock()
	now := e.Machine.Now()
	v := drivebay.Volume{ID: id, Name: r.Name, Node: e.Opt.Node, Mode: r.Mode(), FSType: r.Filesystem(), Parameters: r.Class.Parameters(), Source: r.Source, Created: now}
	if !r.Block {
		v.FSUUID = ledger.NewUUID()
	}
	if r.Class.Encryption != "" {
		v.LUKSUUID, v.AwaitsKey = ledger.NewUUID(), awaitsKey(r)
	}
	v.CSIStatus, _ = drivebay.CSIState{}.Next(drivebay.CSICreate)
	v.Usage, _ = drivebay.VolumeUsageUnknown.Next(drivebay.VolumeUsageMade)
	work := drivebay.Work{Op: drivebay.WorkCreate, Since: now}
	var err error
	if r.Source != (drivebay.Source{}) {
		err = e.besideSource(&v, &work, r, without)
	} else {
		err = e.anywhere(&v, &work, r, without)
	}
	if err != nil {
		return drivebay.VolumeRecord{}, err
	}
	work.Size = v.Size
	rec := drivebay.VolumeRecord{Volume: v, Work: &work}
	return rec, e.Ledger.Put(rec)
}

func (e *Provisioner) anywhere(v *drivebay.Volume, work *drivebay.Work, r drivebay.VolumeRequest, without map[string]bool) error {
	size, err := place.SizeOf(r.Size, r.Class, r.Block, 0)
	if err != nil {
		return err
	}
	at, err := e.Inventory.PlacementView().Choose(r.Class, size, without)
	if err != nil {
		return err
	}
	if r.Class.Backing == drivebay.BackingDrive { // the whole drive
		if size = at.Most; !r.Size.Holds(size) {
			return fmt.Errorf("%w: a whole drive has %s, larger than the limit %s", drivebay.ErrRange, partitions.SizeText(size), partitions.SizeText(r.Size.Limit))
		}
	}
	v.Size = size
	v.Location, work.PVs, err = at.Locate(r.Class, v.ID, e.Instances.NewInstance())
	return err
}

// make completes a volume whose creation has begun. An encrypted one waits for a caller with
// its key.
func (e *Provisioner) make(ctx context.Context, id string, secrets drivebay.Secrets) error {
	if err := e.Instances.RemovedSince(ctx, id); err != nil {
		return err
	}
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	if rec.Work == nil || rec.Work.Op != drivebay.WorkCreate { // only a recorded creation permits to write to it
		return fmt.Errorf("volume %s: %w: it is not being made", id, drivebay.ErrRefused)
	}
	if partitions.IsFoundHalf(&rec) {
		return e.Ledger.Failed(ctx, id, fmt.Errorf("%w: it was found half made or half removed, and can have the data of a removed volume: create it again, or delete it", drivebay.ErrRefused))
	}
	if err := e.Inventory.RefuseSecondInstance(&rec); err != nil {
		if errors.Is(err, instances.ErrElsewhere) { // nothing of it is on a drive
			return errors.Join(err, e.Ledger.Forget(id))
		}
		return e.Ledger.Failed(ctx, id, err)
	}
	if err := e.runCreatePlan(ctx, id, secrets, new(atomic.Bool)); err != nil { // an earlier attempt may have written, whether this one has or not
		return e.Ledger.Failed(ctx, id, err)
	}
	return e.finish(id)
}

// MakeKeyless is make for a caller without a key.
func (e *Provisioner) MakeKeyless(ctx context.Context, id string) error {
	for range listedTries { // interrupted work is resumed before all drives have answered
		if e.Inventory.UnreadDrives(inventory.EveryDrive) == nil {
			break
		}
		select {
		case <-e.Machine.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return e.make(ctx, id, nil)
}

// listedTries is how many seconds interrupted work waits for all drives to be listed.
const listedTries = 60

// runCreatePlan runs the plan that makes a volume.
func (e *Provisioner) runCreatePlan(ctx context.Context, id string, secrets drivebay.Secrets, wrote *atomic.Bool) error {
	rec, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	if source := rec.Volume.Source.Volume; source != "" { // a removal would wipe it meanwhile
		end, err := e.Ledger.BeginAfter(ctx, source)
		if err != nil {
			return err
		}
		defer end()
	}
	plan, err := e.piece(rec).create(secrets, wrote)
	if err != nil {
		return err
	}
	return e.Steps.Run(ctx, id, plan)
}

// filled returns the steps that give a new volume a filesystem, or zeros; none for a volume that awaits its
// passphrase.
func (e *Provisioner) filled(v *drivebay.Volume, secrets drivebay.Secrets) []steps.Step {
	var plan []steps.Step
	if v.AwaitsKey {
		return nil
	}
	if v.HasFilesystem() {
		plan = []steps.Step{e.LUKS.Cleared(v), e.LUKS.Formatted(v)}
	} else {
		plan = []steps.Step{e.zeroed(v)}
	}
	open, shut := e.Device.Stack(v).Create(secrets)
	return slices.Concat(open, plan, shut)
}

// unfilled returns the step that makes a piece, after which the record does not say that the piece is zeroed. A record that
// is older than the drives may say so of a piece that is gone: the range has had other volumes since.
func (e *Provisioner) unfilled(id string, s steps.Step) steps.Step {
	do := s.Do
	s.Do = func(ctx context.Context) error {
		if err := e.Erase.Unmade(id, "zero"); err != nil {
			return err
		}
		return do(ctx)
	}
	return s
}

func (e *Provisioner) zeroed(v *drivebay.Volume) steps.Step {
	return e.Steps.Made(v.ID, "zero", func(ctx context.Context) error { return e.LUKS.Overwrite(ctx, v, "zero", 0, v.Size, erase.ZeroRange) })
}

func (e *Provisioner) finish(id string) error {
	r, err := e.Ledger.Change(id, func(r *drivebay.VolumeRecord) (err error) {
		r.Work = nil
		if r.Volume.Location.Kind == drivebay.LocationMirror {
			r.Volume.Mirror = &drivebay.Mirror{}
		}
		r.Volume, err = r.Volume.Moved(drivebay.CSIDone)
		return err
	})
	if err == nil {
		e.Ledger.Note(drivebay.EventVolumeCreated, &r.Volume, fmt.Sprintf("volume %q of %s was created as %v", r.Volume.Name, partitions.SizeText(r.Volume.Size), r.Volume.Location.Kind))
	}
	return err
}

// Whole refuses a volume that is half made or half removed, and one of which it is not known where it is: a
// copy of it could be that of another volume. One whose drive is away is ErrUnavailable: it can be copied once the drive is back.
func (e *Provisioner) Whole(v *drivebay.Volume) error {
	if err := instances.Undecided(v); err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	if err := MadeOrRemoved(v); err != nil {
		return fmt.Errorf("volume %s: %w", v.ID, err)
	}
	if v.AwaitsKey {
		return fmt.Errorf("volume %s: %w: it is empty: it is encrypted when it is staged first", v.ID, drivebay.ErrRefused)
	}
	if v.Replication != nil || e.Partitions.Marked(v) {
		return fmt.Errorf("volume %s: %w: it is replicated: a copy would have the metadata of its replication", v.ID, drivebay.ErrNoSupport)
	}
	return e.VerifyOnDrives(v)
}

// MadeOrRemoved refuses a volume that is being made or removed, also where that has failed and is to be tried again.
func MadeOrRemoved(v *drivebay.Volume) error {
	doing := v.CSIStatus
	if doing == drivebay.CSIFailed {
		doing = v.State().Before
	}
	switch doing {
	case drivebay.CSICreating, drivebay.CSIRemoving, drivebay.CSIRemoved, drivebay.CSIUnknown:
		return fmt.Errorf("%w: it is %v", drivebay.ErrPending, doing)
	}
	return nil
}
