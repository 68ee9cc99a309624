package lvm

import (
	"context"
	"errors"
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
// of the move are active on purpose.
func (s *System) deactivateParts(ctx context.Context, report *Report, group string, devices []string) (*Report, error) {
	g := report.Group(group)
	if g == nil || g.AnyMove() != nil {
		return report, nil
	}
	for _, left := range []func(*Group) []string{(*Group).withoutTable, (*Group).partsLeftActive} {
		names := left(g)
		if len(names) == 0 {
			continue
		}
		err := s.change(ctx, devices, append([]string{"lvchange", "--activate", "n"}, names...))
		after, unread := s.Read(ctx, devices)
		if unread != nil {
			return report, errors.Join(err, unread)
		}
		report = after
		// Of a thin volume LVM removes the device, and fails: then it tries to remove that of the pool, which is in use.
		if g = report.Group(group); g == nil || err != nil && len(left(g)) > 0 {
			return report, fmt.Errorf("deactivate what an interrupted command left active: %w", err)
		}
	}
	return report, nil
}
