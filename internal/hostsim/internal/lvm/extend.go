package lvm

import (
	"cmp"
	"slices"
)

// lvextend extends a volume to a size.
func lvextend(c *command) error {
	if len(c.Words) == 0 {
		return misused("Please specify a logical volume path.")
	}
	v, err := c.volume(c.Words[0])
	if err != nil {
		return err
	}
	if err := cmp.Or(c.complete(v.group), v.locked()); err != nil {
		return err
	}
	if c.Has("poolmetadatasize") {
		return c.extendMetadata(v)
	}
	bytes, err := parseSize(c.Set["size"])
	if err != nil {
		return err
	}
	want := (bytes + v.group.extent - 1) / v.group.extent
	switch {
	case want == v.extents:
		return said("New size (%d extents) matches existing size (%d extents).", want, v.extents)
	case want < v.extents:
		return said("New size given (%d extents) not larger than existing size (%d extents)", want, v.extents)
	}
	pvs, err := c.usable(v.group, c.Words[1:])
	if err == nil {
		err = v.grow(want-v.extents, pvs)
	}
	if err != nil {
		return err
	}
	if err := c.commit(v.group); err != nil {
		return err
	}
	c.reload(v)
	c.Say("  Logical volume %s successfully resized.", v.path())
	return c.point()
}

// lvreduce takes the last extents of a linear or thin volume.
func lvreduce(c *command) error {
	if len(c.Words) != 1 {
		return misused("Please specify a logical volume path.")
	}
	v, err := c.volume(c.Words[0])
	if err != nil {
		return err
	}
	bytes, err := parseSize(c.Set["size"])
	if err := cmp.Or(err, c.complete(v.group), v.locked()); err != nil {
		return err
	}
	want := (bytes + v.group.extent - 1) / v.group.extent
	switch {
	case want >= v.extents || want == 0:
		return said("New size given (%d extents) not less than existing size (%d extents)", want, v.extents)
	case v.kind != "linear" && v.kind != "thin":
		return said("only linear and thin volumes are simulated")
	}
	for over := v.extents - want; v.kind == "linear" && over > 0; {
		last := &v.areas[len(v.areas)-1]
		n := min(last.n, over)
		last.n, over = last.n-n, over-n
		if last.n == 0 {
			v.areas = v.areas[:len(v.areas)-1]
		}
	}
	v.extents = want
	if err := c.commit(v.group); err != nil {
		return err
	}
	c.reload(v)
	c.Say("  Logical volume %s successfully resized.", v.path())
	return nil
}

// extendMetadata extends the metadata of a pool, and the spare if there is room for both.
func (c *command) extendMetadata(v *lv) error {
	bytes, err := parseSize(c.Set["poolmetadatasize"])
	if err != nil {
		return err
	}
	want := (bytes + v.group.extent - 1) / v.group.extent
	if v.kind != "thin-pool" || want <= v.meta.extents {
		return said("New size given (%d extents) not larger than existing size", want)
	}
	pvs, err := c.usable(v.group, nil)
	if err == nil {
		err = v.meta.grow(want-v.meta.extents, pvs)
	}
	if err != nil {
		return err
	}
	if spare := v.group.spare(); spare != nil && v.group.room(pvs) >= want-spare.extents {
		if err := spare.grow(want-spare.extents, pvs); err != nil {
			return err
		}
	}
	if err := c.commit(v.group); err != nil {
		return err
	}
	c.reload(v.meta)
	c.reload(v)
	c.Say("  Logical volume %s/%s successfully resized.", v.group.name, v.meta.name)
	return c.point()
}

// grow adds extents to a volume. New extents of a mirror are in sync at once.
func (v *lv) grow(n uint64, pvs []*pv) error {
	switch v.kind {
	case "linear":
		more, err := v.group.lay(n, pvs)
		if err != nil {
			return err
		}
		v.areas = joined(append(v.areas, more...))
	case "thin-pool":
		if err := v.data.grow(n, pvs); err != nil {
			return err
		}
	case "raid1":
		if err := v.growLegs(n, pvs); err != nil {
			return err
		}
	}
	v.extents += n
	return nil
}

func (v *lv) growLegs(n uint64, pvs []*pv) error {
	more := make([][]area, len(v.images))
	for i, image := range v.images {
		own := slices.DeleteFunc(slices.Clone(pvs), func(p *pv) bool { return v.elsewhere(i, p) })
		// The drive of the leg comes first.
		slices.SortStableFunc(own, func(a, b *pv) int { return flagOrder(b == image.areas[0].pv) - flagOrder(a == image.areas[0].pv) })
		if more[i] = v.group.take(n, own); more[i] == nil {
			return said("Insufficient suitable allocatable extents for logical volume %s: %d more required", v.name, n)
		}
	}
	for i, image := range v.images {
		image.areas = joined(append(image.areas, more[i]...))
		image.extents += n
		v.fresh[i] = v.fresh[i] || i > 0
	}
	return nil
}

func flagOrder(on bool) int {
	if on {
		return 1
	}
	return 0
}

// elsewhere reports whether a leg other than i lies on a physical volume.
func (v *lv) elsewhere(i int, p *pv) bool {
	for j, image := range v.images {
		if j != i && slices.ContainsFunc(image.areas, func(a area) bool { return a.pv == p }) {
			return true
		}
	}
	return false
}
