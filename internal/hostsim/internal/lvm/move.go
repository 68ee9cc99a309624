package lvm

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/kernel"
)

// relocation is a pvmove in progress. The kernel copies to the new extents, and they keep the copy
// when the move is aborted ("pvmove --abort" frees them, lvm2 2.03.16, tools/pvmove_poll.c). At the
// end all volumes switch at once (--atomic), with the writes of the meantime.
type relocation struct {
	uuid        string
	legs        [2]string // UUIDs of its hidden volumes
	from        *pv
	lvs         []*lv
	to          []area
	since       time.Time // start of the copy; zero: inactive, and the progress is lost
	done, total uint64    // extents
	failed      [2]bool   // failed legs, until all is copied
	table       string    // active table of its device, and the loaded one; "": LVM's
	loaded      string
}

func (x *relocation) moves(v *lv) bool { return slices.Contains(x.lvs, v) }

// copyRate is the kernel's copy rate below volumes, in bytes per second.
const copyRate = 100 << 20

// copied returns how many of n extents the kernel has copied since a time.
func (g *group) copied(since time.Time, n uint64) uint64 {
	if since.IsZero() {
		return 0
	}
	return min(n, uint64(g.m.Clock.Now().Sub(since).Seconds()*copyRate)/g.extent)
}

func pvmove(c *command) error {
	if len(c.Words) == 0 {
		return misused("Please enter a source physical volume")
	}
	p := c.at(c.Words[0])
	if p == nil || p.group == nil {
		return said("Failed to find physical volume \"%s\".", c.Words[0])
	}
	g := p.group
	if err := c.complete(g); err != nil {
		return err
	}
	switch {
	case c.Has("abort") && g.move == nil:
		return nil
	case c.Has("abort"):
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

// startMove allocates extents for all that is on a physical volume.
func (c *command) startMove(g *group, from *pv) error {
	pvs, err := c.usable(g, c.Words[1:])
	if err != nil {
		return err
	}
	x := &relocation{uuid: newID(), legs: [2]string{newID(), newID()}, from: from}
	g.move = x // the extents that it takes are not free
	for _, v := range g.lvs {
		for _, a := range v.areas {
			if a.pv != from || c.Has("name") && v.top().name != c.Set["name"] {
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
	if err := c.commit(g); err != nil {
		return err
	}
	for _, v := range x.lvs {
		if err := c.activate(v.top()); err != nil {
			return err
		}
	}
	x.begin("", c.m.Clock.Now())
	return nil
}

// top returns the volume that a hidden part belongs to.
func (v *lv) top() *lv {
	for v.parent != nil {
		v = v.parent
	}
	return v
}

// beside reports whether another leg of the same mirror lies on a physical volume.
func (v *lv) beside(p *pv) bool {
	i := slices.Index(v.parent.images, v)
	if i < 0 {
		i = slices.Index(v.parent.metas, v)
	}
	return v.parent.elsewhere(i, p)
}

// carry waits for a move. It can be ended at any time; the next pvmove continues from there.
func (c *command) carry(g *group, x *relocation) error {
	every, first := c.Set["interval"], true
	seconds, err := strconv.Atoi(strings.TrimPrefix(every, "+"))
	if err != nil {
		return misused("Invalid argument for --interval: %s", every)
	}
	for {
		if !first || strings.HasPrefix(every, "+") {
			select {
			case <-c.m.Clock.After(time.Duration(seconds) * time.Second):
			case <-c.Ctx.Done():
				return c.Ctx.Err()
			}
		}
		first = false
		if ended, err := c.advance(g, x); ended || err != nil {
			return err
		}
	}
}

// look updates the progress of a move. It skips unreadable extents, and only the log reports them; the
// letters of the status are reset when all is copied (dm-raid1.c, reset_ms_flags).
func (c *scan) look(g *group, x *relocation) {
	n := g.copied(x.since, x.total)
	if n == x.done || x.retreated() {
		return
	}
	at := uint64(0)
	for _, v := range x.lvs {
		for _, a := range v.areas {
			if a.pv != x.from {
				continue
			}
			from, to := max(x.done, at), min(n, at+a.n)
			at += a.n
			if from >= to {
				continue
			}
			if dev := c.on[a.pv.uuid]; dev == nil || fails(dev, block.Access{Off: a.pv.start + (a.start+from-(at-a.n))*g.extent, N: (to - from) * g.extent}) {
				x.failed[0] = true
				c.m.Logf(kernel.LevelErr, "device-mapper: raid1: Unable to read primary mirror during recovery")
				continue
			}
			c.copyExtents(g, x, from, a.pv, a.start+from-(at-a.n), to-from)
		}
	}
	for _, p := range targets(x.to) {
		if dev := c.on[p.uuid]; dev == nil || fails(dev, block.Access{Write: true, N: 4096}) {
			x.failed[1] = true
			c.m.Logf(kernel.LevelErr, "device-mapper: raid1: Write error during recovery (error = 0x1)")
		}
	}
	if x.done = n; n == x.total {
		x.failed = [2]bool{}
	}
}

// copyExtents copies n extents of a physical volume to the target of a move; at counts the extents of
// the move.
func (c *scan) copyExtents(g *group, x *relocation, at uint64, from *pv, start, n uint64) {
	for _, a := range x.to {
		if at >= a.n {
			at -= a.n
			continue
		}
		some := min(n, a.n-at)
		if dev := c.on[a.pv.uuid]; dev != nil && !fails(dev, block.Access{Write: true, N: 4096}) {
			c.m.AsKernel(block.WriterMove, func() {
				block.CopyDevice(dev, a.pv.start+(a.start+at)*g.extent, c.on[from.uuid], from.start+start*g.extent, some*g.extent)
			})
		}
		if start, n, at = start+some, n-some, 0; n == 0 {
			return
		}
	}
}

func fails(d *block.Device, a block.Access) bool { _, err := d.Ask(a); return err != nil }

func targets(areas []area) (list []*pv) {
	for _, a := range areas {
		if !slices.Contains(list, a.pv) {
			list = append(list, a.pv)
		}
	}
	return list
}

func (c *command) advance(g *group, x *relocation) (ended bool, err error) {
	c.m.Mu.Lock()
	defer c.m.Mu.Unlock()
	if g.move != x { // aborted meanwhile
		return true, nil
	}
	if err := c.complete(g); err != nil {
		return true, said("%v\nABORTING: Can't reread VG for %s error flags 1.", err, c.Words[0])
	}
	if c.look(g, x); x.since.IsZero() {
		c.Say("  %s: Interrupted: No longer active.", c.Words[0])
		return true, nil
	}
	c.Say("  %s: Moved: %.2f%%", c.Words[0], 100*float64(x.done)/float64(x.total))
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
				block.CopyDevice(c.on[to[0].pv.uuid], to[0].pv.start+to[0].start*g.extent, c.on[a.pv.uuid], a.pv.start+(a.start+a.n-n)*g.extent, to[0].n*g.extent)
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
