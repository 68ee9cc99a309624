package evacuate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/device"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
	"github.com/drivebay/drivebay/volume/internal/mirror"
	"github.com/drivebay/drivebay/volume/internal/moves"
	"github.com/drivebay/drivebay/volume/internal/steps"
)

// MoveGroups starts to move the groups that are not where they should be. It waits for none of
// them, and returns the moves as they stand, by group.
func (e *Evacuator) MoveGroups(s *drivebay.Snapshot) map[string]moves.GroupMove {
	out := map[string]moves.GroupMove{}
	if e.Inventory.UnreadDrives(e.Inventory.UnlistedInUse) != nil || e.LVM == nil {
		return out
	}
	now, drives := e.Machine.Now(), sync.OnceValue(func() string { return usableDrives(s) })
	for vg, h := range e.Groups.GroupsByName() {
		head, due := h.NextDirection(e.driveStates(s, vg))
		e.Ledger.Mu.Lock()
		t := e.Groups.GroupMoves[vg]
		switch {
		case !due && (t == nil || !t.Under):
			delete(e.Groups.GroupMoves, vg)
		case due && t == nil:
			t = &moves.GroupMove{}
			e.Groups.GroupMoves[vg] = t
		}
		if t == nil || !due {
			e.Ledger.Mu.Unlock()
			continue
		}
		if d, ok := steps.DriveOf(s, head.From); ok && d.Usage == drivebay.UsageReleasing && d.Leaving != nil && !d.Leaving.Since.Equal(t.Since) { // released again: all is tried again
			t.Since, t.Lost, t.Failed, t.Next = d.Leaving.Since, nil, 0, time.Time{}
		}
		t.Changed(drives() + recordsOf(h))
		begin := !t.Under && !now.Before(t.Next)
		t.Under, t.From, t.On = t.Under || begin, head.From, h.Drives
		is := *t
		is.Lost = maps.Clone(t.Lost) // giveUpMove adds to it
		out[vg] = is
		e.Ledger.Mu.Unlock()
		if begin {
			e.Ledger.InBackground("move", func() { e.moveGroup(e.Ctx, vg) })
		}
	}
	return out
}

// usableDrives returns all of the drives that decides whether a group can move from or to them.
func usableDrives(s *drivebay.Snapshot) string {
	var out strings.Builder
	for i := range s.Drives {
		d := &s.Drives[i]
		fmt.Fprintln(&out, d.ID, d.Status, d.Usage, d.Health, d.Claim != nil, d.Cordoned, d.Content.Kind)
	}
	return out.String()
}

// recordsOf returns which records a group has.
func recordsOf(h *groups.VolumeGroup) string {
	ids := h.IDs()
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// driveStates returns a function that describes a drive for a group.
func (e *Evacuator) driveStates(s *drivebay.Snapshot, vg string) func(string) groups.DriveState {
	e.Ledger.Mu.Lock()
	x := e.Partitions.Index.LVM
	e.Ledger.Mu.Unlock()
	g := x.Group(vg)
	return func(id string) groups.DriveState {
		d, ok := steps.DriveOf(s, id)
		if !ok {
			return groups.DriveState{Usage: drivebay.UsageUnknown, Holds: g != nil && len(g.Missing()) > 0, Gone: mirror.LostForGood(s, mirror.Of(id))}
		}
		is := groups.DriveState{Usage: d.Usage, Here: d.Status == drivebay.StatusOnline, Well: d.Health != drivebay.HealthBad, Gone: d.Status == drivebay.StatusOffline && mirror.LostForGood(s, mirror.Of(id))}
		switch {
		case g == nil:
		case !is.Here:
			is.Holds = len(g.Missing()) > 0
		case x.PVs[id] != "":
			pv, on := x.Report.On(x.PVs[id])
			is.Unread = x.Unread[id] != "" || pv != nil && pv.Unreadable(on)
			is.Holds = on != nil && on.Name == vg
			is.Empty = is.Holds && !g.Uses(pv.UUID)
		}
		return is
	}
}

// moveGroup moves a group as far as it gets.
func (e *Evacuator) moveGroup(ctx context.Context, vg string) {
	before := e.Groups.WaitReason(vg)
	out := moves.Attempt{Wait: "its move has ended early; the log of the daemon says why", Failed: true}
	defer func() { // also after a panic, so that the move is tried again
		e.Ledger.Mu.Lock()
		defer e.Ledger.Mu.Unlock()
		if t := e.Groups.GroupMoves[vg]; t != nil {
			t.Ended(out, e.Machine.Now())
		}
	}()
	is := moves.Attempt{}
	for more := true; more && ctx.Err() == nil; {
		h := e.Groups.GroupsByName()[vg]
		if h == nil {
			break
		}
		head, due := h.NextDirection(e.driveStates(e.Drives.Snapshot(), vg))
		if !due || head.Wait != "" {
			is.Wait = head.Wait
			if err := e.cancelUnstartedMove(ctx, vg, device.TheMove); err != nil {
				e.Log.Warn("move not taken back", "op", "move", "group", vg, "err", err)
			}
			break
		}
		e.Groups.SetWaitReason(vg, "")
		err := ledger.Safely(ctx, "volume group "+vg, func(ctx context.Context) (err error) {
			more, err = e.evacuateStep(ctx, h, head)
			return err
		})
		if err != nil {
			news := err.Error() != before
			is = moves.Attempt{Wait: err.Error(), Failed: true, Passes: errors.Is(err, drivebay.ErrPending), NoSpace: errors.Is(err, drivebay.ErrNoSpace), Stepped: is.Stepped && news}
			if !is.Passes && !is.NoSpace && ctx.Err() == nil && news {
				e.Log.Warn("volume group does not move", "op", "move", "group", vg, "from", head.From, "to", head.To, "err", err)
			}
			break
		}
		is.Stepped = true
	}
	out = is
}

// directionUnchanged reports whether a group still moves that way.
func (e *Evacuator) directionUnchanged(vg string, to groups.Direction) bool {
	h := e.Groups.GroupsByName()[vg]
	if h == nil {
		return false
	}
	now, due := h.NextDirection(e.driveStates(e.Drives.Snapshot(), vg))
	return due && now == to
}
