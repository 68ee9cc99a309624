package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/lvm"
)

// Drives is what the engine needs from the drive manager.
type Drives interface {
	Snapshot() *drivebay.Snapshot
	// Wait returns the first snapshot newer than after.
	Wait(ctx context.Context, after uint64) (*drivebay.Snapshot, error)
	// ProveIdentity proves that the block device with that number is the drive with that id, or a part
	// of it. The engine asks this of an open device, right before the first write.
	ProveIdentity(ctx context.Context, id, devnum string) error
	// Refresh lists the machine and reads all drives again.
	Refresh(ctx context.Context) error
	// Written reads a drive again after the engine has changed its table.
	Written(ctx context.Context, id string) error
	// AwaitReread waits until these drives were read, and reports whether there was one.
	AwaitReread(ctx context.Context) (bool, error)
	// Emptied reports that nothing depends on a drive any more that has to leave. Held reports
	// what the drive waits for.
	Emptied(ctx context.Context, id string) error
	Waiting(ctx context.Context, id, by string, p *drivebay.Progress) error
	// Operate does what an operator requests for a drive.
	Operate(ctx context.Context, id string, do drivebay.LeaveVerb, why string) error
	// LeaveFailed reports why a drive cannot leave.
	LeaveFailed(ctx context.Context, id, cause string) error
	// BlockUnclaim keeps the claim of a drive while why returns a reason.
	BlockUnclaim(why func(drive string) string)
	// BlockForget keeps the record of a missing drive while why returns a reason.
	BlockForget(why func(drive string) string)
	// Note records what happened to a volume.
	Note(e drivebay.Event)
}

// Store keeps the records on disk.
type Store interface {
	Volumes() (map[string]drivebay.VolumeRecord, error)
	PutVolume(drivebay.VolumeRecord) error
	DeleteVolume(id string) error
	VolumeSnapshots() (map[string]drivebay.SnapshotRecord, error)
	PutVolumeSnapshot(drivebay.SnapshotRecord) error
	DeleteVolumeSnapshot(id string) error
	Forgotten() (map[string]drivebay.ForgottenVolume, error)
	PutForgotten(drivebay.ForgottenVolume) error
	DeleteForgotten(key string) error
	Remains() (map[string]drivebay.Remains, error)
	PutRemains(drivebay.Remains) error
	DeleteRemains(partition string) error
}

// Options are the settings of an engine. Zero fields take the default.
type Options struct {
	Node  string   // name of this node
	Roots []string // folders below which volumes may be staged and published
	Tick  time.Duration
	// Heal makes the engine do the safe repairs by itself.
	Heal bool
	// Headers is the folder for copies of LUKS headers; empty: no copies are kept.
	Headers string
	Log     *slog.Logger
	// Throttle is how much of the time the kernel may copy data that moves, in percent; 0: the
	// kernel's setting.
	Throttle int
	// After is called with the name of each step that was done. An error ends the work as a
	// crash would. For tests.
	After func(volume, step string) error
	// CopyRate is how many bytes per second of a volume are copied off a leaving drive; 0: no
	// limit.
	CopyRate uint64
	// FSTypes are the filesystems that classes ask for; none: all supported ones.
	FSTypes []string
	// FullPercent is the usage from which a filesystem counts as full; 0: never.
	FullPercent int
}

// Engine makes, mounts and watches the volumes of one machine.
type Engine struct {
	machine host.Worker
	drives  Drives
	store   Store
	lvm     *lvm.System
	opt     Options
	log     *slog.Logger

	tools tools

	set     atomic.Pointer[drivebay.VolumeSet]
	changed chan struct{} // a record has changed: publish

	mu        sync.Mutex
	records   map[string]*drivebay.VolumeRecord   // never changed in place
	sorted    []*drivebay.VolumeRecord            // the same by id; nil after a change
	snapshots map[string]*drivebay.SnapshotRecord // likewise
	forgotten map[string]drivebay.ForgottenVolume // by key
	held      map[string]bool                     // volumes whose newest record is in memory only
	newer     map[string]bool                     // volumes that are newer than the store
	busy      map[string]chan struct{}            // ids with work in progress
	writing   sync.Mutex                          // held from the reading of a record to its writing
	remainsMu sync.Mutex                          // held from the reading of remains to their writing
	running   sync.WaitGroup                      // work that may have no caller any more
	ctx       context.Context                     // of Run; work ends with it
	stop      context.CancelFunc

	moves copyMoves // of volumes to other drives

	provisioning
	mountingAndWatching // state of mounting and watching
}

// Volumes returns the newest set; never nil.
func (e *Engine) Volumes() *drivebay.VolumeSet { return e.set.Load() }

// begin takes a volume or snapshot for one caller; a second one gets ErrPending.
func (e *Engine) begin(id string) (end func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy[id] != nil {
		return nil, fmt.Errorf("volume %s: %w", id, drivebay.ErrPending)
	}
	over := make(chan struct{})
	e.busy[id] = over
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.busy, id)
		close(over)
	}, nil
}

// beginAfter is begin that waits for the current holder.
func (e *Engine) beginAfter(ctx context.Context, id string) (end func(), err error) {
	for {
		e.mu.Lock()
		over := e.busy[id]
		e.mu.Unlock()
		if over == nil {
			if end, err = e.begin(id); err == nil {
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

// work runs f for a volume and waits for it as long as the caller does. When the caller gives
// up, f continues, and the volume stays taken until f ends.
func (e *Engine) work(ctx context.Context, id string, f func(context.Context) error) error {
	end, err := e.beginFirst(ctx, id)
	if err != nil {
		return err
	}
	came := make(chan error, 1)
	e.running.Go(func() {
		err := safely(e.ctx, "volume "+id, f)
		end() // before the caller gets the result: it may call again at once
		came <- err
	})
	select {
	case err := <-came:
		return err
	case <-ctx.Done():
		return fmt.Errorf("volume %s: %w: the work goes on", id, ctx.Err())
	}
}

var errPanic = errors.New("panic")

// safely turns a panic into an error: it ends one call, and no other.
func safely(ctx context.Context, what string, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v", what, errPanic, p)
		}
	}()
	return f(ctx)
}

// inBackground runs f in a goroutine that Run waits for. A panic ends f alone, and is logged.
func (e *Engine) inBackground(op string, f func()) {
	e.running.Go(func() {
		err := safely(e.ctx, op, func(context.Context) error { f(); return nil })
		if err != nil {
			e.log.Error("background work ended early", "op", op, "err", err)
		}
	})
}

// record returns the record of a volume; without one, the error of Missing.
func (e *Engine) record(id string) (drivebay.VolumeRecord, error) {
	e.mu.Lock()
	r := e.records[id]
	e.mu.Unlock()
	if r == nil {
		return drivebay.VolumeRecord{}, e.Missing(id)
	}
	return *r, nil
}

// change changes a volume's record, on disk first. A caller that holds the volume may rely on
// the record in between, except for the verdict of a check.
func (e *Engine) change(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	r, err := e.edited(id, f)
	if err != nil {
		return r, err
	}
	return r, e.put(r)
}

// edited returns a copy of a volume's record with a change. Engine.writing is held.
func (e *Engine) edited(id string, f func(*drivebay.VolumeRecord) error) (drivebay.VolumeRecord, error) {
	r, err := e.record(id)
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

func (e *Engine) put(r drivebay.VolumeRecord) error {
	if err := e.store.PutVolume(r); err != nil {
		return fmt.Errorf("volume %s: remember: %w", r.Volume.ID, notStored(err))
	}
	e.mu.Lock()
	e.records[r.Volume.ID], e.sorted = &r, nil
	delete(e.held, r.Volume.ID)
	e.mu.Unlock()
	e.publish()
	return nil
}

func (e *Engine) forget(id string) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.store.DeleteVolume(id); err != nil {
		return fmt.Errorf("volume %s: forget: %w", id, notStored(err))
	}
	e.mu.Lock()
	delete(e.records, id)
	delete(e.held, id)
	delete(e.removedFromGroup, id)
	e.sorted = nil
	e.mu.Unlock()
	e.publish()
	return nil
}

// all returns the records by id; no caller changes the list.
func (e *Engine) all() []*drivebay.VolumeRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sortedRecords()
}

// allAndBusy returns the records, the ids with work in progress, and how often the partitions
// of the drives have changed, at one moment.
func (e *Engine) allAndBusy() (all []*drivebay.VolumeRecord, busy map[string]bool, index uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.busy {
		if busy == nil {
			busy = make(map[string]bool, len(e.busy))
		}
		busy[id] = true
	}
	return e.sortedRecords(), busy, e.index.changes
}

// sortedRecords is all with Engine.mu held.
func (e *Engine) sortedRecords() []*drivebay.VolumeRecord {
	if e.sorted == nil {
		e.sorted = slices.SortedFunc(maps.Values(e.records), func(a, b *drivebay.VolumeRecord) int { return strings.Compare(a.Volume.ID, b.Volume.ID) })
	}
	return e.sorted
}
