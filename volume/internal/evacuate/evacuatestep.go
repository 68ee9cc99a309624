package evacuate

import (
	"context"
	"fmt"
	"slices"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
	"github.com/drivebay/drivebay/volume/internal/groups"
	"github.com/drivebay/drivebay/volume/internal/ledger"
)

// evacuateStep does the next step of a group's move; more reports that another one follows. The
// drives show what was done, so that a move that was killed anywhere continues from there.
func (e *Evacuator) evacuateStep(ctx context.Context, h *groups.VolumeGroup, head groups.Direction) (more bool, err error) {
	if err := e.Device.MayWrite(h.Drives...); err != nil {
		return false, err
	}
	if !ledger.IsMoving(h.Location) {
		return true, e.startMove(ctx, h, head.From)
	}
	if err := e.spread(h); err != nil {
		return false, err
	}
	if head.Over {
		return true, e.salvage(ctx, h, head)
	}
	r, g, err := e.groupNow(ctx, h.Location)
	if err != nil {
		return false, err
	}
	from, to := e.Groups.PVIn(r, g, head.From), e.Groups.PVIn(r, g, head.To)
	if err := complete(h, g, to); err != nil {
		return false, err
	}
	if to == "" {
		return true, e.extendGroup(ctx, h, head.To)
	}
	if back := slices.IndexFunc(g.PVs, func(p lvm.PV) bool { return p.UUID == to && p.Missing && p.Device != "" }); back >= 0 {
		return true, e.Write.LVMRun(ctx, h.Location, lvm.RestoreMissing(h.VG, to))
	}
	if move := g.AnyMove(); move != nil { // this pvmove was not watched while it copied: its read errors are unknown
		return true, e.cancelMove(ctx, h, move.Name, move.MovesFrom)
	}
	if h.Kind == drivebay.LocationMirror {
		if busy, err := e.legs(ctx, h, head, g, from, to); busy || err != nil {
			return true, err
		}
	} else if busy, err := e.next(ctx, h, head, g, from, to); busy || err != nil {
		return true, err
	}
	if why := e.lostOf(h.VG); why != "" {
		return false, fmt.Errorf("%w: %s", drivebay.ErrRefused, why)
	}
	if missing := g.Missing(); from == "" && len(missing) > 0 { // a mirror: complete accepts a missing leg
		return false, fmt.Errorf("volume group %s: %w: LVM does not see its physical volume %s, which may be on drive %s", h.VG, drivebay.ErrPending, missing[0], head.From)
	}
	if err := e.Erase.WipeAllRemains(ctx, h.Location, head.From); err != nil {
		return false, err
	}
	if err := e.Erase.WipeFree(ctx, h.Location); err != nil {
		return false, err
	}
	return true, e.reduceGroup(ctx, h, head, from)
}

// complete refuses to move a group that misses a physical volume: LVM does not see what is on
// it, and its drive looks empty. A mirror may lack a leg, and the physical volume to which the
// group moves is restored when it is back.
func complete(h *groups.VolumeGroup, g *lvm.Group, to string) error {
	if h.Kind == drivebay.LocationMirror {
		return nil
	}
	for _, p := range g.PVs {
		if p.Missing && (p.Device == "" || p.UUID != to) {
			return fmt.Errorf("volume group %s: %w: LVM misses its physical volume %s: nothing is moved until it is back; see `pvck`", h.VG, drivebay.ErrRefused, p.UUID)
		}
	}
	return nil
}

// next moves one logical volume; busy is false when nothing is left to move.
func (e *Evacuator) next(ctx context.Context, h *groups.VolumeGroup, head groups.Direction, g *lvm.Group, from, to string) (busy bool, err error) {
	for _, name := range g.VolumesOn(from) {
		if e.isLost(h.VG, name) {
			continue
		}
		if err := e.Erase.LeavesData(h, g, name, head.From, from); err != nil {
			return false, err
		}
		return true, e.moveLogicalVolume(ctx, h, head, lvm.PVMove{Group: h.VG, Volume: name, From: from, To: to})
	}
	return false, nil
}

func (e *Evacuator) isLost(vg, lv string) bool {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	t := e.Groups.GroupMoves[vg]
	return t != nil && t.Lost[lv] != ""
}

// lostOf returns what cannot be moved of a group.
func (e *Evacuator) lostOf(vg string) string {
	e.Ledger.Mu.Lock()
	defer e.Ledger.Mu.Unlock()
	t := e.Groups.GroupMoves[vg]
	if t == nil {
		return ""
	}
	return t.Losses()
}
