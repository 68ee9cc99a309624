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

// deactivateParts deactivates the parts of a group that an interrupted command left active. LVM
// refuses a part that is open. While a move is under way, deactivateParts does nothing: the parts
// of the move are active on purpose.
func (s *System) deactivateParts(ctx context.Context, report *Report, group string, devices []string) (*Report, error) {
	g := report.Group(group)
	if g == nil || g.AnyMove() != nil {
		return report, nil
	}
	parts := g.partsLeftActive()
	if len(parts) == 0 {
		return report, nil
	}
	if err := s.change(ctx, devices, append([]string{"lvchange", "--activate", "n"}, parts...)); err != nil {
		return report, fmt.Errorf("deactivate parts that an interrupted command left active: %w", err)
	}
	return s.Read(ctx, devices)
}
