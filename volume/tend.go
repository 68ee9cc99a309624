package volume

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
)

// Healing without being asked: the safe rows of the table of repairs, for volumes
// that two looks in a row find in need of them.

const (
	// tendEvery is between two looks: whoever is in the middle of something has that
	// long to come to its end.
	tendEvery = 10 * time.Second
	// tendAgain is the shortest wait from one healing of a volume to the next,
	// tendAtMost the longest. What falls down again and again is not held up at any
	// price: mounts cost, and somebody has to look at it.
	tendAgain, tendAtMost = 30 * time.Second, time.Hour
	// tendForget is how long a volume has to go without for the next one to be its
	// first.
	tendForget = 4 * time.Hour
)

var errNotAlone = fmt.Errorf("%w: the daemon does not do that by itself: `drivebay heal` does", drivebay.ErrRefused)

// tending is what is remembered of volumes that were in need.
type tending struct {
	at time.Time // of the last look

	mu   sync.Mutex
	busy bool
	of   map[string]tended
}

// tended is one of them.
type tended struct {
	needs string    // what the last look called for
	times int       // healings, each within tendForget of the one before
	last  time.Time // the end of the newest
	said  string    // what of it could not be done
}

// wait is how long a volume waits after so many healings.
func wait(times int) time.Duration {
	if times == 0 {
		return 0
	}
	return min(tendAgain<<min(times-1, 16), tendAtMost)
}

// look takes in what a look calls for, and says whether to heal now.
func (t *tended) look(needs string, now time.Time) bool {
	again := needs != "" && needs == t.needs
	t.needs = needs
	if !t.last.IsZero() && now.Sub(t.last) >= tendForget {
		*t = tended{needs: needs}
	}
	return again && !now.Before(t.last.Add(wait(t.times)))
}

// tend looks at all volumes, beside the rounds, and heals those that are due.
func (e *Engine) tend() {
	t, now := &e.tending, e.machine.Now()
	if !e.opt.Heal || now.Sub(t.at) < tendEvery || e.Volumes().Seq == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy {
		return
	}
	t.at, t.busy = now, true
	e.running.Go(func() {
		due := e.inNeed(now)
		t.mu.Lock()
		t.busy = false
		t.mu.Unlock()
		for _, id := range due {
			e.running.Go(func() { e.healAlone(id) })
		}
	})
}

// inNeed looks at all volumes. No drive is touched for it.
func (e *Engine) inNeed(now time.Time) (due []string) {
	mounts, err := e.freshTable(e.ctx)
	if err != nil {
		return nil // the round says so
	}
	s, t := e.drives.Snapshot(), &e.tending
	all := e.all()
	needs := make(map[string]string, len(all))
	for _, r := range all {
		if r.Work == nil && !moves(&r.Volume, s) {
			needs[r.Volume.ID] = called(&e.patientOn(mounts, r, drivebay.HealRequest{Volume: r.Volume.ID, Safe: true}).signs)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.of
	t.of = map[string]tended{}
	for _, r := range all {
		is := was[r.Volume.ID]
		if is.look(needs[r.Volume.ID], now) {
			due = append(due, r.Volume.ID)
		}
		if is != (tended{}) {
			t.of[r.Volume.ID] = is
		}
	}
	return due
}

// called are the repairs that signs call for.
func called(g *signs) string {
	var out []string
	for i := range repairs {
		if why, _ := repairs[i].need(g); why != "" {
			out = append(out, repairs[i].Name)
		}
	}
	return strings.Join(out, ", ")
}

// moves says that a volume is on its way to another drive, or may be at any moment:
// it has a drive more than it stands on, or one of its legs has to leave. Whoever
// moves it knows what is in order there, and a table of repairs does not.
func moves(v *drivebay.Volume, s *drivebay.Snapshot) bool {
	l := v.Location
	if !l.Mirrored() {
		return len(l.Drives) > 1
	}
	return len(l.Drives) > 2 || slices.ContainsFunc(l.Drives, func(id string) bool {
		d, ok := driveOf(s, id)
		return ok && (d.Usage == drivebay.UsageReleasing || d.Usage == drivebay.UsageRemoving)
	})
}

// healAlone heals a volume and writes down what could not be done; what could, the
// healing itself does.
func (e *Engine) healAlone(id string) {
	report, err := e.Heal(e.ctx, drivebay.HealRequest{Volume: id, Safe: true})
	if e.ctx.Err() != nil || errors.Is(err, drivebay.ErrPending) || errors.Is(err, drivebay.ErrNotFound) {
		return // somebody else is at it, or has removed it
	}
	said := ""
	for _, s := range report.Steps {
		if s.Failed != "" && said == "" {
			said = fmt.Sprintf("%s: %s: %s", s.Repair, s.Why, s.Failed)
		}
	}
	if err != nil {
		said = err.Error()
	}
	t := &e.tending
	t.mu.Lock()
	is := t.of[id]
	news := said != "" && said != is.said
	is.times, is.last, is.said = is.times+1, e.machine.Now(), said
	t.of[id] = is
	t.mu.Unlock()
	if rec, err := e.record(id); err == nil && news {
		e.note(drivebay.EventVolumeNotHealed, &rec.Volume, fmt.Sprintf("volume %q: %s", rec.Volume.Name, said))
	}
}
