package volume

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
	"github.com/drivebay/drivebay/internal/host"
)

const (
	scrubEvery = 7 * 24 * time.Hour
	scrubAgain = time.Hour // after a check on suspicion, or one that did not finish
	scrubRuns  = 3         // checks that must agree while the filesystem is mounted
	scrubPause = time.Minute
	scrubTime  = 12 * time.Hour
	scrubEnds  = time.Second // wait for a check whose program was killed
)

// scrubs holds the check under way: one at a time, and in no lane, so that no mount
// waits for it.
type scrubs struct {
	mu    sync.Mutex
	id    string // of the volume; empty: none
	end   context.CancelFunc
	over  chan struct{}        // closed when its program has ended
	begun map[string]time.Time // when the last check of each volume began
	cause map[string]suspicion // the errors counted then
}

// keep drops the entries of volumes that are gone.
func (s *scrubs) keep(is func(id string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.begun, func(id string, _ time.Time) bool { return !is(id) })
	maps.DeleteFunc(s.cause, func(id string, _ suspicion) bool { return !is(id) })
}

// suspicion holds error counts. When one of them grows there is a reason to check at once.
type suspicion struct{ fs, io uint64 }

func (k observations) suspicion() suspicion { return suspicion{k.fs.errors, k.io.logged} }

func (s suspicion) beyond(last suspicion) bool { return s.fs > last.fs || s.io > last.io }

// ScrubVolume starts a check of a volume's filesystem. The volume's facts have the
// verdict when the check has ended.
func (e *Engine) ScrubVolume(_ context.Context, id string) error {
	r, err := e.record(id)
	if err != nil {
		return err
	}
	if r.Volume.Mode != drivebay.ModeFS {
		return fmt.Errorf("scrub volume %s: %w: it has no filesystem that drivebay manages", id, drivebay.ErrNoSupport)
	}
	if r.Work != nil {
		return fmt.Errorf("scrub volume %s: %w: %s comes first", id, drivebay.ErrBusy, r.Work.Op)
	}
	switch _, err := e.plain(&r.Volume); {
	case errors.Is(err, drivebay.ErrNotFound): // it is locked, or not active
		return fmt.Errorf("scrub volume %s: %w: it has no open device: %v; stage it, then retry", id, drivebay.ErrRefused, err)
	case err != nil:
		return fmt.Errorf("scrub volume %s: %w", id, err)
	}
	if !e.beginScrub(r.Volume, suspicion{}) {
		return fmt.Errorf("scrub: %w: volume %s is being checked", drivebay.ErrPending, e.scrubbing())
	}
	return nil
}

// scrubDue starts the first check that is due, if none is under way.
func (e *Engine) scrubDue(now time.Time) {
	if e.scrubbing() != "" {
		return
	}
	for _, r := range e.all() {
		seen := e.views[r.Volume.ID]
		if seen == nil || r.Volume.Mode != drivebay.ModeFS || r.Work != nil || stagedAt(&r.Volume) == nil || seen.known.io.frozen > 0 {
			continue
		}
		if why := seen.known.suspicion(); e.scrubs.due(r, why, now) && e.beginScrub(r.Volume, why) {
			return
		}
	}
}

// due reports whether a check is due. A volume's first one is within a week, at a time set by its id.
func (s *scrubs) due(r *drivebay.VolumeRecord, why suspicion, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.cause[r.Volume.ID]; known { // counts fall when errors are a day old: the next errors are new
		s.cause[r.Volume.ID] = suspicion{min(why.fs, last.fs), min(why.io, last.io)}
	}
	begun := s.begun[r.Volume.ID]
	if !begun.IsZero() && now.Sub(begun) < scrubAgain {
		return false
	}
	if why.beyond(s.cause[r.Volume.ID]) {
		return true
	}
	last := r.Volume.Created
	if r.Scrub != nil {
		return now.Sub(r.Scrub.At) >= scrubEvery
	}
	h := fnv.New32a()
	h.Write([]byte(r.Volume.ID))
	return now.Sub(last) >= scrubEvery*time.Duration(h.Sum32()%1000)/1000
}

func (e *Engine) scrubbing() string {
	e.scrubs.mu.Lock()
	defer e.scrubs.mu.Unlock()
	return e.scrubs.id
}

// stopScrub ends the check of a volume: other work on the volume comes first, and a
// device that is open cannot be deactivated. It does not wait for a program that
// hangs on its drive.
func (e *Engine) stopScrub(ctx context.Context, id string) {
	e.scrubs.mu.Lock()
	mine, end, over := e.scrubs.id == id, e.scrubs.end, e.scrubs.over
	e.scrubs.mu.Unlock()
	if !mine {
		return
	}
	end()
	select {
	case <-over:
	case <-e.machine.After(scrubEnds):
	case <-ctx.Done():
	}
}

func (e *Engine) beginScrub(v drivebay.Volume, why suspicion) bool {
	s := &e.scrubs
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		return false
	}
	if s.begun == nil {
		s.begun, s.cause = map[string]time.Time{}, map[string]suspicion{}
	}
	ctx, cancel := context.WithTimeout(e.ctx, scrubTime)
	over := make(chan struct{})
	s.id, s.end, s.over, s.begun[v.ID] = v.ID, cancel, over, e.machine.Now()
	if last := s.cause[v.ID]; why.beyond(last) {
		s.cause[v.ID] = suspicion{max(why.fs, last.fs), max(why.io, last.io)}
	}
	e.running.Go(func() {
		var verdict drivebay.Scrub
		err := safely(ctx, "volume "+v.ID, func(ctx context.Context) (err error) {
			verdict, err = e.scrub(ctx, &v)
			return err
		})
		cancel()
		s.mu.Lock()
		s.id = ""
		s.mu.Unlock()
		close(over)
		switch {
		case err == nil:
			e.keepScrub(v.ID, verdict)
		case !errors.Is(err, context.Canceled):
			e.log.Warn("filesystem not checked", "op", "scrub", "volume", v.ID, "err", err)
		}
		e.changedNow()
	})
	e.changedNow()
	return true
}

// scrub checks a filesystem until it is found sound, or often enough to call it
// corrupted. A check of a mounted filesystem can be wrong: a fault must be found
// again after the writes that were pending are on the drive.
func (e *Engine) scrub(ctx context.Context, v *drivebay.Volume) (drivebay.Scrub, error) {
	var agreed []string
	for run := 1; ; run++ {
		faults, mounted, err := e.checkOnce(ctx, v)
		if err != nil {
			return drivebay.Scrub{}, err
		}
		verdict := drivebay.Scrub{At: e.machine.Now(), Mounted: mounted}
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
		case <-e.machine.After(scrubPause):
		case <-ctx.Done():
			return drivebay.Scrub{}, ctx.Err()
		}
	}
}

func (e *Engine) checkOnce(ctx context.Context, v *drivebay.Volume) (faults []string, mounted bool, err error) {
	d, err := e.plain(v)
	if err != nil {
		return nil, false, err
	}
	disk, err := ask(ctx, e, v, tableTime, func(ctx context.Context) (host.Disk, error) { return e.openSame(ctx, d) })
	if err != nil {
		return nil, false, err
	}
	defer func() { // the kernel may write pages back before the last close returns
		_, closeErr := through(context.WithoutCancel(ctx), e, "close "+d.name, tableTime, func(context.Context) (struct{}, error) { return struct{}{}, disk.Close() })
		err = errors.Join(err, closeErr)
	}()
	before, err := e.mounted(ctx, v)
	if err != nil {
		return nil, false, err
	}
	faults, err = e.check(ctx, v.FSType, disk, len(before) > 0)
	if err != nil {
		return nil, false, err
	}
	after, err := e.mounted(ctx, v)
	return faults, len(before)+len(after) > 0, err
}

// openSame opens a device if it is still the one that has the number. It is called in a lane: if the caller
// has given up meanwhile, the device does not stay open.
func (e *Engine) openSame(ctx context.Context, d device) (host.Disk, error) {
	disk, err := e.machine.OpenDisk(ctx, d.dev, false)
	if err != nil {
		return nil, err
	}
	if err = ctx.Err(); err == nil && disk.DevNum() != d.num {
		err = fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, d.dev)
	}
	if err != nil {
		disk.Close()
		return nil, err
	}
	return disk, nil
}

// keepScrub records the verdict without taking the volume: no call for the volume is
// refused because of it.
func (e *Engine) keepScrub(id string, verdict drivebay.Scrub) {
	_, err := e.changeSoon(id, func(r *drivebay.VolumeRecord) error {
		r.Scrub = &verdict
		return nil
	})
	if err != nil && !errors.Is(err, drivebay.ErrNotFound) {
		e.log.Warn("verdict not remembered", "op", "scrub", "volume", id, "err", err)
	}
}
