package volume

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drivebay/drivebay"
)

// mountingAndWatching holds what mounting and watching remember.
type mountingAndWatching struct {
	lanes    lanes
	counters ioCountersByVolume
	scrubs   scrubs

	tableMu      sync.Mutex
	lastTable    *mountTable // nil: the engine has changed mounts since it was read
	lastSet      *mountSet
	mountChanges atomic.Uint64 // counts the engine's mounts and unmounts
	readAhead    atomic.Bool   // the table is being read in the background
	roots        sync.Map      // configured root -> the path it resolves to; for one tick

	mirrorDecisions atomic.Uint64 // grows with each mirror that is about to be activated or was deactivated

	writesHeld atomic.Bool // records that were kept in memory are being written

	following atomic.Bool // volumes are being compared with their drives
	wiping    atomic.Bool // what volumes have left in free extents is being wiped
	repairing autoRepairs

	reasons    map[string]reasonsSent // by volume; only the goroutine in Run uses it
	eventsFrom time.Time              // no condition events are sent before

	viewMu            sync.Mutex // guards the fields below: what the last tick found
	firstListedAt     time.Time  // when the drives were first listed
	ready             bool       // the set may be read: the records of an earlier run were compared with the machine
	firstListingEnded bool       // the first listing does not hold back readiness any more
	views             map[string]*shownVolume
	seenDrives        map[string]*seenDrive
	seenSeq           uint64 // of the drive snapshot that seenDrives is from
	changes           uint64
	lastMounts        *mountTable // mounts at the last tick
}

// shownVolume is a volume as it was published, and what that was computed from.
type shownVolume struct {
	known  observations
	index  uint64 // how often the partitions and layouts of drives had changed
	mounts mountView
	staged *stagedFS // nil: not staged
	view   *drivebay.VolumeView
}

// startTime is how long the first set waits for drives that do not answer.
const startTime = 3 * time.Second

// Run keeps the set of volumes up to date until ctx ends, and resumes interrupted
// work. It waits for no drive: listings run in the background, one at a time.
func (e *Engine) Run(ctx context.Context) error {
	defer e.writeHeld()
	defer e.running.Wait()
	defer e.stop()
	s, err := e.drives.Wait(ctx, 0)
	if err != nil {
		return nil
	}
	e.viewMu.Lock()
	e.firstListedAt = e.machine.Now()
	e.viewMu.Unlock()
	e.settleAll(ctx) // finds mounts that are gone without asking a drive
	if err := e.lookAtMounts(ctx); err != nil {
		e.log.Warn("mounts not listed", "op", "watch", "err", err)
	}
	l := lister{e: e, wait: reportEvery, came: make(chan error, 1)}
	l.begin(ctx, s)
	news, log, heard := e.followDrives(ctx, s.Seq), e.kernelLog(ctx), e.machine.Now()
	patience, tick := e.machine.After(startTime), e.machine.After(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.changed:
		case <-patience:
			e.show()
		case err := <-l.came:
			l.end(ctx, err)
			e.show()
		case s := <-news:
			if l.matters(s) {
				e.watchSoon(ctx, s)
				l.begin(ctx, s)
			}
		case line, ok := <-log:
			if !ok { // it is opened again after a while
				log = nil
				e.kernelLogClosed.Store(true)
				e.kernelLogGaps.Add(1)
				heard = e.machine.Now()
				continue
			}
			if !e.followKernelLog(line) {
				continue
			}
		case <-tick:
			tick = e.machine.After(e.opt.Tick)
			if log == nil && e.machine.Now().Sub(heard) >= reportEvery {
				log, heard = e.kernelLog(ctx), e.machine.Now()
			}
			if e.machine.Now().Sub(l.at) >= l.wait {
				l.begin(ctx, e.drives.Snapshot())
			}
			e.watch(ctx)
			e.follow()
			e.wipeLeft()
			e.repairAutomatically()
			e.publish()
			e.sendConditions()
			e.writeHeldAside()
			continue
		}
		e.publish()
	}
}

// show lets callers read the set.
func (e *Engine) show() {
	e.viewMu.Lock()
	defer e.viewMu.Unlock()
	e.ready = true
}

// publish makes the set that callers read from what the engine knows. It computes only
// what has changed, and Seq grows only when a caller can see a change.
func (e *Engine) publish() {
	e.viewMu.Lock()
	defer e.viewMu.Unlock()
	if !e.ready {
		return
	}
	last, s := e.set.Load(), e.drives.Snapshot()
	e.seeDrives(s)
	records, busy, index := e.allAndBusy()
	read := e.lastMounts != nil && e.lastMounts.changes == e.mountChanges.Load()
	scrubbed := e.scrubbing()
	views := make(map[string]*shownVolume, len(records))
	next := &drivebay.VolumeSet{Seq: last.Seq, At: e.machine.Now(), Drives: s, Volumes: make([]*drivebay.VolumeView, 0, len(records)), Snapshots: e.snapshotsNow(), Found: e.foundNow()}
	changed := last.Seq == 0 || len(records) != len(last.Volumes) || !reflect.DeepEqual(next.Snapshots, last.Snapshots) || !reflect.DeepEqual(next.Found, last.Found)
	for _, r := range records {
		was := e.views[r.Volume.ID]
		is, staged, mounts := was, (*stagedFS)(nil), mountView{}
		if was != nil {
			staged, mounts = was.staged, was.mounts
		}
		if was == nil || was.known.record != r {
			staged = e.stagedFS(&r.Volume)
		}
		k := e.observe(r, s, staged, was, index)
		k.scrubbed = scrubbed == r.Volume.ID
		mounts = e.mountsOf(mounts, k, index, read && !busy[r.Volume.ID])
		k.mounts = mounts.facts
		if was == nil || was.known != k {
			is = &shownVolume{known: k, mounts: mounts, staged: staged, view: e.view(k, s)}
			changed = changed || was == nil || !sameView(was.view, is.view)
		}
		is.mounts, is.index = mounts, index
		views[r.Volume.ID] = is
		next.Volumes = append(next.Volumes, is.view)
	}
	if changed {
		next.Seq++
		is := func(id string) bool { return views[id] != nil }
		e.counters.keep(is)
		e.scrubs.keep(is)
		e.moves.keep(is)
	}
	e.views = views
	e.set.Store(next)
}

// sameView reports whether callers see the same in two views. It ignores the facts:
// their numbers may differ.
func sameView(a, b *drivebay.VolumeView) bool {
	return a.Work == b.Work && reflect.DeepEqual(a.Volume, b.Volume) && reflect.DeepEqual(a.Condition, b.Condition)
}

func (e *Engine) view(k observations, s *drivebay.Snapshot) *drivebay.VolumeView {
	f := e.factsOf(k, s)
	f.Volume.Health = drivebay.VolumeHealthOf(f)
	f.Volume.OperationalStatus = drivebay.OperationalStatusOf(f)
	out := &drivebay.VolumeView{Volume: f.Volume, Condition: drivebay.ConditionOf(f), Facts: &f}
	if w := k.record.Work; w != nil {
		out.Work = string(w.Op)
	} else if k.scrubbed {
		out.Work = "scrub"
	}
	return out
}

// snapshotsNow returns the volume snapshots that are not still being made, by id.
func (e *Engine) snapshotsNow() []drivebay.VolumeSnapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []drivebay.VolumeSnapshot
	for _, id := range slices.Sorted(maps.Keys(e.snapshots)) {
		if r := e.snapshots[id]; r.Work == nil || r.Work.Op != drivebay.WorkCreate {
			out = append(out, r.Snapshot)
		}
	}
	return out
}
