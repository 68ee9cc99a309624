package volume

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/drivebay/drivebay"
)

// While they are in use, volume groups move off a drive that has to leave: one logical volume
// after the other, to a spare drive. follow starts the moves beside every tick.

// groupMove is a moving group.
type groupMove struct {
	under bool   // moveGroup works on it
	wait  string // what it waits for
	next  time.Time
	lost  map[string]string // logical volumes that cannot be moved, and why
	since time.Time         // when the drive that it leaves was released
	pace  pace
	from  string   // the drive that it leaves
	on    []string // all drives of the group
}

// tripAgain is the wait before a failed step is tried again.
const tripAgain = 10 * time.Second

// moveGroups starts to move the groups that are not where they should be. It waits for none of
// them, and returns the moves as they stand, by group.
func (e *Engine) moveGroups(s *drivebay.Snapshot) map[string]groupMove {
	out := map[string]groupMove{}
	if e.unreadDrives(e.unlistedInUse) != nil || e.lvm == nil {
		return out
	}
	now := e.machine.Now()
	for vg, h := range e.groupsByName() {
		head, due := h.nextDirection(e.driveStates(s, vg))
		e.mu.Lock()
		t := e.groupMoves[vg]
		switch {
		case !due && (t == nil || !t.under):
			delete(e.groupMoves, vg)
		case due && t == nil:
			t = &groupMove{}
			e.groupMoves[vg] = t
		}
		if t == nil || !due {
			e.mu.Unlock()
			continue
		}
		if d, ok := driveOf(s, head.from); ok && d.Usage == drivebay.UsageReleasing && d.Leaving != nil && !d.Leaving.Since.Equal(t.since) { // released again: all is tried again
			t.since, t.lost, t.next = d.Leaving.Since, nil, time.Time{}
		}
		begin := !t.under && !now.Before(t.next)
		t.under, t.from, t.on = t.under || begin, head.from, h.Drives
		is := *t
		is.lost = maps.Clone(t.lost) // giveUpMove adds to it
		out[vg] = is
		e.mu.Unlock()
		if begin {
			e.inBackground("move", func() { e.moveGroup(e.ctx, vg) })
		}
	}
	return out
}

// driveStates returns a function that describes a drive for a group.
func (e *Engine) driveStates(s *drivebay.Snapshot, vg string) func(string) driveState {
	e.mu.Lock()
	x := e.index.lvm
	e.mu.Unlock()
	g := x.group(vg)
	return func(id string) driveState {
		d, ok := driveOf(s, id)
		if !ok {
			return driveState{usage: drivebay.UsageUnknown, holds: g != nil && len(g.Missing()) > 0, gone: lostForGood(s, of(id))}
		}
		is := driveState{usage: d.Usage, here: d.Status == drivebay.StatusOnline, well: d.Health != drivebay.HealthBad, gone: d.Status == drivebay.StatusOffline && lostForGood(s, of(id))}
		switch {
		case g == nil:
		case !is.here:
			is.holds = len(g.Missing()) > 0
		case x.pvs[id] != "":
			pv, on := x.report.On(x.pvs[id])
			is.unread = x.unread[id] != "" || pv != nil && pv.Unreadable(on)
			is.holds = on != nil && on.Name == vg
			is.empty = is.holds && !g.Uses(pv.UUID)
		}
		return is
	}
}

// moveGroup moves a group as far as it gets.
func (e *Engine) moveGroup(ctx context.Context, vg string) {
	wait, before := "its move has ended early; the log of the daemon says why", e.waitReason(vg)
	defer func() { // also after a panic, so that the move is tried again
		e.mu.Lock()
		defer e.mu.Unlock()
		if t := e.groupMoves[vg]; t != nil {
			t.under, t.wait, t.next = false, wait, e.machine.Now().Add(tripAgain)
		}
	}()
	reason := ""
	for more := true; more && ctx.Err() == nil; {
		h := e.groupsByName()[vg]
		if h == nil {
			break
		}
		head, due := h.nextDirection(e.driveStates(e.drives.Snapshot(), vg))
		if !due || head.wait != "" {
			reason = head.wait
			if err := e.cancelUnstartedMove(ctx, vg, theMove); err != nil {
				e.log.Warn("move not taken back", "op", "move", "group", vg, "err", err)
			}
			break
		}
		e.setWaitReason(vg, "")
		err := safely(ctx, "volume group "+vg, func(ctx context.Context) (err error) {
			more, err = e.evacuateStep(ctx, h, head)
			return err
		})
		if err != nil {
			if reason = err.Error(); !errors.Is(err, drivebay.ErrPending) && !errors.Is(err, drivebay.ErrNoSpace) && ctx.Err() == nil && reason != before {
				e.log.Warn("volume group does not move", "op", "move", "group", vg, "from", head.from, "to", head.to, "err", err)
			}
			break
		}
	}
	wait = reason
}

// waitReason returns what a group that is to move waits for, by its last attempt.
func (e *Engine) waitReason(vg string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.groupMoves[vg]; t != nil {
		return t.wait
	}
	return ""
}

// setWaitReason records what a group waits for.
func (e *Engine) setWaitReason(vg, what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.groupMoves[vg]; t != nil {
		t.wait = what
	}
}

// directionUnchanged reports whether a group still moves that way.
func (e *Engine) directionUnchanged(vg string, to direction) bool {
	h := e.groupsByName()[vg]
	if h == nil {
		return false
	}
	now, due := h.nextDirection(e.driveStates(e.drives.Snapshot(), vg))
	return due && now == to
}
