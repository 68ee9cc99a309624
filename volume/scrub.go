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
)

const (
	scrubEvery = 7 * 24 * time.Hour
	scrubAgain = time.Hour // after one on suspicion, or that came to no end
	scrubRuns  = 3         // that must agree while the filesystem is mounted
	scrubPause = time.Minute
	scrubTime  = 12 * time.Hour
	scrubEnds  = time.Second // from the moment its program is killed
)

// scrubs are the checks under way: one at a time, in a lane that no mount waits
// for.
type scrubs struct {
	mu    sync.Mutex
	id    string // of the volume; empty: none
	end   context.CancelFunc
	over  chan struct{}        // closed when its program has ended
	begun map[string]time.Time // when each was last begun
	cause map[string]suspicion // what had been seen then
}

// keep drops what is remembered of volumes that are gone.
func (s *scrubs) keep(is func(id string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.begun, func(id string, _ time.Time) bool { return !is(id) })
	maps.DeleteFunc(s.cause, func(id string, _ suspicion) bool { return !is(id) })
}

// suspicion grows when there is a reason to check at once.
type suspicion struct{ fs, io uint64 }

func (k known) suspicion() suspicion { return suspicion{k.fs.errors, k.io.logged} }

func (s suspicion) beyond(last suspicion) bool { return s.fs > last.fs || s.io > last.io }

// ScrubVolume has the filesystem of a volume checked now. The verdict is found in
// its facts when the check has come to its end.
func (e *Engine) ScrubVolume(_ context.Context, id string) error {
	r, err := e.record(id)
	if err != nil {
		return err
	}
	if r.Volume.Mode != drivebay.ModeFS {
		return fmt.Errorf("scrub volume %s: %w: it has no filesystem of ours", id, drivebay.ErrNoSupport)
	}
	if r.Work != nil {
		return fmt.Errorf("scrub volume %s: %w: %s comes first", id, drivebay.ErrBusy, r.Work.Op)
	}
	if !e.beginScrub(r.Volume, suspicion{}) {
		return fmt.Errorf("scrub: %w: volume %s is being checked", drivebay.ErrPending, e.scrubbing())
	}
	return nil
}

// scrubDue begins the check that is the most urgent, if none is under way.
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

// due: a volume is first checked some time within the first week, by its id.
func (s *scrubs) due(r *drivebay.VolumeRecord, why suspicion, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// stopScrub ends the check of a volume: what is done to the volume comes first, and
// a device that somebody has open cannot go. A program that its drive holds is not
// waited for.
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
		verdict, err := e.scrub(ctx, &v)
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

// scrub checks a filesystem until it is found sound, or as often as it takes to
// call it corrupted: a check of a mounted one can be wrong, and what is wrong
// with it must be found again when everything that was on its way is written.
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
	disk, err := e.machine.OpenDisk(ctx, d.dev, false)
	if err != nil {
		return nil, false, inOurWords(err)
	}
	defer disk.Close()
	if disk.DevNum() != d.num {
		return nil, false, fmt.Errorf("%w: %s is another device now", drivebay.ErrRefused, d.dev)
	}
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

// keepScrub writes the verdict down, whoever works on the volume meanwhile: nobody
// is sent away for it.
func (e *Engine) keepScrub(id string, verdict drivebay.Scrub) {
	_, err := e.changeSoon(id, func(r *drivebay.VolumeRecord) error {
		r.Scrub = &verdict
		return nil
	})
	if err != nil && !errors.Is(err, drivebay.ErrNotFound) {
		e.log.Warn("verdict not remembered", "op", "scrub", "volume", id, "err", err)
	}
}
