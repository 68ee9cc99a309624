package lvm

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/content"
	"github.com/drivebay/drivebay/internal/hostsim/internal/program"
)

// scan is what a command finds on the devices that it may use.
type scan struct {
	*program.Process
	program.Flags
	m       *State
	devices []*block.Device          // devices that it may use
	on      map[string]*block.Device // physical volumes that it found, by UUID
	unread  map[string]bool          // physical volumes with unreadable metadata of their group
	twice   map[string]bool          // physical volumes that it found on more than one device
	again   bool                     // a second scan was made
}

func newScan(s *State, p *program.Process) *scan {
	return &scan{Process: p, m: s, on: map[string]*block.Device{}, unread: map[string]bool{}, twice: map[string]bool{}}
}

// readLabels reads the labels on the devices that the command may use: those of --devices, or all. It
// ignores unreadable devices.
func (c *scan) readLabels() {
	c.m.Mu.RLock()
	var names []string
	for name := range c.m.Blocks {
		names = append(names, "/dev/"+name)
	}
	c.m.Mu.RUnlock()
	slices.Sort(names)
	if listed := c.All["devices"]; len(listed) > 0 {
		names = nil
		for _, one := range listed {
			names = append(names, strings.Split(one, ",")...)
		}
	}
	for _, name := range names {
		dev := c.Device(name)
		if dev == nil {
			c.Complain("  WARNING: Device %s not found.", name)
			continue
		}
		err := dev.Do(c.Ctx, block.Access{N: 4096}, func() error {
			c.see(dev)
			return nil
		})
		if err != nil {
			c.Complain("  Error reading device %s at 0 length 4096.", name)
		}
	}
	c.m.Mu.Lock()
	defer c.m.Mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.on)) {
		c.checkMetadata(c.m.physical[id], c.on[id])
	}
}

// see adds a device to the scan.
func (c *scan) see(dev *block.Device) {
	c.devices = append(c.devices, dev)
	b := make([]byte, 512)
	if dev.Read(b, 512); string(b[:8]) != "LABELONE" || binary.LittleEndian.Uint32(b[16:]) != content.LVMCRC(b[20:]) || !plainID(b[32:64]) {
		return
	}
	id := dashed(string(b[32:64]))
	if first := c.on[id]; first != nil && first != dev {
		c.twice[id] = true
		var why string
		first, dev, why = c.preferred(id, first, dev)
		c.Complain("  WARNING: Not using device /dev/%s for PV %s.\n  WARNING: PV %s prefers device /dev/%s because %s.", dev.Name, id, id, first.Name, why)
		dev = first
	}
	c.on[id] = dev
	if c.m.physical[id] == nil { // a label without metadata
		c.m.physical[id] = &pv{uuid: id, size: dev.Length(), start: 1 << 20}
	}
}

func plainID(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// preferred returns the one of two devices with the same UUID that LVM uses, the other one, and why
// (lvm2, lib/cache/lvmcache.c, _choose_duplicates; seen with 2.03.16): the one that a logical volume
// uses, then the one with the name in the metadata, then the first.
func (c *scan) preferred(id string, first, second *block.Device) (use, other *block.Device, why string) {
	hint := ""
	if p := c.m.physical[id]; p != nil {
		hint = p.hint
	}
	switch {
	case first.Busy() != second.Busy():
		if why = "device is used by LV"; second.Busy() {
			return second, first, why
		}
	case first.Name == hint || second.Name == hint:
		if why = "device name matches previous"; second.Name == hint {
			return second, first, why
		}
	}
	return first, second, cmp.Or(why, "device was seen first")
}

// groups returns the volume groups with a readable physical volume, by name.
func (c *scan) groups() []*group {
	var list []*group
	for id := range c.on {
		if g := c.m.physical[id].group; g != nil && !c.unread[id] && !slices.Contains(list, g) {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *group) int { return strings.Compare(a.name+a.uuid, b.name+b.uuid) })
	return list
}

// group returns the volume group with the name.
func (c *scan) group(name string) (*group, error) {
	var hit *group
	for _, g := range c.groups() {
		if g.name == name {
			if hit != nil {
				return nil, said("Multiple VGs found with the same name: skipping %s\nUse --select vg_uuid=<uuid> in place of the VG name.", name)
			}
			hit = g
		}
	}
	if hit == nil {
		return nil, said("Volume group \"%s\" not found\nCannot process volume group %s", name, name)
	}
	if hit.exported && c.Argv[1] != "vgimport" {
		return nil, said("Volume group %s is exported", name)
	}
	return hit, nil
}

// volume returns a logical volume by "GROUP/NAME".
func (c *scan) volume(path string) (*lv, error) {
	name, short, _ := strings.Cut(path, "/")
	g, err := c.group(name)
	if err != nil {
		return nil, err
	}
	if v := g.lv(short); v != nil {
		return v, nil
	}
	return nil, said("Failed to find logical volume \"%s\"", path)
}

// named returns the physical volumes of a group that the command names by device, with or without
// extents: "/dev/sda:0-9:20-29".
func (c *scan) named(g *group, names []string) ([]*pv, error) {
	var list []*pv
	for _, name := range names {
		name, extents, _ := strings.Cut(name, ":")
		p := c.at(name)
		if p == nil || p.group != g {
			return nil, said("Physical Volume \"%s\" not found in Volume Group \"%s\".", name, g.name)
		}
		for _, text := range strings.FieldsFunc(extents, func(r rune) bool { return r == ':' }) {
			first, last, ranged := strings.Cut(text, "-")
			from, err := strconv.ParseUint(first, 10, 32)
			to, err2 := strconv.ParseUint(last, 10, 32)
			if err != nil || err2 != nil || !ranged || to < from {
				return nil, said("Physical extent parsing error at %s", text)
			}
			p.only = append(p.only, area{p, from, to - from + 1})
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list, nil
}

// forgetNamed clears the extents that a command named.
func (c *scan) forgetNamed() {
	for _, p := range c.m.physical {
		p.only = nil
	}
}

// at returns the physical volume on a device, nil without one.
func (c *scan) at(name string) *pv {
	dev := c.m.Lookup(name)
	for id, d := range c.on {
		if d == dev {
			return c.m.physical[id]
		}
	}
	return nil
}

// usable returns the physical volumes where extents can be allocated: those named, or all of the
// group.
func (c *scan) usable(g *group, names []string) ([]*pv, error) {
	list, err := c.named(g, names)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		list = slices.Clone(g.pvs)
	}
	return slices.DeleteFunc(list, func(p *pv) bool { return p.missing || c.on[p.uuid] == nil }), nil
}

// missing reports whether a physical volume is absent, or marked missing in the metadata.
func (c *scan) missing(p *pv) bool { return p.missing || c.on[p.uuid] == nil }
