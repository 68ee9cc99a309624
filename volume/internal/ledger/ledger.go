package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/env"
)

// Ledger holds the records and who works on each volume.
type Ledger struct {
	*env.Env

	Busy             map[string]chan struct{} // ids with work in progress
	Changed          chan struct{}            // a record has changed: publish
	Held             map[string]bool          // volumes whose newest record is in memory only; true: the log has why
	Mu               sync.Mutex
	Records          map[string]*drivebay.VolumeRecord // never changed in place
	RemovedFromGroup map[string]bool                   // ids of volumes being removed whose logical volume is gone; guarded by Ledger.Mu
	Set              *Sets
	Snapshots        map[string]*drivebay.SnapshotRecord // likewise
	sorted           []*drivebay.VolumeRecord            // the same by id; nil after a change
	writesHeld       atomic.Bool                         // records that were kept in memory are being written
	changing         idLocks                             // a record is held from its reading until it counts
	storing          idLocks                             // a record is held while it is written to the store or deleted there
	queued           map[string]chan struct{}            // ids of held records that a goroutine will write; closed at its end; guarded by Ledger.Mu
	late             atomic.Int32                        // writes of held records that no call waits for any more
	// publish shows a change of the records; missing is the error for an id without a record; acquire
	// takes a volume for one caller, if need be from a move.
	Publish func()
	Missing func(id string) error
	Acquire func(ctx context.Context, id string) (end func(), err error)
}

// Volumes returns the newest set; never nil.
func (e *Ledger) Volumes() *drivebay.VolumeSet { return e.Set.Load() }

// Begin takes a volume or snapshot for one caller; a second one gets ErrPending.
func (e *Ledger) Begin(id string) (end func(), err error) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if e.Busy[id] != nil {
		return nil, fmt.Errorf("volume %s: %w", id, drivebay.ErrPending)
	}
	over := make(chan struct{})
	e.Busy[id] = over
	return func() {
		e.Mu.Lock()
		defer e.Mu.Unlock()
		delete(e.Busy, id)
		close(over)
	}, nil
}

// BeginAfter is Begin that waits for the current holder.
func (e *Ledger) BeginAfter(ctx context.Context, id string) (end func(), err error) {
	for {
		e.Mu.Lock()
		over := e.Busy[id]
		e.Mu.Unlock()
		if over == nil {
			if end, err = e.Begin(id); err == nil {
				return end, nil
			}
			continue // another caller was faster
		}
		select {
		case <-over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Work runs f for a volume and waits for it as long as the caller does. When the caller gives
// up, f continues, and the volume stays taken until f ends.
func (e *Ledger) Work(ctx context.Context, id string, f func(context.Context) error) error {
	end, err := e.Acquire(ctx, id)
	if err != nil {
		return err
	}
	came := make(chan error, 1)
	e.Running.Go(func() {
		err := Safely(e.Ctx, "volume "+id, f)
		end() // before the caller gets the result: it may call again at once
		came <- err
	})
	select {
	case err := <-came:
		return err
	case <-ctx.Done():
		return fmt.Errorf("volume %s: %w: the work continues", id, ctx.Err())
	}
}

var ErrPanic = errors.New("panic")

// Safely turns a panic into an error: it ends one call, and no other.
func Safely(ctx context.Context, what string, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v", what, ErrPanic, p)
		}
	}()
	return f(ctx)
}

// InBackground runs f in a goroutine that Run waits for. A panic ends f alone, and is logged.
func (e *Ledger) InBackground(op string, f func()) {
	e.Running.Go(func() {
		err := Safely(e.Ctx, op, func(context.Context) error { f(); return nil })
		if err != nil {
			e.Log.Error("background work ended early", "op", op, "err", err)
		}
	})
}

// Record returns the record of a volume; without one, the error of Missing.
func (e *Ledger) Record(id string) (drivebay.VolumeRecord, error) {
	e.Mu.Lock()
	r := e.Records[id]
	e.Mu.Unlock()
	if r == nil {
		return drivebay.VolumeRecord{}, e.Missing(id)
	}
	return *r, nil
}

// Change changes a volume's record, on disk first. A caller that holds the volume may rely on
// the record in between, except for the verdict of a check.
func (e *Ledger) Change(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	e.changing.lock(id, nil)
	defer e.changing.unlock(id)
	r, err := e.edited(id, f)
	if err != nil {
		return r, err
	}
	return r, e.Put(r)
}

// edited returns a copy of a volume's record with a change. Its lock in changing is held.
func (e *Ledger) edited(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	r, err := e.Record(id)
	if err == nil {
		r.Volume.Publications = slices.Clone(r.Volume.Publications)
		if r.Work != nil {
			w := *r.Work
			w.Made = slices.Clone(w.Made)
			r.Work = &w
		}
		err = f(&r)
	}
	return r, err
}

// Put writes a record to the store, then makes it count.
func (e *Ledger) Put(r drivebay.VolumeRecord) error {
	e.storing.lock(r.Volume.ID, nil)
	defer e.storing.unlock(r.Volume.ID)
	if err := e.Store.PutVolume(r); err != nil {
		return fmt.Errorf("volume %s: remember: %w", r.Volume.ID, NotStored(err))
	}
	e.Mu.Lock()
	e.Records[r.Volume.ID], e.sorted = &r, nil
	delete(e.Held, r.Volume.ID)
	e.Mu.Unlock()
	e.Publish()
	return nil
}

// Forget deletes a record, in the store first.
func (e *Ledger) Forget(id string) error {
	e.changing.lock(id, nil)
	defer e.changing.unlock(id)
	e.storing.lock(id, nil)
	defer e.storing.unlock(id)
	if err := e.Store.DeleteVolume(id); err != nil {
		return fmt.Errorf("volume %s: forget: %w", id, NotStored(err))
	}
	e.Mu.Lock()
	delete(e.Records, id)
	delete(e.Held, id)
	delete(e.RemovedFromGroup, id)
	e.sorted = nil
	e.Mu.Unlock()
	e.Publish()
	return nil
}

// WithoutChanges runs f while no record changes. It does not run f if records are being changed for
// too long, as when the store hangs.
func (e *Ledger) WithoutChanges(f func() error) error {
	if !e.changing.lockAll(e.Machine.After(10 * storeTime)) {
		return fmt.Errorf("%w: records of volumes are being written; retry later", drivebay.ErrPending)
	}
	defer e.changing.unlockAll()
	return f()
}

// All returns the records by id; no caller changes the list.
func (e *Ledger) All() []*drivebay.VolumeRecord {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.SortedRecords()
}

// SortedRecords is All with Ledger.Mu held.
func (e *Ledger) SortedRecords() []*drivebay.VolumeRecord {
	if e.sorted == nil {
		e.sorted = slices.SortedFunc(maps.Values(e.Records), func(a, b *drivebay.VolumeRecord) int { return strings.Compare(a.Volume.ID, b.Volume.ID) })
	}
	return e.sorted
}

// Publishes reports whether a volume is published at a path, as its record has it.
func (e *Ledger) Publishes(path string) bool {
	return slices.ContainsFunc(e.All(), func(r *drivebay.VolumeRecord) bool {
		return slices.ContainsFunc(r.Volume.Publications, func(p drivebay.Publication) bool { return p.Path == path })
	})
}

// Snapshot returns the record of a snapshot.
func (e *Ledger) Snapshot(id string) (drivebay.SnapshotRecord, bool) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if r := e.Snapshots[id]; r != nil {
		return *r, true
	}
	return drivebay.SnapshotRecord{}, false
}

// MissingSnapshot returns the error for a snapshot without a record: that of Missing, but ErrNotFound for the id of a recorded volume.
func (e *Ledger) MissingSnapshot(id string) error {
	e.Mu.Lock()
	_, is := e.Records[id]
	e.Mu.Unlock()
	if is {
		return fmt.Errorf("snapshot %q: %w: this is the id of a volume", id, drivebay.ErrNotFound)
	}
	return e.Missing(id)
}
