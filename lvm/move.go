package lvm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// How LVM moves a volume that is in use, tried with lvm2 2.03.16 on Linux 6.1:
//
//   - pvmove puts a mirror below the volume, lets the kernel copy, and removes the mirror
//     when all is copied. It holds the lock of the group only at the start and at the end.
//     In between, LVM can activate, create, extend and remove other volumes of the group.
//     For the moving volume LVM reports "Can't resize locked" and "Can't remove locked". In
//     a thin pool that moves, volumes and snapshots can be created, extended and removed.
//   - While a whole group moves, "lvchange -an" of one volume removes the devices of all
//     volumes that are not open. So one volume is moved at a time.
//   - When pvmove is killed, the kernel continues the copy; pvmove without a volume continues
//     the move that it finds. After a power loss the activation of the volume restores the
//     mirror, and the copy starts again.
//   - The kernel does NOT copy sectors that cannot be read, and pvmove prints "Moved: 100.00%"
//     and succeeds: the kernel's mirror has no "handle_errors". Only the status of the mirror
//     shows the failure (dmsetup status: S, a sync that failed; D, a write that failed). So
//     StartMove never ends a move: EndMove does, once all is copied and both legs are sound.
//   - pvmove --abort fails the writes that wait in the mirror: see RevertToSource.
//   - While a drive of the group is missing, a move can be neither ended nor aborted; the
//     volume stays usable on the leg that is present.

// PVMove is a move of one volume, or thin pool, between physical volumes.
type PVMove struct{ Group, Volume, From, To string }

// pollInterval is how many seconds pvmove waits between checks of the move that it started:
// 30 days. With "+" it waits before the first check, too.
const pollInterval = "+2592000"

// StartMove starts pvmove. It returns when pvmove fails, or when ctx ends; the caller ends ctx
// once a report shows the move: LVM has released the lock by then, and killing pvmove loses
// nothing.
func (s *System) StartMove(ctx context.Context, devices []string, m PVMove) error {
	r, err := s.Read(ctx, devices)
	if err != nil {
		return err
	}
	if err := requireOurs(r, m.Group); err != nil {
		return err
	}
	command, err := expand(r, []string{"pvmove", "--atomic", "--interval", pollInterval, "--name", m.Volume, pvArg(m.From), pvArg(m.To)})
	if err != nil {
		return err
	}
	if _, err = s.run(ctx, devices, command); err != nil {
		return fmt.Errorf("move volume %s/%s: %w", m.Group, m.Volume, err)
	}
	return nil
}

// EndMove plans to end a move whose data is copied completely.
func EndMove(group, from string) []Step {
	return []Step{{
		Name: "end the move from physical volume " + from,
		Argv: []string{"pvmove", "--interval", "1", pvArg(from)},
		Done: func(r *Report) bool { g := r.Group(group); return g != nil && g.Move(from) == nil },

		Polls: true,
	}}
}

// AbortMove plans to abort a move: the volume stays on the physical volume that it moved from.
func AbortMove(group, from string) []Step {
	return []Step{{
		Name: "take back the move from physical volume " + from,
		Argv: []string{"pvmove", "--abort", pvArg(from)},
		Done: func(r *Report) bool { g := r.Group(group); return g != nil && g.Move(from) == nil },
	}}
}

// Copy is the progress of the kernel's copy between the legs of a volume.
type Copy struct {
	Done, Total uint64 // in regions of the kernel
	Legs        string // one letter per leg, A is sound: Documentation/admin-guide/device-mapper
}

// Unread reports whether the kernel failed to read the first leg, the source of the copy.
func (c Copy) Unread() bool { return c.Legs != "" && strings.Trim(c.Legs[:1], "AaDF") != "" }

// Whole reports whether, as far as the kernel knows, each leg has all data.
func (c Copy) Whole() bool { return c.Done == c.Total && strings.Trim(c.Legs, "A") == "" }

// Unwritten returns the number, from 0, of the leg that failed a write; -1 if no leg did.
func (c Copy) Unwritten() int {
	if c.Legs != "" && strings.Trim(c.Legs[1:], "Aa") != "" {
		return 1
	}
	return strings.IndexAny(c.Legs, "DF")
}

// Part returns the share that is copied, from 0 to 1.
func (c Copy) Part() float64 {
	if c.Total == 0 {
		return 0
	}
	return float64(c.Done) / float64(c.Total)
}

// CopyProgress returns the kernel's progress for a volume with legs. It sends the drives no
// request. An inactive volume is ErrNotFound.
func (s *System) CopyProgress(ctx context.Context, group, volume string) (Copy, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	out, err := s.dmsetup(ctx, "status", MapperName(group, volume))
	if err != nil {
		return Copy{}, fmt.Errorf("volume %s/%s: read the progress of the copy: %w", group, volume, err)
	}
	return parseCopy(string(out))
}

// parseCopy reads a status of dm-mirror ("0 409600 mirror 2 253:0 253:1 60/100 1 AD 1
// core", dm-raid1.c) or of dm-raid ("0 327680 raid raid1 2 Aa 4096/327680 recover 0 0 -",
// dm-raid.rst).
func parseCopy(text string) (Copy, error) {
	var c Copy
	f := strings.Fields(text)
	at := slices.IndexFunc(f, func(w string) bool { n, _ := fmt.Sscanf(w, "%d/%d", &c.Done, &c.Total); return n == 2 })
	switch {
	case at > 4 && f[2] == "mirror" && at+2 < len(f):
		c.Legs = f[at+2]
	case at > 4 && f[2] == "raid":
		c.Legs = f[at-1]
	default:
		return c, fmt.Errorf("%w: not the status of a mirror: %q", drivebay.ErrInvalid, strings.TrimSpace(text))
	}
	return c, nil
}

// VolumesOn returns the volumes that have extents on a physical volume, sorted by name; for a
// hidden part, the volume it belongs to. It leaves out moves.
func (g *Group) VolumesOn(pv string) []string {
	var out []string
	for i := range g.LVs {
		lv := &g.LVs[i]
		if !slices.ContainsFunc(lv.Extents, func(x Allocation) bool { return x.PV == pv }) {
			continue
		}
		for top := g.LV(lv.Parent); top != nil; top = g.LV(top.Parent) {
			lv = top
		}
		if lv.MovesFrom == "" && !slices.Contains(out, lv.Name) {
			out = append(out, lv.Name)
		}
	}
	slices.Sort(out)
	return out
}

// ExtentsOn returns the extents of a volume and its hidden parts on a physical volume;
// "": on any.
func (g *Group) ExtentsOn(name, pv string) []Allocation {
	var out []Allocation
	for i := range g.LVs {
		lv := &g.LVs[i]
		for top := g.LV(lv.Parent); top != nil; top = g.LV(top.Parent) {
			lv = top
		}
		if lv.Name != name {
			continue
		}
		for _, x := range g.LVs[i].Extents {
			if pv == "" || x.PV == pv {
				out = append(out, x)
			}
		}
	}
	return out
}

// DataOn returns the extents of ExtentsOn without the metadata of a mirror: those that a user
// of the volume writes to.
func (g *Group) DataOn(name, pv string) []Allocation {
	data := Group{LVs: slices.DeleteFunc(slices.Clone(g.LVs), func(lv LV) bool { return lv.Parent == name && strings.Contains(lv.Name, "_rmeta_") })}
	return data.ExtentsOn(name, pv)
}

// Moved returns the volumes that a move moves.
func (g *Group) Moved(move *LV) []string {
	var out []string
	for i := range g.LVs {
		lv := &g.LVs[i]
		if !slices.ContainsFunc(lv.Segments, func(s Segment) bool { return slices.Contains(s.On, move.Name) }) {
			continue
		}
		for top := g.LV(lv.Parent); top != nil; top = g.LV(top.Parent) {
			lv = top
		}
		if !slices.Contains(out, lv.Name) {
			out = append(out, lv.Name)
		}
	}
	slices.Sort(out)
	return out
}

// AnyMove returns the move under way, or nil. The engine starts only one at a time.
func (g *Group) AnyMove() *LV {
	i := slices.IndexFunc(g.LVs, func(lv LV) bool { return lv.MovesFrom != "" })
	if i < 0 {
		return nil
	}
	return &g.LVs[i]
}

// AllocatedOn returns how many bytes of a physical volume are allocated to volumes.
func (g *Group) AllocatedOn(pv string) uint64 {
	var n uint64
	for _, lv := range g.LVs {
		for _, x := range lv.Extents {
			if x.PV == pv {
				n += x.Count
			}
		}
	}
	return n * g.ExtentSize
}
