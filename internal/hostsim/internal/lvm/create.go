package lvm

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
)

// lvcreate creates a volume: it commits the metadata, activates the volume and then wipes it.
func lvcreate(c *command) error {
	if len(c.Words) == 0 || c.Set["name"] == "" {
		return misused("Please specify a volume group and a name.")
	}
	if c.Has("snapshot") {
		return c.snapshot()
	}
	g, err := c.group(c.Words[0])
	if err != nil {
		return err
	}
	if err := c.fresh(g); err != nil {
		return err
	}
	v := &lv{group: g, name: c.Set["name"], kind: cmp.Or(c.Set["type"], "linear"), tags: c.All["addtag"], readOnly: c.Set["permission"] == "r", skip: c.Set["setactivationskip"] == "y"}
	makers := map[string]func(*lv) error{"linear": c.makeLinear, "raid1": c.makeMirror, "thin-pool": c.makePool, "thin": c.makeThin}
	if makers[v.kind] == nil {
		return misused("Invalid argument for --type: %s", v.kind)
	}
	size := cmp.Or(c.Set["size"], c.Set["virtualsize"])
	bytes, err := parseSize(size)
	if err != nil || bytes == 0 {
		return misused("Please specify a size.")
	}
	v.extents = (bytes + g.extent - 1) / g.extent
	if err := makers[v.kind](v); err != nil {
		return err
	}
	return c.finish(v)
}

// fresh returns an error if a new volume with the given name is not possible.
func (c *command) fresh(g *group) error {
	if err := c.complete(g); err != nil {
		return err
	}
	if g.lv(c.Set["name"]) != nil {
		return said("Logical Volume \"%s\" already exists in volume group \"%s\"", c.Set["name"], g.name)
	}
	return nil
}

// finish commits, activates and wipes a new volume.
func (c *command) finish(v *lv) error {
	if err := c.commit(v.group); err != nil {
		return err
	}
	if v.skip || c.Set["activate"] == "n" {
		c.Say("  Logical volume \"%s\" created.", v.name)
		return nil
	}
	err := c.activate(v)
	if err == nil {
		err = c.point()
	}
	if err == nil && (v.kind == "linear" || v.kind == "raid1") {
		err = c.wipeNew(v)
	}
	if err != nil && !errors.Is(err, errKilled) {
		return said("%v\nFailed to activate new LV %s.", err, v.path())
	}
	if err == nil {
		c.Say("  Logical volume \"%s\" created.", v.name)
	}
	return err
}

func (c *command) wipeNew(v *lv) error {
	if c.Set["wipesignatures"] != "n" {
		if err := c.wipe(v.dev); err != nil {
			return err
		}
	}
	if c.Set["zero"] == "n" {
		return nil
	}
	if err := c.zero(v.dev, 0, min(4096, v.size())); err != nil {
		return err
	}
	return c.point()
}

// lay allocates extents for a volume.
func (g *group) lay(n uint64, pvs []*pv) ([]area, error) {
	if areas := g.take(n, pvs); areas != nil {
		return areas, nil
	}
	if len(pvs) == len(g.pvs) {
		return nil, said("Volume group \"%s\" has insufficient free space (%d extents): %d required.", g.name, g.room(pvs), n)
	}
	return nil, said("Insufficient free space: %d extents needed, but only %d available", n, g.room(pvs))
}

func (c *command) makeLinear(v *lv) (err error) {
	pvs, err := c.usable(v.group, c.Words[1:])
	if err != nil {
		return err
	}
	if v.areas, err = v.group.lay(v.extents, pvs); err == nil {
		v.group.add(v)
	}
	return err
}

// makeMirror places each leg on a separate drive, its metadata first.
func (c *command) makeMirror(v *lv) error {
	legs := 2
	if c.Has("mirrors") {
		n, err := strconv.Atoi(c.Set["mirrors"])
		if err != nil || n < 1 {
			return misused("Invalid argument for --mirrors: %s", c.Set["mirrors"])
		}
		legs = n + 1
	}
	pvs, err := c.usable(v.group, c.Words[1:])
	if err != nil {
		return err
	}
	for range legs {
		i := slices.IndexFunc(pvs, func(p *pv) bool { return v.group.take(v.extents+1, []*pv{p}) != nil })
		if i < 0 {
			v.group.forget(v.parts()...)
			return said("Insufficient suitable allocatable extents for logical volume %s: %d more required", v.name, v.extents+1)
		}
		v.leg(pvs[i], len(v.images))
		v.metas[len(v.metas)-1].tags = v.tags // as LVM does
		pvs = slices.Delete(slices.Clone(pvs), i, i+1)
	}
	v.group.add(v)
	return nil
}

// leg creates leg i of a mirror on a physical volume with room for it.
func (v *lv) leg(p *pv, i int) {
	g := v.group
	meta := g.add(&lv{group: g, name: v.sub("rmeta", i), parent: v, part: "rmeta", kind: "linear", extents: 1, areas: g.take(1, []*pv{p})})
	image := g.add(&lv{group: g, name: v.sub("rimage", i), parent: v, part: "rimage", kind: "linear", extents: v.extents, areas: g.take(v.extents, []*pv{p})})
	if i == len(v.images) {
		v.images, v.metas, v.failed, v.fresh = append(v.images, nil), append(v.metas, nil), append(v.failed, false), append(v.fresh, true)
	}
	v.images[i], v.metas[i] = image, meta
	v.failed[i], v.fresh[i] = i > 0, true
}

// makePool creates a thin pool: its metadata, its data, and a spare for the metadata.
func (c *command) makePool(v *lv) error {
	g := v.group
	metadata := uint64(0)
	if c.Has("poolmetadatasize") {
		var err error
		if metadata, err = parseSize(c.Set["poolmetadatasize"]); err != nil {
			return err
		}
	} else {
		metadata = max(v.size()/chunkSize*64, 2<<20) // 64 bytes for each chunk (lvmthin(7))
	}
	more := max((metadata+g.extent-1)/g.extent, 1)
	pvs, err := c.usable(g, c.Words[1:])
	if err != nil {
		return err
	}
	spare := g.spare()
	need := v.extents + more
	if spare == nil {
		need += more
	}
	if g.room(pvs) < need {
		_, err := g.lay(need, pvs)
		return err
	}
	if spare == nil {
		g.add(&lv{group: g, name: "lvol0_pmspare", part: "spare", kind: "linear", extents: more, areas: g.take(more, pvs)})
	}
	v.data = g.add(&lv{group: g, name: v.sub("tdata", -1), parent: v, part: "tdata", kind: "linear", extents: v.extents, areas: g.take(v.extents, pvs)})
	v.meta = g.add(&lv{group: g, name: v.sub("tmeta", -1), parent: v, part: "tmeta", kind: "linear", extents: more, areas: g.take(more, pvs)})
	v.failFull, v.unzeroed = c.Set["errorwhenfull"] == "y", c.Set["zero"] == "n"
	g.add(v)
	return nil
}

// spare returns the spare metadata volume of the group.
func (g *group) spare() *lv {
	if i := slices.IndexFunc(g.lvs, func(v *lv) bool { return v.part == "spare" }); i >= 0 {
		return g.lvs[i]
	}
	return nil
}

func (c *command) makeThin(v *lv) error {
	pool := v.group.lv(c.Set["thinpool"])
	if pool == nil || pool.kind != "thin-pool" {
		return said("Failed to find logical volume \"%s/%s\"", v.group.name, c.Set["thinpool"])
	}
	v.pool = pool
	v.group.add(v)
	return nil
}

// snapshot creates a snapshot of a volume. One of a thin volume shares its chunks; another one has space of its own, for what is written
// to the volume after it: it does not show the old data here.
func (c *command) snapshot() error {
	origin, err := c.volume(c.Words[0])
	if err != nil {
		return err
	}
	if err := c.fresh(origin.group); err != nil {
		return err
	}
	if origin.kind != "thin" {
		bytes, err := parseSize(c.Set["size"])
		if err != nil || bytes == 0 {
			return misused("Please specify either size or extents with snapshots.")
		}
		v := &lv{group: origin.group, name: c.Set["name"], kind: "linear", tags: c.All["addtag"], origin: origin, extents: (bytes + origin.group.extent - 1) / origin.group.extent}
		if err := c.makeLinear(v); err != nil {
			return err
		}
		return c.finish(v)
	}
	v := &lv{name: c.Set["name"], kind: "thin", tags: c.All["addtag"], extents: origin.extents, pool: origin.pool, origin: origin,
		readOnly: c.Set["permission"] == "r", skip: c.Set["setactivationskip"] != "n", chunks: maps.Clone(origin.chunks)}
	for _, x := range v.chunks {
		x.refs++
	}
	origin.group.add(v)
	return c.finish(v)
}
