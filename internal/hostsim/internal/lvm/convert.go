package lvm

import (
	"slices"
)

// lvconvert replaces, adds or removes legs of a mirror.
func lvconvert(c *command) error {
	if len(c.Words) == 0 {
		return misused("Please provide a logical volume path")
	}
	v, err := c.volume(c.Words[0])
	if err != nil {
		return err
	}
	if c.Has("uncache") || c.Set["type"] == "cache" {
		return c.changeCache(v)
	}
	if c.Has("mirrors") {
		return c.changeLegs(v)
	}
	if v.kind != "raid1" {
		return said("Command on LV %s does not accept LV type %s.", v.path(), v.kind)
	}
	bad := c.missing
	if names := c.All["replace"]; len(names) > 0 {
		if err := c.complete(v.group); err != nil {
			return err
		}
		from, err := c.named(v.group, names)
		if err != nil {
			return err
		}
		bad = func(p *pv) bool { return slices.Contains(from, p) }
	}
	pvs, err := c.usable(v.group, c.Words[1:])
	if err != nil {
		return err
	}
	return c.replaceLegs(v, bad, pvs)
}

func (c *command) replaceLegs(v *lv, bad func(*pv) bool, pvs []*pv) error {
	done := false
	for i := range v.images {
		on := func(x *lv) bool { return slices.ContainsFunc(x.areas, func(a area) bool { return bad(a.pv) }) }
		if !on(v.images[i]) && !on(v.metas[i]) {
			continue
		}
		if v.last(i) {
			return said("Unable to replace all PVs from %s at once.", v.path())
		}
		at := slices.IndexFunc(pvs, func(p *pv) bool { return !bad(p) && !v.elsewhere(i, p) && v.group.take(v.extents+1, []*pv{p}) != nil })
		if at < 0 {
			return said("Insufficient free space: %d extents needed, but only 0 available\nFailed to allocate replacement images for %s", v.extents+1, v.path())
		}
		old := []*lv{v.metas[i], v.images[i]}
		v.group.forget(old...)
		v.leg(pvs[at], i)
		v.recovers = c.m.Clock.Now()
		if v.dev != nil {
			for _, x := range []*lv{v.metas[i], v.images[i]} {
				if err := c.activate(x); err != nil {
					return err
				}
			}
			c.reload(v)
			for _, x := range old {
				c.deactivate(x)
			}
		}
		done = true
	}
	if !done {
		return nil
	}
	c.Say("  Faulty devices in %s successfully replaced.", v.path())
	return c.commit(v.group)
}

// changeCache puts a volume behind a cache, or takes the cache away. The cache has no effect on reads and writes.
func (c *command) changeCache(v *lv) error {
	if v.kind != "linear" {
		return said("Command on LV %s does not accept LV type %s.", v.path(), v.kind)
	}
	if v.cached = !c.Has("uncache"); v.cached {
		with := v.group.lv(c.Set["cachevol"])
		if with == nil {
			return said("Failed to find logical volume \"%s/%s\"", v.group.name, c.Set["cachevol"])
		}
		if err := c.removeVolume(with); err != nil {
			return err
		}
	}
	return c.commit(v.group)
}

// last reports whether no other leg of the mirror is in use.
func (v *lv) last(i int) bool {
	for j := range v.images {
		if j != i && !v.failed[j] {
			return false
		}
	}
	return true
}

// recovered returns how many extents of a mirror are in sync on all legs. Reports show the copy as
// taking time.
func (v *lv) recovered() uint64 {
	if v.recovers.IsZero() {
		return v.extents
	}
	return v.group.copied(v.recovers, v.extents)
}

// changeLegs converts a linear volume to a mirror or back. It adds a leg on the physical volume that
// is named, or removes the leg there.
func (c *command) changeLegs(v *lv) error {
	if err := c.complete(v.group); err != nil {
		return err
	}
	pvs, err := c.named(v.group, c.Words[1:])
	if err != nil {
		return err
	}
	switch want := c.Set["mirrors"]; {
	case len(pvs) != 1 || want != "0" && want != "1":
		return misused("--mirrors %s of %s", want, c.Words[1:])
	case v.dev == nil:
		return said("%s must be active to perform this operation.", v.path())
	case want == "0" && v.kind == "raid1":
		return c.dropLeg(v, pvs[0])
	case want == "1" && v.kind == "linear" && v.parent == nil:
		return c.addLeg(v, pvs[0])
	}
	return said("Command on LV %s does not accept LV type %s.", v.path(), v.kind)
}

func (c *command) dropLeg(v *lv, from *pv) error {
	keep := slices.IndexFunc(v.images, func(x *lv) bool { return x.areas[0].pv != from })
	if keep < 0 || len(v.images) != 2 || v.failed[keep] {
		return said("Unable to extract RAID image while RAID array is not in-sync.")
	}
	old := v.parts()
	v.group.forget(old...)
	v.kind, v.areas = "linear", v.images[keep].areas
	v.images, v.metas, v.failed, v.fresh = nil, nil, nil, nil
	c.reload(v)
	for _, x := range old {
		c.deactivate(x)
	}
	c.Say("  Logical volume %s successfully converted.", v.path())
	return c.commit(v.group)
}

func (c *command) addLeg(v *lv, on *pv) error {
	g, first := v.group, v.areas
	own := first[0].pv
	if own == on || g.take(1, []*pv{own}) == nil || g.take(v.extents+1, []*pv{on}) == nil {
		return said("Insufficient suitable allocatable extents for logical volume %s: %d more required", v.name, v.extents+1)
	}
	v.kind, v.areas = "raid1", nil
	meta := g.add(&lv{group: g, name: v.sub("rmeta", 0), parent: v, part: "rmeta", kind: "linear", extents: 1})
	image := g.add(&lv{group: g, name: v.sub("rimage", 0), parent: v, part: "rimage", kind: "linear", extents: v.extents, areas: first})
	meta.areas = g.take(1, []*pv{own})
	v.images, v.metas, v.failed, v.fresh = []*lv{image}, []*lv{meta}, []bool{false}, []bool{true}
	v.leg(on, 1)
	v.recovers = c.m.Clock.Now()
	for _, x := range v.parts() {
		if err := c.activate(x); err != nil {
			return err
		}
	}
	c.reload(v)
	c.Say("  Logical volume %s successfully converted.", v.path())
	return c.commit(g)
}
