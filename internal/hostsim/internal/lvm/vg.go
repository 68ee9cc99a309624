package lvm

import (
	"fmt"
	"slices"
	"strings"
)

func vgcreate(c *command) error {
	if len(c.Words) < 2 {
		return misused("Please provide volume group name and physical volumes")
	}
	name := c.Words[0]
	g := &group{m: c.m, uuid: newID(), name: name, extent: 4 << 20, tags: c.All["addtag"], auto: c.Set["setautoactivation"] != "n"}
	if slices.ContainsFunc(c.groups(), func(g *group) bool { return g.name == name }) {
		return said("A volume group called %s already exists.", name)
	}
	if c.Has("physicalextentsize") {
		size, err := parseSize(c.Set["physicalextentsize"])
		if err != nil || size < 1<<10 || size&(size-1) != 0 {
			return misused("Physical extent size %s is invalid", c.Set["physicalextentsize"])
		}
		g.extent = size
	}
	if err := c.join(g, c.Words[1:]); err != nil {
		return err
	}
	c.Say("  Volume group \"%s\" successfully created", name)
	return c.commit(g)
}

// join adds devices to a group and labels those without a label.
func (c *command) join(g *group, names []string) error {
	var list []*pv
	for _, name := range names {
		p := c.at(name)
		if err := c.used(p, name); err != nil {
			return err
		}
		if p != nil && p.group != nil {
			return said("Physical volume '%s' is already in volume group '%s'\nUnable to add physical volume '%[1]s' to volume group '%[3]s'", name, p.group.name, g.name)
		}
		if p == nil {
			var err error
			if p, err = c.label(name); err != nil {
				return err
			}
		}
		if c.on[p.uuid].Busy() {
			return said("Can't open %s exclusively.  Mounted filesystem?", name)
		}
		list = append(list, p)
	}
	if sizes := c.blocks(append(slices.Clone(g.pvs), list...)); len(sizes) > 1 {
		return said("Devices have inconsistent logical block sizes (%d and %d).", sizes[0], sizes[1])
	}
	for _, p := range list {
		p.group, p.missing = g, false
		g.pvs = append(g.pvs, p)
	}
	return nil
}

// blocks returns the different block sizes of the physical volumes.
func (c *command) blocks(list []*pv) []uint64 {
	var out []uint64
	for _, p := range list {
		if d := c.on[p.uuid]; d != nil && d.Drive != nil && !slices.Contains(out, d.Drive.Block) {
			out = append(out, d.Drive.Block)
		}
	}
	return out
}

func vgextend(c *command) error {
	g, err := c.groupAndRest(2)
	if err != nil {
		return err
	}
	if !c.Has("restoremissing") {
		if err := c.join(g, c.Words[1:]); err != nil {
			return err
		}
		return c.commit(g)
	}
	list, err := c.named(g, c.Words[1:])
	if err != nil {
		return err
	}
	for _, p := range list {
		p.missing = false
	}
	return c.commit(g)
}

// groupAndRest returns the group that the first argument names, if there are enough arguments.
func (c *command) groupAndRest(least int) (*group, error) {
	if len(c.Words) < least {
		return nil, misused("Please enter volume group name")
	}
	return c.group(c.Words[0])
}

func vgreduce(c *command) error {
	g, err := c.groupAndRest(1)
	if err != nil {
		return err
	}
	if c.Has("removemissing") {
		return c.removeMissing(g)
	}
	if err := c.complete(g); err != nil {
		return err
	}
	list, err := c.named(g, c.Words[1:])
	if err != nil {
		return err
	}
	for _, p := range list {
		switch {
		case len(g.taken(p)) > 0:
			return said("Physical volume \"/dev/%s\" still in use", c.on[p.uuid].Name)
		case len(g.pvs) == 1:
			return said("Can't remove final physical volume \"/dev/%s\" from volume group \"%s\"", c.on[p.uuid].Name, g.name)
		}
		c.part(g, p)
	}
	return c.commit(g)
}

// part removes a physical volume from its group.
func (c *command) part(g *group, p *pv) {
	g.pvs = slices.DeleteFunc(g.pvs, func(x *pv) bool { return x == p })
	p.group, p.missing = nil, false
}

func (c *command) removeMissing(g *group) error {
	var partial []string
	for _, v := range g.lvs {
		if slices.ContainsFunc(v.areas, func(a area) bool { return c.missing(a.pv) }) {
			partial = append(partial, fmt.Sprintf("WARNING: Partial LV %s needs to be repaired or removed.", v.name))
		}
	}
	if len(partial) > 0 {
		return said("%s\nThere are still partial LVs in VG %s.\nTo remove them unconditionally use: vgreduce --removemissing --force.\nTo remove them unconditionally from mirror LVs use: vgreduce --removemissing --mirrorsonly --force.\nWARNING: Proceeding to remove empty missing PVs.", strings.Join(partial, "\n"), g.name)
	}
	for _, p := range slices.Clone(g.pvs) {
		if c.missing(p) {
			c.part(g, p)
		}
	}
	return c.commit(g)
}

func vgremove(c *command) error {
	g, err := c.groupAndRest(1)
	if err != nil {
		return err
	}
	n := 0
	for _, v := range g.lvs {
		if v.parent == nil && v.part == "" {
			n++
		}
	}
	if n > 0 && !c.Has("yes") && !c.Has("force") {
		return said("Do you really want to remove volume group \"%s\" containing %d logical volumes? [y/n]: [n]\n  Volume group \"%[1]s\" not removed", g.name, n)
	}
	for _, v := range slices.Clone(g.lvs) {
		if v.parent == nil && v.part == "" {
			if err := c.removeVolume(v); err != nil {
				return err
			}
		}
	}
	for _, p := range slices.Clone(g.pvs) { // also from one of two devices with the same UUID
		if dev := c.on[p.uuid]; dev != nil {
			if err := c.writeMetadata(dev, nil); err != nil {
				return err
			}
		}
		c.part(g, p)
	}
	c.Say("  Volume group \"%s\" successfully removed", g.name)
	return c.point()
}

func vgchange(c *command) error {
	g, err := c.groupAndRest(1)
	if err == nil {
		err = c.complete(g)
	}
	if err != nil {
		return err
	}
	g.tags = c.retag(g.tags)
	if v, ok := c.Set["setautoactivation"]; ok {
		g.auto = v != "n"
	}
	return c.commit(g)
}

// vgexport exports a group, and vgimport takes it back. LVM refuses other changes of an exported group.
func vgexport(c *command) error {
	g, err := c.groupAndRest(1)
	if err != nil {
		return err
	}
	for _, v := range g.lvs {
		if v.dev != nil && v.visible() {
			return said("Volume group \"%s\" has active logical volumes", g.name)
		}
	}
	if g.exported = c.command == "vgexport"; g.exported {
		c.Say("  Volume group \"%s\" successfully exported", g.name)
	}
	return c.commit(g)
}

// retag applies --addtag and --deltag.
func (c *command) retag(tags []string) []string {
	tags = slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return slices.Contains(c.All["deltag"], t) })
	for _, t := range c.All["addtag"] {
		if !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	return tags
}
