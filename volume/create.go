package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
)

// CreateVolume makes a volume, or returns the one of that name.
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

// sourceThere refuses a copy of what is not there, whatever the copy is made of.
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

// recreate answers who asks for a volume again that there is, or makes what the
// first time did not come to an end.
func (e *Engine) recreate(ctx context.Context, have drivebay.VolumeRecord, r drivebay.VolumeRequest) error {
	v := &have.Volume
	if was, is := e.wasForgotten(v.ID, v.Location); is {
		return e.createAnew(ctx, have, was, r)
	}
	if v.Mode == drivebay.ModeUnknown { // found half made: it becomes what is asked for now
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

// createAnew makes a volume in the place of one that was forgotten and is back: what is
// written on that one belongs to a request of before.
func (e *Engine) createAnew(ctx context.Context, have drivebay.VolumeRecord, was drivebay.ForgottenVolume, r drivebay.VolumeRequest) error {
	v := &have.Volume
	if err := e.mayRemove(ctx, v); err != nil {
		return fmt.Errorf("%w: a volume of that name was forgotten, is back on its drive with its data, and is used: %w", drivebay.ErrExists, err)
	}
	was.Replaced = true
	if err := errors.Join(e.bury(was), e.forget(v.ID)); err != nil {
		return err
	}
	return e.create(ctx, v.ID, r)
}

// create finds a place and makes a volume there. Where a drive turns out not to be
// what was believed, and nothing was written to it, the next is tried.
func (e *Engine) create(ctx context.Context, id string, r drivebay.VolumeRequest) error {
	if err := e.sole(id); err != nil {
		return err
	}
	without := map[string]bool{}
	var refused error
	for {
		rec, err := e.place(id, r, without)
		if err != nil {
			return errors.Join(err, refused)
		}
		var wrote atomic.Bool
		err = e.carryOut(ctx, id, r.Secrets, &wrote)
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

// place chooses where a volume is to be and writes it down, with everything that
// tells what is to be made from anything else.
func (e *Engine) place(id string, r drivebay.VolumeRequest, without map[string]bool) (drivebay.VolumeRecord, error) {
	e.placed.Lock()
	defer e.placed.Unlock()
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
	at, err := e.seen().choose(r.Class, size, without)
	if err != nil {
		return err
	}
	if r.Class.Backing == drivebay.BackingDrive { // all of it
		if size = at.most; !r.Size.Holds(size) {
			return fmt.Errorf("%w: a whole drive has %d bytes, at most %d are asked for", drivebay.ErrRange, size, r.Size.Limit)
		}
	}
	v.Size = size
	v.Location, work.PVs, err = at.locate(r.Class, v.ID)
	return err
}

// make brings a volume that was begun to its end. An encrypted one waits for who
// has its key.
func (e *Engine) make(ctx context.Context, id string, secrets drivebay.Secrets) error {
	rec, err := e.record(id)
	if err != nil {
		return err
	}
	if err := e.soleInstance(&rec); err != nil {
		if errors.Is(err, errElsewhere) { // nothing of it is on a drive
			return errors.Join(err, e.forget(id))
		}
		return e.failed(ctx, id, err)
	}
	if err := e.carryOut(ctx, id, secrets, new(atomic.Bool)); err != nil { // an earlier try may have written, whether this one has or not
		return e.failed(ctx, id, err)
	}
	return e.finish(id)
}

// makeKeyless is make for who has no key.
func (e *Engine) makeKeyless(ctx context.Context, id string) error {
	for range listedTries { // what was cut short is taken up before all drives have answered
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

// listedTries is how many seconds work that was cut short waits for all drives to be
// listed.
const listedTries = 60

// carryOut runs the plan of a volume that is to be made.
func (e *Engine) carryOut(ctx context.Context, id string, secrets drivebay.Secrets, wrote *atomic.Bool) error {
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
	plan, err := e.makeLogical(&rec, secrets, wrote)
	if err != nil {
		return err
	}
	return e.run(ctx, id, plan)
}

// filled is what a new volume begins with: a filesystem, or zeros.
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
		e.note(drivebay.EventVolumeCreated, &r.Volume, fmt.Sprintf("volume %q of %d bytes was made as %v", r.Volume.Name, r.Volume.Size, r.Volume.Location.Kind))
	}
	return err
}
