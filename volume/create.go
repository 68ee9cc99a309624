package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
)

// CreateVolume makes a volume, or returns the existing one of that name.
func (e *Engine) CreateVolume(ctx context.Context, r drivebay.VolumeRequest) (drivebay.Volume, error) {
	if err := e.sourceThere(r); err != nil {
		return drivebay.Volume{}, err
	}
	if err := errors.Join(check(r), e.can(ctx, r.Class), e.canFormat(fsOf(r))); err != nil {
		return drivebay.Volume{}, err
	}
	r.Class.FSType = orElse(fsOf(r), r.Class.FSType)
	id := volumeID(r.Name)
	if err := e.takeInUnknown(ctx, id); err != nil {
		return drivebay.Volume{}, fmt.Errorf("create volume %q: %w", r.Name, err)
	}
	err := e.work(ctx, id, func(ctx context.Context) error {
		have, err := e.record(id)
		switch {
		case errors.Is(err, drivebay.ErrNotFound):
			return e.create(ctx, id, r)
		case err != nil:
			return err
		}
		return e.recreate(ctx, have, r)
	})
	if err != nil {
		return drivebay.Volume{}, fmt.Errorf("create volume %q: %w", r.Name, err)
	}
	have, err := e.record(id)
	return have.Volume, err
}

// sourceThere refuses a copy whose source is missing, before the request is checked.
func (e *Engine) sourceThere(r drivebay.VolumeRequest) error {
	if r.Source == (drivebay.Source{}) || e.recorded(volumeID(r.Name)) {
		return nil
	}
	_, err := e.originOf(r.Source)
	if errors.Is(err, drivebay.ErrNotFound) || errors.Is(err, drivebay.ErrUnavailable) {
		return fmt.Errorf("create volume %q: source: %w", r.Name, err)
	}
	return nil
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// recreate answers a repeated request for an existing volume, or completes what the first
// request did not.
func (e *Engine) recreate(ctx context.Context, have drivebay.VolumeRecord, r drivebay.VolumeRequest) error {
	v := &have.Volume
	if was, is := e.wasForgotten(v.ID, v.Location); is {
		return e.createAnew(ctx, have, was, r)
	}
	if v.Mode == drivebay.ModeUnknown { // found half made: it becomes what this request asks for
		encrypt(v, r.Class)
	}
	if err := fits(v, r); err != nil {
		return err
	}
	state := v.State()
	if state.Status == drivebay.CSIRemoving || state.Status == drivebay.CSIFailed && state.Before == drivebay.CSIRemoving {
		return fmt.Errorf("volume %s: %w: it is being removed", v.ID, drivebay.ErrPending)
	}
	half := isHalfMade(v)
	if !half {
		if err := e.verifyOnDrives(v); err != nil {
			return err
		}
	}
	if v.Name != "" && !half {
		return nil
	}
	_, err := e.change(v.ID, func(rec *drivebay.VolumeRecord) (err error) {
		rec.Volume.Name, rec.Volume.Parameters = r.Name, parametersOf(r.Class)
		if half && rec.Volume.CSIStatus == drivebay.CSIFailed {
			rec.Volume.Mode, rec.Volume.FSType = modeOf(r), fsOf(r)
			if !r.Block && rec.Volume.FSUUID == "" {
				rec.Volume.FSUUID = newUUID()
			}
			rec.Volume.LUKSUUID, rec.Volume.Size = v.LUKSUUID, v.Size
			if rec.Work == nil {
				rec.Work = &drivebay.Work{Op: drivebay.WorkCreate, Since: e.machine.Now()}
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

// verifyOnDrives refuses to acknowledge a volume or snapshot that only its record shows: the record
// may be older than the drives.
func (e *Engine) verifyOnDrives(v *drivebay.Volume) error {
	return e.verifyThere("volume", v, "drivebay volume forget "+v.ID)
}

// verifyThere verifies a volume or snapshot, named by kind.
func (e *Engine) verifyThere(kind string, v *drivebay.Volume, forget string) error {
	there := e.ownIsThere(v)
	if v.Location.VG == "" && !there { // a partition on a drive that leaves is there as well
		e.mu.Lock()
		_, there = e.listed(v)
		e.mu.Unlock()
	}
	switch {
	case there:
		return nil
	case e.gone(v):
		return fmt.Errorf("%s %s: %w: it is no longer on drive %s, where it was made: restore it, or run `%s` and create it again",
			kind, v.ID, drivebay.ErrUnavailable, strings.Join(v.Location.Drives, ", "), forget)
	}
	return fmt.Errorf("%s %s: %w: only its record shows it: %w", kind, v.ID, drivebay.ErrUnavailable, e.notHere(v))
}

// createAnew makes a volume in the place of a forgotten one that is back: the data of that one
// belongs to an earlier request.
func (e *Engine) createAnew(ctx context.Context, have drivebay.VolumeRecord, was drivebay.ForgottenVolume, r drivebay.VolumeRequest) error {
	v := &have.Volume
	if err := e.mayRemove(ctx, v); err != nil {
		return fmt.Errorf("%w: a volume of that name was forgotten, is back on its drive with its data, and is used: %w", drivebay.ErrExists, err)
	}
	was.Replaced = true
	if err := errors.Join(e.markForgotten(was), e.forget(v.ID)); err != nil {
		return err
	}
	return e.create(ctx, v.ID, r)
}

// create finds a place and makes a volume there. If a drive turns out to be unfit, and nothing
// was written to it, create tries the next.
func (e *Engine) create(ctx context.Context, id string, r drivebay.VolumeRequest) error {
	if err := e.refuseSecond(id); err != nil {
		return err
	}
	without := map[string]bool{}
	var refused error
	for {
		rec, err := e.place(id, r, without)
		if errors.Is(err, drivebay.ErrNoSpace) && e.awaitReread(ctx) {
			rec, err = e.place(id, r, without)
		}
		if err != nil {
			return errors.Join(err, refused)
		}
		var wrote atomic.Bool
		err = e.runCreatePlan(ctx, id, r.Secrets, &wrote)
		switch {
		case err == nil:
			return e.finish(id)
		case ctx.Err() != nil || errors.Is(err, errStopped):
			return err
		case wrote.Load():
			return e.failed(ctx, id, err)
		}
		if forgot := e.forget(id); forgot != nil {
			return errors.Join(err, forgot)
		}
		refused = err
		for _, d := range rec.Volume.Location.Drives {
			without[d] = true
		}
	}
}

// place chooses where a volume goes and records it, with all identities that distinguish its
// pieces from anything else.
func (e *Engine) place(id string, r drivebay.VolumeRequest, without map[string]bool) (drivebay.VolumeRecord, error) {
	e.placing.Lock()
	defer e.placing.Unlock()
	now := e.machine.Now()
	v := drivebay.Volume{ID: id, Name: r.Name, Node: e.opt.Node, Mode: modeOf(r), FSType: fsOf(r), Parameters: parametersOf(r.Class), Source: r.Source, Created: now}
	if !r.Block {
		v.FSUUID = newUUID()
	}
	if r.Class.Encryption != "" {
		v.LUKSUUID = newUUID()
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
	return rec, e.put(rec)
}

func (e *Engine) anywhere(v *drivebay.Volume, work *drivebay.Work, r drivebay.VolumeRequest, without map[string]bool) error {
	size, err := sizeOf(r.Size, r.Class, r.Block, 0)
	if err != nil {
		return err
	}
	at, err := e.placementView().choose(r.Class, size, without)
	if err != nil {
		return err
	}
	if r.Class.Backing == drivebay.BackingDrive { // the whole drive
		if size = at.most; !r.Size.Holds(size) {
			return fmt.Errorf("%w: a whole drive has %s, larger than the limit %s", drivebay.ErrRange, sizeText(size), sizeText(r.Size.Limit))
		}
	}
	v.Size = size
	v.Location, work.PVs, err = at.locate(r.Class, v.ID, e.newInstance())
	return err
}

// make completes a volume whose creation has begun. An encrypted one waits for a caller with
// its key.
func (e *Engine) make(ctx context.Context, id string, secrets drivebay.Secrets) error {
	rec, err := e.record(id)
	if err != nil {
		return err
	}
	if rec.Work == nil || rec.Work.Op != drivebay.WorkCreate { // only a recorded creation permits to write to it
		return fmt.Errorf("volume %s: %w: it is not being made", id, drivebay.ErrRefused)
	}
	if err := e.refuseSecondInstance(&rec); err != nil {
		if errors.Is(err, errElsewhere) { // nothing of it is on a drive
			return errors.Join(err, e.forget(id))
		}
		return e.failed(ctx, id, err)
	}
	if err := e.runCreatePlan(ctx, id, secrets, new(atomic.Bool)); err != nil { // an earlier attempt may have written, whether this one has or not
		return e.failed(ctx, id, err)
	}
	return e.finish(id)
}

// makeKeyless is make for a caller without a key.
func (e *Engine) makeKeyless(ctx context.Context, id string) error {
	for range listedTries { // interrupted work is resumed before all drives have answered
		if e.unreadDrives(everyDrive) == nil {
			break
		}
		select {
		case <-e.machine.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return e.make(ctx, id, nil)
}

// listedTries is how many seconds interrupted work waits for all drives to be listed.
const listedTries = 60

// runCreatePlan runs the plan that makes a volume.
func (e *Engine) runCreatePlan(ctx context.Context, id string, secrets drivebay.Secrets, wrote *atomic.Bool) error {
	rec, err := e.record(id)
	if err != nil {
		return err
	}
	v := &rec.Volume
	switch v.Location.Kind {
	case drivebay.LocationPartition, drivebay.LocationDrive:
		n := ofVolume(&rec)
		half := func(ctx context.Context) (bool, error) { return e.ofType(ctx, n, typeMaking) }
		plan := e.addEntry(n, wrote)
		for _, s := range e.filled(v, secrets) {
			plan = append(plan, when(half, s))
		}
		return e.run(ctx, id, append(plan, e.retype("finish", n, finalType(v))))
	}
	if source := v.Source.Volume; source != "" { // a removal would wipe it meanwhile
		end, err := e.beginAfter(ctx, source)
		if err != nil {
			return err
		}
		defer end()
	}
	plan, err := e.makeLogical(&rec, secrets, wrote)
	if err != nil {
		return err
	}
	return e.run(ctx, id, plan)
}

// filled returns the steps that give a new volume a filesystem, or zeros.
func (e *Engine) filled(v *drivebay.Volume, secrets drivebay.Secrets) []step {
	var plan []step
	if v.Mode == drivebay.ModeFS {
		plan = []step{e.cleared(v), e.formatted(v)}
	} else {
		plan = []step{e.zeroed(v)}
	}
	if v.LUKSUUID != "" {
		plan = slices.Concat([]step{e.encrypted(v, secrets), e.headerKept(v), e.unlocked(v, secrets)}, plan, []step{e.locked(v)})
	}
	return plan
}

func (e *Engine) zeroed(v *drivebay.Volume) step {
	return e.made(v.ID, "zero", func(ctx context.Context) error { return e.overwrite(ctx, v, "zero", 0, v.Size, zeroRange) })
}

func (e *Engine) finish(id string) error {
	r, err := e.change(id, func(r *drivebay.VolumeRecord) (err error) {
		r.Work = nil
		if r.Volume.Location.Kind == drivebay.LocationMirror {
			r.Volume.Mirror = &drivebay.Mirror{}
		}
		r.Volume, err = r.Volume.Moved(drivebay.CSIDone)
		return err
	})
	if err == nil {
		e.note(drivebay.EventVolumeCreated, &r.Volume, fmt.Sprintf("volume %q of %s was created as %v", r.Volume.Name, sizeText(r.Volume.Size), r.Volume.Location.Kind))
	}
	return err
}
