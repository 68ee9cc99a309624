package lvm

import (
	"context"
	"fmt"
)

// stranded are the parts of volumes that are active while nothing made of them is:
// what an lvm leaves that is killed as it makes or takes away a device. As long as
// they are, nothing can be activated that needs them ("Activation of logical volume
// ... is prohibited while logical volume ... is active", 2.03.16, tried).
func (g *Group) stranded() []string {
	var out []string
	for i := range g.LVs {
		if lv := &g.LVs[i]; lv.Active && lv.Parent != "" && !g.carries(lv) {
			out = append(out, g.Name+"/"+lv.Name)
		}
	}
	return out
}

// carries says that the volume that a part belongs to has a device. A thin pool
// shows none of its own while its volumes use it (the same lvm).
func (g *Group) carries(part *LV) bool {
	top := part
	for range g.LVs { // a report that goes in circles ends, too
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

// free deactivates what is stranded in a group. What somebody has open stays, and
// lvm says so. While something moves, parts of it are active for that alone.
func (s *System) free(ctx context.Context, report *Report, group string, devices []string) (*Report, error) {
	g := report.Group(group)
	if g == nil || g.AnyMove() != nil {
		return report, nil
	}
	parts := g.stranded()
	if len(parts) == 0 {
		return report, nil
	}
	within, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	if _, err := s.run(within, devices, append([]string{"lvchange", "--activate", "n"}, parts...)); err != nil {
		return report, fmt.Errorf("take away what an interrupted command left active: %w", err)
	}
	return s.Read(ctx, devices)
}
