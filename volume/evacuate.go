package volume

import (
	"context"
	"errors"
	"time"

	"github.com/drivebay/drivebay"
)

// What can move off a drive that has to leave, moves while it is used: its volume
// groups, one logical volume after the other, to a spare drive. follow looks after it
// beside every round.

// trip is a group on its way.
type trip struct {
	under bool   // somebody is at it
	wait  string // what it waits for
	next  time.Time
	lost  map[string]string // logical volumes that cannot be moved, and why
	since time.Time         // that the drive has to leave from which they cannot
	pace  pace
	from  string   // the drive that it leaves
	on    []string // all drives of the group
}

// tripAgain is when what could not be done is tried again.
const tripAgain = 10 * time.Second

// moveGroups sees to it that groups are where they are to be. It waits for none of
// them; what is told are the trips as they stand, by group.
func (e *Engine) moveGroups(s *drivebay.Snapshot) map[string]trip {
	out := map[string]trip{}
	if e.unreadDrives(e.unlistedInUse) != nil || e.lvm == nil {
		return out
	}
	now := e.machine.Now()
	for vg, h := range e.herds() {
		head, due := h.heading(e.looker(s, vg))
		e.mu.Lock()
		t := e.trips[vg]
		switch {
		case !due && (t == nil || !t.under):
			delete(e.trips, vg)
		case due && t == nil:
			t = &trip{}
			e.trips[vg] = t
		}
		if t == nil || !due {
			e.mu.Unlock()
			continue
		}
		if d, ok := driveOf(s, head.from); ok && d.Usage == drivebay.UsageReleasing && d.Leaving != nil && !d.Leaving.Since.Equal(t.since) { // led anew: all is tried again
			t.since, t.lost, t.next = d.Leaving.Since, nil, time.Time{}
		}
		begin := !t.under && !now.Before(t.next)
		t.under, t.from, t.on = t.under || begin, head.from, h.Drives
		out[vg] = *t
		e.mu.Unlock()
		if begin {
			e.running.Go(func() { e.travel(e.ctx, vg) })
		}
	}
	return out
}

// looker tells what is known of drives for who is in a group.
func (e *Engine) looker(s *drivebay.Snapshot, vg string) func(string) at {
	e.mu.Lock()
	x := e.index.lvm
	e.mu.Unlock()
	g := x.group(vg)
	return func(id string) at {
		d, ok := driveOf(s, id)
		if !ok {
			return at{usage: drivebay.UsageUnknown, holds: g != nil && len(g.Missing()) > 0, gone: lostForGood(s, of(id))}
		}
		is := at{usage: d.Usage, here: d.Status == drivebay.StatusOnline, well: d.Health != drivebay.HealthBad, gone: d.Status == drivebay.StatusOffline && lostForGood(s, of(id))}
		switch {
		case g == nil:
		case !is.here:
			is.holds = len(g.Missing()) > 0
		case x.pvs[id] != "":
			pv, on := x.report.On(x.pvs[id])
			is.holds = on != nil && on.Name == vg
			is.empty = is.holds && !g.Uses(pv.UUID)
		}
		return is
	}
}

// travel takes a group as far as it gets.
func (e *Engine) travel(ctx context.Context, vg string) {
	wait := ""
	for more := true; more && ctx.Err() == nil; {
		h := e.herds()[vg]
		if h == nil {
			break
		}
		head, due := h.heading(e.looker(e.drives.Snapshot(), vg))
		if !due || head.wait != "" {
			wait = head.wait
			if err := e.retreat(ctx, vg, theMove); err != nil {
				e.log.Warn("move not taken back", "op", "move", "group", vg, "err", err)
			}
			break
		}
		e.waits(vg, "")
		err := safely(ctx, "group "+vg, func(ctx context.Context) (err error) {
			more, err = e.stride(ctx, h, head)
			return err
		})
		if err != nil {
			if wait = err.Error(); !errors.Is(err, drivebay.ErrPending) && !errors.Is(err, drivebay.ErrNoSpace) && ctx.Err() == nil {
				e.log.Warn("volume group does not move", "op", "move", "group", vg, "from", head.from, "to", head.to, "err", err)
			}
			break
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.trips[vg]; t != nil {
		t.under, t.wait, t.next = false, wait, e.machine.Now().Add(tripAgain)
	}
}

// waits writes down what a group waits for.
func (e *Engine) waits(vg, what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.trips[vg]; t != nil {
		t.wait = what
	}
}

// headed says whether a group is still to go that way.
func (e *Engine) headed(vg string, to heading) bool {
	h := e.herds()[vg]
	if h == nil {
		return false
	}
	now, due := h.heading(e.looker(e.drives.Snapshot(), vg))
	return due && now == to
}
