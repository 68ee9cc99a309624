package repair

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/backoff"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// The daemon does the safe rows of the table of repairs by itself, for volumes that need them
// in two checks in a row.

const (
	// tendEvery is the time between two checks. Work in progress has that long to end.
	tendEvery = 10 * time.Second
	// tendForget is how long after its last repair a volume starts again without a wait.
	tendForget = 4 * time.Hour
)

// repairAgain is the wait between two repairs of a volume, also after one that succeeded: mounts cost, and
// a volume that fails again and again needs an operator.
var repairAgain = backoff.Backoff{First: 30 * time.Second, Most: time.Hour}

var errNotAlone = fmt.Errorf("%w: the daemon does not do that by itself: `drivebay heal` does", drivebay.ErrRefused)

// autoRepairs holds what the daemon remembers of its repairs.
type autoRepairs struct {
	at time.Time // time of the last check

	mu   sync.Mutex
	busy bool
	of   map[string]autoRepair
}

// autoRepair is one volume's state.
type autoRepair struct {
	needs string    // repairs that the last check found
	times int       // repairs, each within tendForget of the one before
	last  time.Time // end of the newest
	said  string    // error of the last one
}

// look records what a check calls for, and reports whether to repair now.
func (t *autoRepair) look(needs string, now time.Time) bool {
	again := needs != "" && needs == t.needs
	t.needs = needs
	if !t.last.IsZero() && now.Sub(t.last) >= tendForget {
		*t = autoRepair{needs: needs}
	}
	return again && !now.Before(t.last.Add(repairAgain.Wait(t.times)))
}

// RepairAutomatically checks all volumes beside the tick, and repairs those that are due.
func (e *Repairer) RepairAutomatically() {
	t, now := &e.repairing, e.Machine.Now()
	if !e.Opt.Heal || now.Sub(t.at) < tendEvery || e.Ledger.Volumes().Seq == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy {
		return
	}
	t.at, t.busy = now, true
	e.Ledger.InBackground("auto-repair", func() {
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.busy = false
		}()
		for _, id := range e.repairNeeded(now) {
			e.Ledger.InBackground("auto-repair", func() { e.healAutomatically(id) })
		}
	})
}

// repairNeeded returns the volumes that are due. It touches no drive.
func (e *Repairer) repairNeeded(now time.Time) (due []string) {
	mounts, err := e.MountTable.FreshTable(e.Ctx)
	if err != nil {
		return nil // the tick logs it
	}
	s, t := e.Drives.Snapshot(), &e.repairing
	all := e.Ledger.All()
	needs := make(map[string]string, len(all))
	for _, r := range all {
		if r.Work == nil && !moves(&r.Volume, s) {
			needs[r.Volume.ID] = called(&e.diagnoseIn(mounts, r, drivebay.HealRequest{Volume: r.Volume.ID, Safe: true}).signs)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.of
	t.of = map[string]autoRepair{}
	for _, r := range all {
		is := was[r.Volume.ID]
		if is.look(needs[r.Volume.ID], now) {
			due = append(due, r.Volume.ID)
		}
		if is != (autoRepair{}) {
			t.of[r.Volume.ID] = is
		}
	}
	return due
}

// called returns the repairs that the symptoms need.
func called(g *symptoms) string {
	var out []string
	for i := range repairs {
		if why, _ := repairs[i].need(g); why != "" {
			out = append(out, repairs[i].Name)
		}
	}
	return strings.Join(out, ", ")
}

// moves reports whether a volume is moving to another drive, or may start at any moment: it has
// one drive more than its kind needs, or one of its legs has to leave. The code that moves it
// knows which states are in order; the table of repairs does not.
func moves(v *drivebay.Volume, s *drivebay.Snapshot) bool {
	l := v.Location
	if !l.Mirrored() {
		return len(l.Drives) > 1
	}
	return len(l.Drives) > 2 || slices.ContainsFunc(l.Drives, func(id string) bool {
		d, ok := steps.DriveOf(s, id)
		return ok && (d.Usage == drivebay.UsageReleasing || d.Usage == drivebay.UsageRemoving)
	})
}

// healAutomatically repairs a volume and sends an event for what could not be done. Heal sends
// the events of what was done.
func (e *Repairer) healAutomatically(id string) {
	report, err := e.Heal(e.Ctx, drivebay.HealRequest{Volume: id, Safe: true})
	if e.Ctx.Err() != nil || errors.Is(err, drivebay.ErrPending) || errors.Is(err, drivebay.ErrNotFound) {
		return // another call holds it, or it was removed
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
	t := &e.repairing
	t.mu.Lock()
	is := t.of[id]
	news := said != "" && said != is.said
	is.times, is.last, is.said = is.times+1, e.Machine.Now(), said
	t.of[id] = is
	t.mu.Unlock()
	if rec, err := e.Ledger.Record(id); err == nil && news {
		e.Ledger.Note(drivebay.EventVolumeNotHealed, &rec.Volume, fmt.Sprintf("volume %q: %s", rec.Volume.Name, said))
	}
}
