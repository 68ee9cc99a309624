package watch

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/condition"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/mounts"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

const (
	scrubEvery = 7 * 24 * time.Hour
	scrubAgain = time.Hour // after a check on suspicion, or one that did not finish
	scrubRuns  = condition.ScrubsAgree
	scrubPause = time.Minute
	ScrubTime  = 12 * time.Hour
	scrubEnds  = time.Second // wait for a check whose program was killed
	scrubOpens = 5 * time.Second
)

// scrubs holds the check under way: one at a time, and in no lane, so that no mount
// waits for it.
type scrubs struct {
	Mu    sync.Mutex
	id    string // of the volume; empty: none
	end   context.CancelFunc
	over  chan struct{}        // closed when its program has ended
	Begun map[string]time.Time // when the last check of each volume began
	Cause map[string]Suspicion // the errors counted then
}

// Keep drops the entries of volumes that are gone.
func (s *scrubs) Keep(is func(id string) bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	maps.DeleteFunc(s.Begun, func(id string, _ time.Time) bool { return !is(id) })
	maps.DeleteFunc(s.Cause, func(id string, _ Suspicion) bool { return !is(id) })
}

// Suspicion holds error counts. When one of them grows there is a reason to check at once.
type Suspicion struct{ fs, io uint64 }

func (k Observations) suspicion() Suspicion { return Suspicion{k.fs.errors, k.io.logged} }

func (s Suspicion) beyond(last Suspicion) bool { return s.fs > last.fs || s.io > last.io }

// ScrubVolume starts a check of a volume's filesystem. The volume's facts have the
// verdict when the check has ended.
func (e *Watcher) ScrubVolume(_ context.Context, id string) error {
	r, err := e.Ledger.Record(id)
	if err != nil {
		return err
	}
	if !r.Volume.HasFilesystem() {
		return fmt.Errorf("scrub volume %s: %w: it has no filesystem that drivebay manages", id, drivebay.ErrNoSupport)
	}
	if r.Work != nil {
		return fmt.Errorf("scrub volume %s: %w: %s comes first", id, drivebay.ErrBusy, r.Work.Op)
	}
	switch _, err := e.Device.Stack(&r.Volume).State(); {
	case errors.Is(err, drivebay.ErrNotFound): // it is locked, or not active
		return fmt.Errorf("scrub volume %s: %w: it has no open device: %v; stage it, then retry", id, drivebay.ErrRefused, err)
	case err != nil:
		return fmt.Errorf("scrub volume %s: %w", id, err)
	}
	if !e.BeginScrub(r.Volume, Suspicion{}) {
		return fmt.Errorf("scrub: %w: volume %s is being checked", drivebay.ErrPending, e.Scrubbing())
	}
	return nil
}

// ScrubDue starts the first check that is due, if none is under way.
func (e *Watcher) ScrubDue(now time.Time) {
	if e.Scrubbing() != "" {
		return
	}
	for _, r := range e.Ledger.All() {
		seen := e.Views[r.Volume.ID]
		if seen == nil || !r.Volume.HasFilesystem() || r.Work != nil || mirror.StagedAt(&r.Volume) == nil || seen.Known.io.frozen > 0 {
			continue
		}
		if why := seen.Known.suspicion(); e.Scrubs.due(r, why, now) && e.BeginScrub(r.Volume, why) {
			return
		}
	}
}

// due reports whether a check is due. A volume's first one is within a week, at a time set by its id.
// A time far in the future is of a clock that was ahead.
func (s *scrubs) due(r *drivebay.VolumeRecord, why Suspicion, now time.Time) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if last, known := s.Cause[r.Volume.ID]; known { // counts fall when errors are a day old: the next errors are new
		s.Cause[r.Volume.ID] = Suspicion{min(why.fs, last.fs), min(why.io, last.io)}
	}
	begun := s.Begun[r.Volume.ID]
	if !begun.IsZero() && now.Sub(begun) < scrubAgain {
		return false
	}
	if why.beyond(s.Cause[r.Volume.ID]) {
		return true
	}
	last := r.Volume.Created
	if r.Scrub != nil {
		return now.Sub(r.Scrub.At).Abs() >= scrubEvery
	}
	h := fnv.New32a()
	h.Write([]byte(r.Volume.ID))
	return now.Sub(last).Abs() >= scrubEvery*time.Duration(h.Sum32()%1000)/1000
}

// Scrubbing returns the id of the volume that is being checked; "" if none is.
func (e *Watcher) Scrubbing() string {
	e.Scrubs.Mu.Lock()
	defer e.Scrubs.Mu.Unlock()
	return e.Scrubs.id
}

// StopScrub ends the check of a volume: other work on the volume comes first, and a
// device that is open cannot be deactivated. It does not wait for a program that
// hangs on its drive.
func (e *Watcher) StopScrub(ctx context.Context, id string) {
	e.Scrubs.Mu.Lock()
	mine, end, over := e.Scrubs.id == id, e.Scrubs.end, e.Scrubs.over
	e.Scrubs.Mu.Unlock()
	if !mine {
		return
	}
	end()
	select {
	case <-over:
	case <-e.Machine.After(scrubEnds):
	case <-ctx.Done():
	}
}

// BeginScrub starts a check of a volume; false: another check runs.
func (e *Watcher) BeginScrub(v drivebay.Volume, why Suspicion) bool {
	s := &e.Scrubs
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.id != "" {
		return false
	}
	if s.Begun == nil {
		s.Begun, s.Cause = map[string]time.Time{}, map[string]Suspicion{}
	}
	ctx, cancel := context.WithTimeout(e.Ctx, ScrubTime)
	over := make(chan struct{})
	s.id, s.end, s.over, s.Begun[v.ID] = v.ID, cancel, over, e.Machine.Now()
	if last := s.Cause[v.ID]; why.beyond(last) {
		s.Cause[v.ID] = Suspicion{max(why.fs, last.fs), max(why.io, last.io)}
	}
	e.Running.Go(func() {
		var verdict drivebay.Scrub
		err := ledger.Safely(ctx, "volume "+v.ID, func(ctx context.Context) (err error) {
			verdict, err = e.Scrub(ctx, &v)
			return err
		})
		cancel()
		s.Mu.Lock()
		s.id = ""
		s.Mu.Unlock()
		close(over)
		switch {
		case err == nil:
			e.KeepScrub(v.ID, verdict, false)
		case !errors.Is(err, context.Canceled):
			e.Log.Warn("filesystem not checked", "op", "scrub", "volume", v.ID, "err", err)
		}
		e.Inventory.ChangedNow()
	})
	e.Inventory.ChangedNow()
	return true
}

// Scrub checks a filesystem until it is found sound, or often enough to call it
// corrupted. A check of a mounted filesystem can be wrong: a fault must be found
// again after the writes that were pending are on the drive.
func (e *Watcher) Scrub(ctx context.Context, v *drivebay.Volume) (drivebay.Scrub, error) {
	var agreed []string
	for run := 1; ; run++ {
		faults, mounted, err := e.checkOnce(ctx, v)
		if err != nil {
			return drivebay.Scrub{}, err
		}
		verdict := drivebay.Scrub{At: e.Machine.Now(), Mounted: mounted}
		if run == 1 {
			agreed = faults
		} else {
			agreed = slices.DeleteFunc(agreed, func(line string) bool { return !slices.Contains(faults, line) })
		}
		if len(agreed) == 0 {
			return verdict, nil
		}
		verdict.Corrupt, verdict.Text = run, strings.Join(agreed[:min(len(agreed), 5)], "; ")
		if run == scrubRuns || !mounted {
			return verdict, nil
		}
		select {
		case <-e.Machine.After(scrubPause):
		case <-ctx.Done():
			return drivebay.Scrub{}, ctx.Err()
		}
	}
}

func (e *Watcher) checkOnce(ctx context.Context, v *drivebay.Volume) (faults []string, mounted bool, err error) {
	d, err := e.Device.Stack(v).State()
	if err != nil {
		return nil, false, err
	}
	// The end of the check does not interrupt this: a call that ends the check cannot use a device that is still open.
	disk, err := steps.Ask(context.WithoutCancel(ctx), e.Steps, v, scrubOpens, func(ctx context.Context) (host.Disk, error) { return e.Device.OpenOf(ctx, v, d) })
	if err != nil {
		return nil, false, err
	}
	defer func() { // the kernel may write pages back before the last close returns
		_, closeErr := steps.Through(context.WithoutCancel(ctx), e.Steps, "close "+d.Name, steps.TableTime, func(context.Context) (struct{}, error) { return struct{}{}, disk.Close() })
		err = errors.Join(err, closeErr)
	}()
	before, err := e.Mounts.Mounted(ctx, v)
	if err != nil {
		return nil, false, err
	}
	faults, err = e.check(ctx, v.FSType, disk, len(before) > 0)
	if err != nil {
		return nil, false, err
	}
	after, err := e.Mounts.Mounted(ctx, v)
	return faults, len(before)+len(after) > 0, err
}

// KeepScrub records the verdict without taking the volume: no call for the volume is
// refused because of it. A repair that leaves no fault has ended the count of errors, too (e2fsck -f -p, tried, e2fsprogs 1.47.0).
// A btrfs is never repaired: a check of all its metadata while it is not mounted ends it. A file with a wrong checksum is logged at each read.
func (e *Watcher) KeepScrub(id string, verdict drivebay.Scrub, repaired bool) {
	_, err := e.Ledger.ChangeSoon(id, func(r *drivebay.VolumeRecord) error {
		sound := repaired || r.Volume.FSType == "btrfs" && !verdict.Mounted
		if r.Scrub = &verdict; sound && verdict.Corrupt == 0 {
			r.FSErrors = 0
			e.Mounts.Counters.Of(id).Write(func(m *mounts.ProbeResult) { m.FSErrors = 0 })
		}
		return nil
	})
	if err != nil && !errors.Is(err, drivebay.ErrNotFound) {
		e.Log.Warn("verdict not remembered", "op", "scrub", "volume", id, "err", err)
	}
}
