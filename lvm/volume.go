package lvm

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/drivebay/drivebay"
)

// Volume is a logical volume to be made.
type Volume struct {
	Group, Name string
	Size        uint64 // bytes; LVM rounds up to whole extents
	Tags        []string
	PVs         []string // UUIDs of the physical volumes to use; none: LVM chooses
}

func (v Volume) path() string { return v.Group + "/" + v.Name }

func (v Volume) check() error {
	if err := CheckNames(v.Group, v.Name); err != nil {
		return err
	}
	if v.Size == 0 || v.Size > 1<<60 {
		return fmt.Errorf("logical volume %s: %w: size of %d bytes", v.path(), drivebay.ErrInvalid, v.Size)
	}
	return checkTags(v.Tags)
}

// CreateLinear plans a volume that uses its drives one after the other.
func CreateLinear(v Volume) ([]Step, error) {
	return v.create("linear", v.size(), []string{"--wipesignatures", "y", "--zero", "y"})
}

// CreateMirror plans a volume with the same data on each of its drives. It is
// synchronized from the start: both legs read the same.
func CreateMirror(v Volume) ([]Step, error) {
	if len(v.PVs) < 2 {
		return nil, fmt.Errorf("logical volume %s: %w: a mirror requires two drives", v.path(), drivebay.ErrInvalid)
	}
	return v.create("raid1", v.size(), []string{"--mirrors", strconv.Itoa(len(v.PVs) - 1), "--wipesignatures", "y", "--zero", "y"})
}

// CreatePool plans a thin pool that zeroes blocks before a volume sees them, and that returns
// ENOSPC at once when it is full. By default the kernel delays writes for a minute and then
// fails them anyway (lvmthin(7)).
func CreatePool(v Volume, metadata uint64) ([]Step, error) {
	argv := []string{"--zero", "y"}
	if metadata > 0 {
		argv = append(argv, "--poolmetadatasize", bytes(metadata))
	}
	steps, err := v.create("thin-pool", v.size(), argv)
	if err != nil {
		return nil, err
	}
	fail := Step{
		Name: "let thin pool " + v.path() + " fail writes when it is full",
		Argv: []string{"lvchange", "--errorwhenfull", "y", v.path()},
		Done: func(r *Report) bool { lv := r.LV(v.Group, v.Name); return lv != nil && lv.ErrorWhenFull },
	}
	steps = slices.Insert(steps, len(steps)-1, fail, ZeroBlocks(v.Group, v.Name))
	return slices.Insert(steps, 1, ClearLeftovers(v.Group, v.Name, metadata)...), nil // after a half-made pool is removed
}

// ZeroBlocks plans that a thin pool zeroes a block before a volume sees it.
func ZeroBlocks(group, pool string) Step {
	path := group + "/" + pool
	return Step{
		Name: "let thin pool " + path + " zero blocks before a volume sees them",
		Argv: []string{"lvchange", "--zero", "y", path},
		Done: func(r *Report) bool { lv := r.LV(group, pool); return lv != nil && lv.ZeroesBlocks() },
	}
}

// CreateThin plans a thin volume in a pool.
func CreateThin(v Volume, pool string) ([]Step, error) {
	return v.create("thin", []string{"--virtualsize", bytes(v.Size)}, []string{"--thinpool", pool})
}

// Snapshot plans a snapshot of a thin volume, read-only and inactive; it ignores
// v.Size.
func Snapshot(v Volume, origin string) ([]Step, error) {
	v.Size = 1
	return v.create("", nil, []string{"--snapshot", "--permission", "r", "--setactivationskip", "y", v.Group + "/" + origin})
}

// Clone plans a writable copy of a thin volume or snapshot.
func Clone(v Volume, origin string) ([]Step, error) {
	v.Size = 1
	return v.create("", nil, []string{"--snapshot", "--permission", "rw", "--setactivationskip", "n", v.Group + "/" + origin})
}

func (v Volume) size() []string { return []string{"--size", bytes(v.Size)} }

func bytes(n uint64) string { return strconv.FormatUint(n, 10) + "b" }

// create plans a volume of a type; "" is a thin copy. LVM commits a new volume before
// it wipes it: a volume that still has the tag making was interrupted, holds no data,
// and is made again.
func (v Volume) create(kind string, size, more []string) ([]Step, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	argv := []string{"lvcreate", "--yes", "--name", v.Name}
	if kind != "" {
		argv = append(argv, "--type", kind)
	}
	argv = command(argv, size, tagArgs(slices.Concat([]string{Tag, making}, v.Tags)...), more)
	if kind == "linear" || kind == "raid1" || kind == "thin-pool" {
		argv = command(argv, []string{v.Group}, pvArgs(v.PVs))
	} else if kind == "thin" {
		argv = append(argv, v.Group)
	}
	want := kind
	if want == "" {
		want = "thin"
	}
	right := func(lv *LV) bool { return lv.Type == want && lv.Size >= v.Size }
	half := func(r *Report) bool { return hasTag(r.LV(v.Group, v.Name), making) }
	return []Step{{
		Name: "clear a half-made volume " + v.path(),
		Argv: []string{"lvremove", "--yes", v.path()},
		Done: func(r *Report) bool { return !half(r) },
	}, {
		Name: "create volume " + v.path(),
		Argv: argv,
		Done: func(r *Report) bool { lv := r.LV(v.Group, v.Name); return lv != nil && right(lv) },
		May: func(r *Report) error {
			if lv := r.LV(v.Group, v.Name); lv != nil {
				return fmt.Errorf("logical volume %s: %w: type %s, %d bytes", v.path(), ErrExists, lv.Type, lv.Size)
			}
			return nil
		},
		Allocates: kind == "linear" || kind == "raid1" || kind == "thin-pool",
	}, {
		Name: "finish volume " + v.path(),
		Argv: []string{"lvchange", "--deltag", making, v.path()},
		Done: func(r *Report) bool { return r.LV(v.Group, v.Name) != nil && !half(r) },
	}}, nil
}

func hasTag(lv *LV, tag string) bool { return lv != nil && slices.Contains(lv.Tags, tag) }

// Extend plans to grow a volume to at least a size; pvs as in Volume.PVs.
func Extend(group, name string, size uint64, pvs ...string) []Step {
	path := group + "/" + name
	return []Step{{
		Name: "extend volume " + path,
		Argv: command([]string{"lvextend", "--size", bytes(size), path}, pvArgs(pvs)),
		Done: func(r *Report) bool { lv := r.LV(group, name); return lv != nil && lv.Size >= size },
		May:  func(r *Report) error { return r.Group(group).MayExtend(name) },

		Allocates: true,
	}}
}

// ExtendOver plans to grow a volume to at least a size on the given extents only.
func ExtendOver(group, name string, size uint64, extents []Allocation) []Step {
	steps := Extend(group, name, size)
	steps[0].Argv = append(steps[0].Argv, extentArgs(extents)...)
	return steps
}

// ExtendMetadata plans to grow the metadata of a thin pool to at least a size. A pool that
// has run out of metadata then accepts writes again. The spare that LVM keeps for a repair
// grows along where there is space; without space LVM skips it (2.03.16, tried).
func ExtendMetadata(group, pool string, size uint64) []Step {
	path := group + "/" + pool
	return []Step{{
		Name: "extend the metadata of thin pool " + path,
		Argv: []string{"lvextend", "--poolmetadatasize", bytes(size), path},
		Done: func(r *Report) bool { lv := r.Group(group).Metadata(pool); return lv != nil && lv.Size >= size },

		Allocates: true,
	}}
}

// Remove plans to remove a volume; LVM refuses one that is open. With it, LVM removes the snapshots of a volume
// that is not thin, and the volumes of a thin pool (lvremove(8); 2.03.16, tried): as long as there are such, it is kept.
func Remove(group, name string) []Step {
	path := group + "/" + name
	return []Step{{
		Name: "remove volume " + path,
		Argv: []string{"lvremove", "--yes", path},
		Done: func(r *Report) bool { return r.LV(group, name) == nil },
		May: func(r *Report) error {
			g := r.Group(group)
			if g == nil { // it does not show that the volume is gone
				return fmt.Errorf("volume group %s: %w", group, ErrNotFound)
			}
			return g.MayRemove(name)
		},
	}}
}

// MayRemove refuses a thin pool that has volumes, and a volume of which another program made a snapshot.
func (g *Group) MayRemove(name string) error {
	if i := slices.IndexFunc(g.LVs, func(lv LV) bool { return lv.Pool == name }); i >= 0 {
		return fmt.Errorf("thin pool %s/%s: %w: it has the logical volume %s", g.Name, name, ErrInUse, g.LVs[i].Name)
	}
	return g.noSnapshot(name)
}

// MayExtend refuses a volume that is not thin and of which another program made a snapshot: LVM resizes it only
// while it is inactive (2.03.16, tried).
func (g *Group) MayExtend(name string) error {
	if g == nil {
		return nil
	}
	if lv := g.LV(name); lv == nil || lv.Type == "thin" {
		return nil
	}
	return g.noSnapshot(name)
}

// noSnapshot refuses a volume of which another program made a snapshot.
func (g *Group) noSnapshot(name string) error {
	i := slices.IndexFunc(g.LVs, func(lv LV) bool { return lv.Origin == name && lv.Parent == "" && !hasTag(&lv, Tag) })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("logical volume %s/%s: %w: another program made a snapshot of it, which has its data: `lvremove %[1]s/%s`, and then try again",
		g.Name, name, drivebay.ErrRefused, g.LVs[i].Name)
}

// Activate plans to activate a volume, also a snapshot, which LVM skips otherwise. It
// resumes a volume that an interrupted command left suspended.
func Activate(group, name string) []Step {
	path := group + "/" + name
	return []Step{{
		Name: "activate volume " + path,
		Argv: []string{"lvchange", "--activate", "y", "--ignoreactivationskip", path},
		Done: func(r *Report) bool { lv := r.LV(group, name); return lv != nil && lv.Active },
	}, {
		Name: "resume volume " + path,
		Argv: []string{"lvchange", "--refresh", path},
		Done: func(r *Report) bool { lv := r.LV(group, name); return lv != nil && !lv.Suspended },
	}}
}

// ActivateWhole is Activate for a volume of which LVM has to see all parts. By default LVM activates
// a mirror without a leg that it does not see (lvmraid(7), "activation mode").
func ActivateWhole(group, name string) []Step {
	plan := Activate(group, name)
	plan[0].Argv = slices.Insert(plan[0].Argv, 1, "--activationmode", "complete")
	return plan
}

// Refresh plans to load the tables of an active volume again. When a drive was absent and is
// back, the tables still refer to the old device, which no report shows. The refresh makes a
// mirror use the leg on that drive again and copy what the leg missed.
func Refresh(group, name string) []Step {
	path := group + "/" + name
	return []Step{{
		Name:   "refresh volume " + path,
		Argv:   []string{"lvchange", "--refresh", path},
		Always: true,
		Done: func(r *Report) bool {
			lv := r.LV(group, name)
			return lv != nil && lv.Active && !lv.Suspended && lv.Health != "refresh needed"
		},
	}}
}

// Deactivate plans to remove a volume's device; LVM refuses one that is open.
func Deactivate(group, name string) []Step {
	path := group + "/" + name
	return []Step{{
		Name: "deactivate volume " + path,
		Argv: []string{"lvchange", "--activate", "n", path},
		Done: func(r *Report) bool { lv := r.LV(group, name); return lv != nil && !lv.Active },
	}}
}

// TagVolume plans to change a volume's tags.
func TagVolume(group, name string, add, del []string) ([]Step, error) {
	return retag("lvchange", group+"/"+name, add, del, func(r *Report) ([]string, bool) {
		if lv := r.LV(group, name); lv != nil {
			return lv.Tags, true
		}
		return nil, false
	})
}
