package volume

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/partitions"
	"github.com/drivebay/drivebay/volume/internal/watch"
)

// Run keeps the set of volumes up to date until ctx ends, and resumes interrupted
// work. It waits for no drive: listings run in the background, one at a time.
func (e *Engine) Run(ctx context.Context) error {
	defer e.ledger.WriteHeld()
	defer e.awaitLVM()
	defer e.env.Running.Wait()
	defer e.stop()
	s, err := e.env.Drives.Wait(ctx, 0)
	if err != nil {
		return nil
	}
	e.inventory.ViewMu.Lock()
	e.instances.FirstListedAt = e.env.Machine.Now()
	e.inventory.ViewMu.Unlock()
	e.watch.RecallKernelSaid()
	e.replications.ObserveSoon() // it answers before the drives are listed
	e.mounts.SettleAll(ctx)      // finds mounts that are gone without asking a drive
	if err := e.repair.LookAtMounts(ctx); err != nil {
		e.env.Log.Warn("mounts not listed", "op", "watch", "err", err)
	}
	l := lister{e: e, came: make(chan error, 1)}
	l.begin(ctx, s)
	news, log, heard := e.followDrives(ctx, s.Seq), e.inventory.KernelLog(ctx), e.env.Machine.Now()
	patience, tick := e.env.Machine.After(partitions.StartTime), e.env.Machine.After(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.ledger.Changed:
		case <-patience:
			e.show()
		case err := <-l.came:
			l.end(ctx, err)
			e.show()
		case s := <-news:
			if l.matters(s) {
				e.mirror.WatchSoon(ctx, s)
				l.begin(ctx, s)
			}
		case line, ok := <-log:
			if !ok { // it is opened again after a while
				log = nil
				e.moves.KernelLogClosed.Store(true)
				e.moves.KernelLogGaps.Add(1)
				heard = e.env.Machine.Now()
				continue
			}
			if e.replications.Heard(line.Text) {
				e.replications.ObserveSoon()
			}
			if !e.watch.FollowKernelLog(line) {
				continue
			}
		case <-tick:
			tick = e.env.Machine.After(e.env.Opt.Tick)
			if log == nil && e.env.Machine.Now().Sub(heard) >= partitions.ReportEvery {
				log, heard = e.inventory.KernelLog(ctx), e.env.Machine.Now()
			}
			if !e.env.Machine.Now().Before(l.due) {
				l.begin(ctx, e.env.Drives.Snapshot())
			}
			e.tick(ctx)
			e.replications.ObserveSoon()
			e.follow()
			e.erase.WipeLeft()
			e.repair.RepairAutomatically()
			e.publish()
			e.watch.SendConditions()
			e.watch.KeepKernelSaid()
			e.ledger.WriteHeldAside()
			continue
		}
		e.publish()
	}
}

// lvmEnds is how long the end of the engine waits for LVM. The system manager kills LVM after the daemon
// has ended; its own limit is 15 s (deploy/systemd).
const lvmEnds = 10 * time.Second

// awaitLVM waits until no LVM command changes a volume group: one that is killed can leave a volume
// suspended.
func (e *Engine) awaitLVM() {
	end := e.env.Machine.Now().Add(lvmEnds)
	for e.env.LVM != nil && e.env.LVM.ChangesUnderWay() > 0 && e.env.Machine.Now().Before(end) {
		<-e.env.Machine.After(lvmEnds / 100)
	}
}

// show lets callers read the set.
func (e *Engine) show() {
	e.inventory.ViewMu.Lock()
	defer e.inventory.ViewMu.Unlock()
	e.inventory.Ready = true
}

// publish makes the set that callers read from what the engine knows. It computes only
// what has changed, and Seq grows only when a caller can see a change.
func (e *Engine) publish() {
	e.inventory.ViewMu.Lock()
	defer e.inventory.ViewMu.Unlock()
	if !e.inventory.Ready {
		return
	}
	last, s := e.ledger.Set.Load(), e.env.Drives.Snapshot()
	e.watch.SeeDrives(s)
	records, busy, index := e.partitions.AllAndBusy()
	read := e.watch.LastMounts != nil && e.watch.LastMounts.Changes == e.mounttable.MountChanges.Load()
	scrubbed := e.watch.Scrubbing()
	next := &drivebay.VolumeSet{Seq: last.Seq, At: e.env.Machine.Now(), Drives: s, Volumes: make([]*drivebay.VolumeView, 0, len(records)), Snapshots: e.snapshots.ShownNow(), Found: e.adopt.FoundNow(), Problems: e.watch.Problems()}
	changed := last.Seq == 0 || len(records) != len(last.Volumes) || !reflect.DeepEqual(next.Snapshots, last.Snapshots) || !reflect.DeepEqual(next.Found, last.Found) || !slices.Equal(next.Problems, last.Problems)
	for _, r := range records {
		was := e.watch.Views[r.Volume.ID]
		is, staged, mounts := was, (*watch.StagedFS)(nil), mounts.MountView{}
		if was != nil {
			staged, mounts = was.Staged, was.Mounts
		}
		if was == nil || was.Known.Record != r {
			staged = e.watch.StagedFS(&r.Volume)
		}
		k := e.watch.Observe(r, s, staged, was, index)
		k.Scrubbed = scrubbed == r.Volume.ID
		if r.Work != nil {
			k.Progress = e.moves.Progress(r.Volume.ID)
		}
		mounts = e.watch.MountsOf(mounts, k, index, read && !busy[r.Volume.ID])
		k.Mounts = mounts.Facts
		if was == nil || was.Known != k {
			is = &watch.ShownVolume{Known: k, Mounts: mounts, Staged: staged, View: e.view(k, s)}
			changed = changed || was == nil || !sameView(was.View, is.View)
		}
		is.Mounts, is.Index = mounts, index
		e.watch.Views[r.Volume.ID] = is
		next.Volumes = append(next.Volumes, is.View)
	}
	if changed {
		next.Seq++
		is := func(id string) bool { _, ok := next.Get(id); return ok }
		maps.DeleteFunc(e.watch.Views, func(id string, _ *watch.ShownVolume) bool { return !is(id) })
		e.mounts.Counters.Keep(is)
		e.watch.Scrubs.Keep(is)
		e.moves.Moves.Keep(is)
	}
	e.ledger.Set.Store(next)
}

// sameView reports whether callers see the same in two views. It ignores the facts and the
// space: their numbers may differ.
func sameView(a, b *drivebay.VolumeView) bool {
	return a.Work == b.Work && reflect.DeepEqual(a.Progress, b.Progress) && reflect.DeepEqual(a.Volume, b.Volume) && reflect.DeepEqual(a.Condition, b.Condition)
}

func (e *Engine) view(k watch.Observations, s *drivebay.Snapshot) *drivebay.VolumeView {
	f := e.watch.FactsOf(k, s)
	f.Volume.Health = condition.HealthOf(f)
	f.Volume.OperationalStatus = k.Operational(condition.OperationalStatusOf(f))
	out := &drivebay.VolumeView{Volume: f.Volume, Condition: condition.Of(f), Facts: &f, Space: drivebay.SpaceOf(&f)}
	if k.Progress.Total > 0 {
		out.Progress = &k.Progress
	}
	if w := k.Record.Work; w != nil {
		out.Work = string(w.Op)
	} else if k.Scrubbed {
		out.Work = "scrub"
	}
	return out
}
