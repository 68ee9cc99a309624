package lvm

import (
	"cmp"
	"slices"
)

func lvchange(c *command) error {
	if len(c.Words) == 0 {
		return misused("Please give a logical volume path")
	}
	for len(c.Words) > 1 && c.Has("activate") {
		v, err := c.volume(c.Words[0])
		if err == nil {
			err = c.setActive(v, c.Set["activate"])
		}
		if err != nil {
			return err
		}
		c.Words = c.Words[1:]
	}
	v, err := c.volume(c.Words[0])
	if err != nil {
		return err
	}
	switch {
	case c.Has("refresh"):
		return c.refresh(v)
	case c.Has("activate"):
		return c.setActive(v, c.Set["activate"])
	}
	if err := c.complete(v.group); err != nil {
		return err
	}
	v.tags = c.retag(v.tags)
	if full, ok := c.Set["errorwhenfull"]; ok {
		if v.kind != "thin-pool" {
			return said("Command on LV %s does not accept LV type %s.", v.path(), v.kind)
		}
		v.failFull = full == "y"
	}
	if zero, ok := c.Set["zero"]; ok {
		v.unzeroed = zero == "n"
	}
	if permission, ok := c.Set["permission"]; ok {
		v.readOnly = permission == "r"
		c.reload(v)
	}
	if skip, ok := c.Set["setactivationskip"]; ok {
		v.skip = skip == "y"
	}
	return c.commit(v.group)
}

func (c *command) refresh(v *lv) error {
	if v.dev == nil {
		return nil // no table is loaded
	}
	if v.kind == "raid1" && c.health(v) == "partial" {
		return said("Refusing refresh of partial LV %s. Use '--activationmode partial' to override.", v.path())
	}
	if v.pool != nil {
		c.reload(v.pool)
	}
	c.reload(v)
	return nil
}

func (c *command) setActive(v *lv, how string) error {
	if how == "n" {
		if err := v.inUse(); err != nil {
			return err
		}
		c.deactivate(v)
		return c.point()
	}
	if v.skip && !c.Has("ignoreactivationskip") {
		return nil
	}
	if err := c.activate(v); err != nil {
		return err
	}
	return c.point()
}

func lvremove(c *command) error {
	for _, path := range c.Words {
		v, err := c.volume(path)
		if err != nil {
			return err
		}
		if v.dev != nil && !c.Has("yes") && !c.Has("force") {
			return said("Do you really want to remove active logical volume %s? [y/n]: [n]\n  Logical volume %[1]s not removed.", v.path())
		}
		if err := c.removeVolume(v); err != nil {
			return err
		}
	}
	return nil
}

// removeVolume removes a volume and its parts; of a pool also its thin volumes.
func (c *command) removeVolume(v *lv) error {
	g := v.group
	if v.parent != nil {
		return said("Can't remove logical volume %s used by %s.", v.name, v.parent.name)
	}
	for _, x := range slices.Clone(g.lvs) {
		if x.pool == v {
			if err := c.removeVolume(x); err != nil {
				return err
			}
		}
	}
	if err := cmp.Or(v.inUse(), v.locked()); err != nil {
		return err
	}
	c.deactivate(v)
	for number := range v.chunks {
		v.drop(number)
	}
	for _, x := range slices.Clone(g.lvs) {
		switch {
		case x.origin != v:
		case x.kind == "thin":
			x.origin = nil
		default: // goes with its origin
			if err := c.removeVolume(x); err != nil {
				return err
			}
		}
	}
	gone := append(v.parts(), v)
	if spare := g.spare(); v.kind == "thin-pool" && spare != nil && !slices.ContainsFunc(g.lvs, func(x *lv) bool { return x.kind == "thin-pool" && x != v }) {
		gone = append(gone, spare)
	}
	g.forget(gone...)
	c.Say("  Logical volume \"%s\" successfully removed.", v.name)
	return c.commit(g)
}
