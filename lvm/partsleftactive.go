package lvm

import (
	"context"
	"fmt"
)

// partsLeftActive returns the hidden parts that are active although the volume that they belong
// to is not. A killed LVM command can leave such parts. While they are active, LVM activates no
// volume that needs them ("Activation of logical volume ... is
// prohibited while logical volume ... is active", 2.03.16, tried).
func (g *Group) partsLeftActive() []string {
	var out []string
	for i := range g.LVs {
		if lv := &g.LVs[i]; lv.Active && lv.Parent != "" && !g.hasDevice(lv) {
			out = append(out, g.Name+"/"+lv.Name)
		}
	}
	return out
}

// hasDevice reports whether the volume that a part belongs to has a device. A thin pool shows
// no device while its volumes use it (LVM 2.03.16).
func (g *Group) hasDevice(part *LV) bool {
	top := part
	for range g.LVs { // a report with a cycle ends, too
		above := g.LV(top.Parent)
		if above == nil {
			break
		}
		top = above
	}
	if top.Active && top != part {
		return true
	}
	for i := range g.LVs {
		if lv := &g.LVs[i]; lv.Active && lv.Pool != "" && lv.Pool == top.Name {
			return true
		}
	}
	return false
}

// withoutTable returns the volumes that have a device without a table.
func (g *Group) withoutTable() []string {
	var out []string
	for i := range g.LVs {
		if g.LVs[i].NoTable {
			out = append(out, g.Name+"/"+g.LVs[i].Name)
		}
	}
	return out
}

// deactivateParts deactivates what an interrupted command left active in a group: parts, and devices without a table. LVM
// refuses a part that is open. While a move is under way, deactivateParts does nothing: the parts
// of the move are active on purpose. A device without a table that stays is in the way of its own volume only, whose plan says so.
func (s *System) deactivateParts(ctx context.Context, report *Report, group string, devices []string) (*Report, error) {
	for _, of := range []struct {
		left func(*Group) []string
		stay bool // what cannot be deactivated stays
	}{{(*Group).withoutTable, true}, {(*Group).partsLeftActive, false}} {
		g := report.Group(group)
		if g == nil || g.AnyMove() != nil {
			return report, nil
		}
		names := of.left(g)
		if len(names) == 0 {
			continue
		}
		// Of a thin volume LVM removes the device, and fails: then it tries to remove that of the pool, which is in use.
		err := s.change(ctx, devices, append([]string{"lvchange", "--activate", "n"}, names...))
		if err != nil && !of.stay {
			return report, fmt.Errorf("deactivate parts that an interrupted command left active: %w", err)
		}
		after, err := s.Read(ctx, devices)
		if err != nil {
			return report, err
		}
		report = after
	}
	return report, nil
}
