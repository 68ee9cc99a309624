package hostsim

import (
	"slices"
)

// relocation is a pvmove under way. Until its end everything is where it was; then it
// is copied and the volumes change over, all at once (--atomic).
type relocation struct {
	uuid        string
	legs        [2]string // identities of its hidden volumes
	from        *pv
	lvs         []*lv
	to          []area
	done, total uint64 // extents
}

func (x *relocation) moves(v *lv) bool { return slices.Contains(x.lvs, v) }

// moveSteps is how often a move looks up from its work.
const moveSteps = 20

func (c *lvmRun) pvmove() error {
	if len(c.words) == 0 {
		return misused("Please enter a source physical volume")
	}
	p := c.at(c.words[0])
	if p == nil || p.group == nil {
		return said("Failed to find physical volume \"%s\".", c.words[0])
	}
	g := p.group
	if err := c.complete(g); err != nil {
		return err
	}
	switch {
	case c.has("abort") && g.move == nil:
		return nil
	case c.has("abort"):
		g.move = nil
		return c.commit(g)
	case g.move != nil && g.move.from != p:
		return said("Detected pvmove in progress for %s.\nIgnoring remaining command line arguments.", g.name)
	case g.move == nil:
		if err := c.startMove(g, p); err != nil {
			return err
		}
	}
	return &carryOn{func() error { return c.carry(g, g.move) }}
}

// startMove finds room for all that is on a physical volume.
func (c *lvmRun) startMove(g *group, from *pv) error {
	pvs, err := c.usable(g, c.words[1:])
	if err != nil {
		return err
	}
	x := &relocation{uuid: lvmID(), legs: [2]string{lvmID(), lvmID()}, from: from}
	g.move = x // what it has taken is not free
	for _, v := range g.lvs {
		for _, a := range v.areas {
			if a.pv != from {
				continue
			}
			to := g.take(a.n, slices.DeleteFunc(slices.Clone(pvs), func(p *pv) bool { return p == from || v.parent != nil && v.beside(p) }))
			if to == nil {
				g.move = nil
				return said("Insufficient suitable allocatable extents for logical volume pvmove0: %d more required\nUnable to allocate mirror extents for pvmove0.\nFailed to convert pvmove LV to mirrored.", a.n)
			}
			x.to = append(x.to, to...)
			if !x.moves(v) {
				x.lvs = append(x.lvs, v)
			}
			x.total += a.n
		}
	}
	if x.total == 0 {
		g.move = nil
		return said("No data to move for %s.", g.name)
	}
	return c.commit(g)
}

// beside says whether another leg of the mirror that a volume is part of lies on
// a physical volume.
func (v *lv) beside(p *pv) bool {
	i := slices.Index(v.parent.images, v)
	if i < 0 {
		i = slices.Index(v.parent.metas, v)
	}
	return v.parent.elsewhere(i, p)
}

// carry does the work of a move; it can be ended at any time, and goes on from
// there when it is asked for again.
func (c *lvmRun) carry(g *group, x *relocation) error {
	step := access{n: 1 << 20}
	for {
		for _, p := range append([]*pv{x.from}, targets(x.to)...) {
			dev := c.on[p.uuid]
			if err := dev.do(c.ctx, access{write: p != x.from, n: step.n}, func() error { return nil }); err != nil {
				return said("ABORTING: Mirror percentage check failed.\n%s: %v", dev.name, err)
			}
		}
		ended, err := c.advance(g, x)
		if ended || err != nil {
			return err
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
}

func targets(areas []area) (list []*pv) {
	for _, a := range areas {
		if !slices.Contains(list, a.pv) {
			list = append(list, a.pv)
		}
	}
	return list
}

func (c *lvmRun) advance(g *group, x *relocation) (ended bool, err error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if g.move != x { // taken back meanwhile
		return true, nil
	}
	x.done = min(x.total, x.done+max(x.total/moveSteps, 1))
	c.say("  %s: Moved: %.2f%%", c.words[0], 100*float64(x.done)/float64(x.total))
	if err := c.point(); err != nil || x.done < x.total {
		return false, err
	}
	to := x.to
	for _, v := range x.lvs {
		var areas []area
		for _, a := range v.areas {
			if a.pv != x.from {
				areas = append(areas, a)
				continue
			}
			for n := a.n; n > 0; to = to[1:] {
				copyDevice(c.on[to[0].pv.uuid], to[0].pv.start+to[0].start*g.extent, c.on[a.pv.uuid], a.pv.start+(a.start+a.n-n)*g.extent, to[0].n*g.extent)
				areas, n = append(areas, to[0]), n-to[0].n
			}
		}
		v.areas = joined(areas)
	}
	g.move = nil
	for _, v := range x.lvs {
		c.reload(v)
	}
	return true, c.commit(g)
}
