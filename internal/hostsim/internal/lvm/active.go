package lvm

import (
	"slices"
	"strings"
	"time"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
)

// activate creates the devices of a volume, those of its parts first.
func (c *command) activate(v *lv) error {
	if v.dev != nil || v.part == "spare" {
		return nil
	}
	if c.Set["activationmode"] == "complete" && v.kind == "raid1" && c.health(v) == "partial" {
		return said("Refusing activation of partial LV %s.  Try '--activationmode degraded'.", v.path())
	}
	if v.pool != nil {
		if err := c.activate(v.pool); err != nil {
			return err
		}
	}
	for _, p := range v.parts() {
		if err := c.activate(p); err != nil {
			return err
		}
	}
	if !c.whole(v) && v.kind == "linear" && (v.parent == nil || v.parent.kind != "raid1") {
		return said("Refusing activation of partial LV %s.  Use '--activationmode partial' to override.", v.path())
	}
	data, below := c.table(v)
	for _, d := range below {
		if d.Alone || d.Mounted {
			return said("device-mapper: reload ioctl on %s failed: Device or resource busy", mapperName(v.group.name, v.name))
		}
	}
	v.dev = c.m.newMapped(v, data, below)
	v.dev.ReadOnly = v.readOnly
	if v.kind == "raid1" {
		v.assemble()
	}
	if x := v.group.move; x != nil && (x.moves(v) && x.since.IsZero() || v.pool != nil && x.moves(v.pool.data)) {
		x.begin("", c.m.Clock.Now())
	}
	return nil
}

// whole reports whether all physical volumes of a linear volume are present.
func (c *scan) whole(v *lv) bool {
	return !slices.ContainsFunc(v.areas, func(a area) bool { return c.missing(a.pv) })
}

// table returns the backing of a volume's device, and the devices below.
func (c *scan) table(v *lv) (data block.Backing, below []*block.Device) {
	switch v.kind {
	case "raid1":
		r := &mirrorOf{lv: v}
		for i := range v.images {
			r.legs = append(r.legs, v.images[i].dev)
			below = append(below, v.metas[i].dev, v.images[i].dev)
		}
		return r, below
	case "thin-pool":
		return pooled{v.data.dev}, []*block.Device{v.meta.dev, v.data.dev}
	case "thin":
		return thin{v}, []*block.Device{v.pool.dev}
	}
	l := &block.Linear{}
	at := uint64(0)
	for _, a := range v.areas {
		r := block.Run{At: at, N: a.n * v.group.extent, Off: a.pv.start + a.start*v.group.extent}
		if !c.missing(a.pv) {
			r.Dev = c.on[a.pv.uuid]
			below = append(below, r.Dev)
		}
		l.Runs = append(l.Runs, r)
		at += r.N
	}
	return l, below
}

// reload updates the tables of an active volume for new extents or drives that came back.
func (c *command) reload(v *lv) {
	for _, p := range v.parts() {
		c.reload(p)
	}
	if v.dev == nil {
		return
	}
	data, below := c.table(v)
	v.dev.Data = data
	v.dev.Mapped.Hold(below)
	v.dev.ReadOnly = v.readOnly
	v.dev.Event("change")
	if v.kind == "raid1" {
		v.assemble()
	}
}

// deactivate removes the devices of a volume.
func (c *command) deactivate(v *lv) {
	if v.dev != nil {
		if v.kind == "raid1" {
			v.writeSuperblocks()
		}
		v.dev.Unmap()
		v.dev = nil
		if x := v.group.move; x != nil && x.moves(v) {
			x.begin("", time.Time{})
		}
	}
	for _, p := range v.parts() {
		c.deactivate(p)
	}
}

// inUse returns LVM's error for an active volume that is in use.
func (v *lv) inUse() error {
	switch {
	case v.dev == nil:
		return nil
	case v.dev.Mounted:
		return said("Logical volume %s contains a filesystem in use.", v.path())
	case len(v.dev.Above) > 0:
		return said("Logical volume %s is used by another device.", v.path())
	case v.dev.Handles > 0:
		return said("Logical volume %s in use.", v.path())
	}
	return nil
}

// locked returns an error for a volume that is being moved, or a part of it is. Thin volumes are not
// locked while their pool moves.
func (v *lv) locked() error {
	if v.group.move != nil && slices.ContainsFunc(append(v.parts(), v), v.group.move.moves) {
		return said("Can't change locked LV %s.", v.path())
	}
	return nil
}

// mapperName returns device-mapper's name for a volume, with hyphens doubled (lvm2, dm_build_dm_name).
func mapperName(group, volume string) string {
	double := func(s string) string { return strings.ReplaceAll(s, "-", "--") }
	return double(group) + "-" + double(volume)
}

// newMapped adds the device of a logical volume.
func (s *State) newMapped(v *lv, data block.Backing, below []*block.Device) *block.Device {
	return s.MapDevice(block.Mapped{Volume: &block.VolumeName{Group: v.group.name, Name: v.name, Visible: v.visible()}, Title: mapperName(v.group.name, v.name), UUID: mapperUUID(v)}, data, below)
}

// mapperUUID returns device-mapper's UUID of a volume (lvm2, build_dm_uuid).
func mapperUUID(v *lv) string {
	suffix := ""
	if v.kind == "thin-pool" {
		suffix = "-tpool"
	}
	return "LVM-" + strings.ReplaceAll(v.group.uuid+v.uuid, "-", "") + suffix
}
