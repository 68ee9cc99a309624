package hostsim

import (
	"slices"
)

// lvconvert replaces legs of a mirror.
func (c *lvmRun) lvconvert() error {
	if len(c.words) == 0 {
		return misused("Please provide a logical volume path")
	}
	v, err := c.volume(c.words[0])
	if err != nil {
		return err
	}
	if v.kind != "raid1" {
		return said("Command on LV %s does not accept LV type %s.", v.path(), v.kind)
	}
	bad := c.missing
	if names := c.all["replace"]; len(names) > 0 {
		if err := c.complete(v.group); err != nil {
			return err
		}
		from, err := c.named(v.group, names)
		if err != nil {
			return err
		}
		bad = func(p *pv) bool { return slices.Contains(from, p) }
	}
	pvs, err := c.usable(v.group, c.words[1:])
	if err != nil {
		return err
	}
	return c.replaceLegs(v, bad, pvs)
}

func (c *lvmRun) replaceLegs(v *lv, bad func(*pv) bool, pvs []*pv) error {
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
		v.failed[i], v.recovers = true, c.m.clock.Now()
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
	c.say("  Faulty devices in %s successfully replaced.", v.path())
	return c.commit(v.group)
}

// last says whether all other legs of a mirror lack something.
func (v *lv) last(i int) bool {
	for j := range v.images {
		if j != i && !v.failed[j] {
			return false
		}
	}
	return true
}

// recovered is how much of a mirror all its legs have: for those who ask, copying takes
// its time.
func (v *lv) recovered() uint64 {
	if v.recovers.IsZero() {
		return v.extents
	}
	return v.group.copied(v.recovers, v.extents)
}
