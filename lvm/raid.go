package lvm

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// How LVM and the kernel treat the legs of a mirror, tried with Linux 6.1 and lvm2 2.03.16
// (drivers/md/dm-raid.c, analyse_superblocks, super_init_validation):
//
//   - The kernel uses a leg whose drive was absent for a while like any other leg. LVM marks
//     a physical volume as missing only when the group is changed without it. So LVM
//     activates a mirror whose other drive is gone from a leg whose data may be days old.
//   - With both legs present, the kernel copies the leg whose superblock has more events to
//     the other. If each leg was used without the other, the leg that was activated more
//     often is copied, not the leg that was written last.
//   - A leg that is activated alone records that in its superblock when it is deactivated,
//     not before.
//   - "lvchange --rebuild" of a leg, while the mirror is active without it, copies in the
//     wrong direction: the table is loaded twice, and the second time without "rebuild".
//   - "lvconvert --mirrors 0" and then "--mirrors 1" compare no superblocks: LVM removes the
//     leg and makes it again from the other one. That works while the volume is in use.

// Leg is a leg of a mirror, or of a volume without one.
type Leg struct {
	PV   string      // UUID
	Meta *Allocation // of its superblock; nil: it has none
}

// Legs returns the legs of a volume, in the kernel's order.
func (g *Group) Legs(name string) []Leg {
	lv := g.LV(name)
	switch {
	case lv == nil:
		return nil
	case lv.Type != "raid1":
		var out []Leg
		for _, x := range lv.Extents {
			if !slices.ContainsFunc(out, func(l Leg) bool { return l.PV == x.PV }) {
				out = append(out, Leg{PV: x.PV})
			}
		}
		return out
	}
	var out []Leg
	for _, s := range lv.Segments {
		for _, on := range s.On {
			image, meta := g.LV(on), g.LV(strings.Replace(on, "_rimage_", "_rmeta_", 1))
			if image == nil || len(image.Extents) == 0 {
				return nil
			}
			leg := Leg{PV: image.Extents[0].PV}
			if meta != nil && meta != image && len(meta.Extents) > 0 {
				leg.Meta = &meta.Extents[0]
			}
			out = append(out, leg)
		}
	}
	return out
}

// Superblock is the kernel's record about a leg: struct dm_raid_superblock in
// drivers/md/dm-raid.c.
type Superblock struct {
	Position int    // of the leg
	Events   uint64 // grows with each change
	Failed   uint64 // a bit for each leg that is left out
	Whole    bool   // the leg is complete, as far as it knows
}

// SuperblockSize is how many bytes of the metadata of a leg are read.
const SuperblockSize = 4096

// ParseSuperblock reads the superblock at the start of the metadata of a leg.
func ParseSuperblock(b []byte) (Superblock, error) {
	const magic = 0x64526d44 // "DmRd"
	le := binary.LittleEndian
	if len(b) < 64 || le.Uint32(b) != magic {
		return Superblock{}, fmt.Errorf("superblock of a mirror: %w: no dm-raid magic", drivebay.ErrInvalid)
	}
	return Superblock{Position: int(le.Uint32(b[12:])), Events: le.Uint64(b[16:]), Failed: le.Uint64(b[24:]), Whole: le.Uint64(b[32:]) == ^uint64(0)}, nil
}

// LeftOut reports whether the superblock records use without the leg at position.
func (s Superblock) LeftOut(position int) bool { return position < 64 && s.Failed>>position&1 == 1 }

// RemakeLeg plans to make one leg of a mirror again from the other one, which has to be
// active.
func RemakeLeg(group, name, pv string) []Step {
	path := group + "/" + name
	has := func(r *Report) (lv *LV, on bool) {
		if g := r.Group(group); g != nil && g.LV(name) != nil {
			return g.LV(name), slices.Contains(g.PhysicalVolumesOf(name), pv)
		}
		return nil, false
	}
	serves := func(r *Report) error {
		lv, _ := has(r)
		if lv == nil || !lv.Active {
			return fmt.Errorf("mirror %s: %w: not active", path, drivebay.ErrRefused)
		}
		return nil
	}
	return []Step{{
		Name: fmt.Sprintf("take the leg on physical volume %s out of mirror %s", pv, path),
		Argv: []string{"lvconvert", "--yes", "--mirrors", "0", path, pvArg(pv)},
		May:  serves,
		Done: func(r *Report) bool { lv, on := has(r); return lv != nil && !on },
	}, AddLeg(group, name, pv)}
}

// AddLeg plans a second leg for a volume with one leg.
func AddLeg(group, name, pv string) Step {
	path := group + "/" + name
	return Step{
		Name: fmt.Sprintf("make a leg of mirror %s on physical volume %s", path, pv),
		Argv: []string{"lvconvert", "--yes", "--type", "raid1", "--mirrors", "1", path, pvArg(pv)},
		May: func(r *Report) error {
			g := r.Group(group)
			if g == nil || g.LV(name) == nil {
				return fmt.Errorf("mirror %s: %w", path, ErrNotFound)
			}
			if slices.Contains(g.PhysicalVolumesOf(name), pv) {
				return fmt.Errorf("mirror %s: a leg is still on physical volume %s", path, pv)
			}
			return nil
		},
		Done: func(r *Report) bool {
			g := r.Group(group)
			return g != nil && g.LV(name) != nil && g.LV(name).Type == "raid1" && slices.Contains(g.PhysicalVolumesOf(name), pv)
		},
	}
}
