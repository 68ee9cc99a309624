package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/lvm"
)

// evacuateStep does the next step of a group's move; more reports that another one follows. The
// drives show what was done, so that a move that was killed anywhere continues from there.
func (e *Engine) evacuateStep(ctx context.Context, h *volumeGroup, head direction) (more bool, err error) {
	if err := e.mayWrite(h.Drives...); err != nil {
		return false, err
	}
	if !isMoving(h.Location) {
		return true, e.startMove(ctx, h, head.from)
	}
	if err := e.spread(h); err != nil {
		return false, err
	}
	if head.over {
		return true, e.salvage(ctx, h, head)
	}
	r, g, err := e.groupNow(ctx, h.Location)
	if err != nil {
		return false, err
	}
	from, to := e.pvIn(r, g, head.from), e.pvIn(r, g, head.to)
	if err := complete(h, g, to); err != nil {
		return false, err
	}
	if to == "" {
		return true, e.extendGroup(ctx, h, head.to)
	}
	if back := slices.IndexFunc(g.PVs, func(p lvm.PV) bool { return p.UUID == to && p.Missing && p.Device != "" }); back >= 0 {
		return true, e.lvmRun(ctx, h.Location, lvm.RestoreMissing(h.VG, to))
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
		return false, fmt.Errorf("volume group %s: %w: LVM does not see its physical volume %s, which may be on drive %s", h.VG, drivebay.ErrPending, missing[0], head.from)
	}
	if err := e.wipeAllRemains(ctx, h.Location, head.from); err != nil {
		return false, err
	}
	if err := e.wipeFree(ctx, h.Location); err != nil {
		return false, err
	}
	return true, e.reduceGroup(ctx, h, head, from)
}

// complete refuses to move a group that misses a physical volume: LVM does not see what is on
// it, and its drive looks empty. A mirror may lack a leg, and the physical volume to which the
// group moves is restored when it is back.
func complete(h *volumeGroup, g *lvm.Group, to string) error {
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
func (e *Engine) next(ctx context.Context, h *volumeGroup, head direction, g *lvm.Group, from, to string) (busy bool, err error) {
	for _, name := range g.VolumesOn(from) {
		if e.isLost(h.VG, name) {
			continue
		}
		if err := e.leavesData(h, g, name, head.from, from); err != nil {
			return false, err
		}
		return true, e.moveLogicalVolume(ctx, h, head, lvm.Move{Group: h.VG, Volume: name, From: from, To: to})
	}
	return false, nil
}

// pvIn returns the physical volume that a group has on a drive, or "". For a
// drive that is not here, it is the one that is missing.
func (e *Engine) pvIn(r *lvm.Report, g *lvm.Group, drive string) string {
	if p, ok := e.pvPart(drive); ok {
		if pv, on := r.On(p.dev); on != nil && on.Name == g.Name {
			return pv.UUID
		}
		return ""
	}
	if _, gone := e.drive(drive); gone == nil {
		return ""
	}
	if missing := g.Missing(); len(missing) == 1 {
		return missing[0]
	}
	return ""
}

func (e *Engine) isLost(vg, lv string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.groupMoves[vg]
	return t != nil && t.lost[lv] != ""
}

// lostOf returns what cannot be moved of a group.
func (e *Engine) lostOf(vg string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.groupMoves[vg]
	if t == nil {
		return ""
	}
	return t.losses()
}

func (t *groupMove) losses() string {
	var out []string
	for name, why := range t.lost {
		out = append(out, name+": "+why)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
