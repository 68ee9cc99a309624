package lvm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// Moving a volume while it is used, seen with lvm2 2.03.16 on Linux 6.1:
//
//   - pvmove puts a mirror below the volume, has the kernel copy, and takes the mirror
//     away when all is copied. It holds the group's lock at both ends only. Meanwhile
//     others of the group are activated, made, grown and removed; of the one that moves
//     lvm says "Can't resize locked" and "Can't remove locked". Of a thin pool that
//     moves, volumes and snapshots are made, grown and removed.
//   - Of a group that moves as a whole, "lvchange -an" of one volume takes the devices
//     of all that nobody has open. So one volume is moved at a time.
//   - Killed, pvmove leaves the kernel copying; called again without a volume it goes on
//     with what it finds. After a loss of power the volume comes back with its mirror
//     when it is activated, and the copy begins anew.
//   - What cannot be read is NOT copied, and pvmove says "Moved: 100.00%" and ends well:
//     the kernel's mirror has no "handle_errors". Only its status tells (dmsetup status:
//     S, a sync that failed; D, a write that failed). So pvmove is never left to end a
//     move: it is begun, and ended once all is copied and both legs are sound.
//   - pvmove --abort has writes fail that wait in the mirror: see Retreat.
//   - While a drive of the group is missing a move can be neither ended nor taken back;
//     the volume serves on from the leg that is there.

// Move is one volume, or thin pool, on its way between physical volumes.
type Move struct{ Group, Volume, From, To string }

// begun is how long the command that has begun a move waits before it looks how far
// that is, in seconds; "+": before the first look, too.
const begun = "+2592000"

// Launch begins a move. It returns when the move cannot be begun, or with ctx, which is
// to end once a report shows the move: then the lock is given back, and nothing is
// lost with the command.
func (s *System) Launch(ctx context.Context, devices []string, m Move) error {
	r, err := s.Read(ctx, devices)
	if err != nil {
		return err
	}
	if err := ours(r, m.Group); err != nil {
		return err
	}
	command, err := expand(r, []string{"pvmove", "--atomic", "--interval", begun, "--name", m.Volume, pvArg(m.From), pvArg(m.To)})
	if err != nil {
		return err
	}
	if _, err = s.run(ctx, devices, command); err != nil {
		return fmt.Errorf("move volume %s/%s: %w", m.Group, m.Volume, err)
	}
	return nil
}

// EndMove plans to end a move whose data are all copied.
func EndMove(group, from string) []Step {
	return []Step{{
		Name: "end the move from physical volume " + from,
		Argv: []string{"pvmove", "--interval", "1", pvArg(from)},
		Done: func(r *Report) bool { g := r.Group(group); return g != nil && g.Move(from) == nil },
	}}
}

// AbortMove plans to take a move back: all data is where it was.
func AbortMove(group, from string) []Step {
	return []Step{{
		Name: "take back the move from physical volume " + from,
		Argv: []string{"pvmove", "--abort", pvArg(from)},
		Done: func(r *Report) bool { g := r.Group(group); return g != nil && g.Move(from) == nil },
	}}
}

// Copy is how far the kernel has copied the legs of a volume.
type Copy struct {
	Done, Total uint64 // in pieces of the kernel's
	Legs        string // a letter each, A is sound: Documentation/admin-guide/device-mapper
}

// Unread says that the first leg, from which is copied, could not be read. Whole says
// that all of them hold everything, as far as is known.
func (c Copy) Unread() bool { return c.Legs != "" && strings.Trim(c.Legs[:1], "AaDF") != "" }
func (c Copy) Whole() bool  { return c.Done == c.Total && strings.Trim(c.Legs, "A") == "" }

// Unwritten is the leg that could not be written, from 0; -1: none.
func (c Copy) Unwritten() int {
	if c.Legs != "" && strings.Trim(c.Legs[1:], "Aa") != "" {
		return 1
	}
	return strings.IndexAny(c.Legs, "DF")
}

// Part is the share that is copied.
func (c Copy) Part() float64 {
	if c.Total == 0 {
		return 0
	}
	return float64(c.Done) / float64(c.Total)
}

// Copied asks the kernel how far a volume with legs is; no drive is touched. One that
// is not active is not found.
func (s *System) Copied(ctx context.Context, group, volume string) (Copy, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	out, err := s.runner.Run(ctx, "dmsetup", "status", MapperName(group, volume))
	if _, said := errors.AsType[*host.ExitError](err); said {
		return Copy{}, fmt.Errorf("volume %s/%s: how far it is copied: %w: %w", group, volume, ErrNotFound, err)
	}
	if err != nil {
		return Copy{}, fmt.Errorf("volume %s/%s: how far it is copied: %w", group, volume, err)
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
		return c, fmt.Errorf("%w: status of a mirror: %q", drivebay.ErrInvalid, strings.TrimSpace(text))
	}
	return c, nil
}

// On are the volumes that have something on a physical volume, in order of their
// names; of hidden parts what they are parts of. Those that move are not among them.
func (g *Group) On(pv string) []string {
	var out []string
	for i := range g.LVs {
		lv := &g.LVs[i]
		if !slices.ContainsFunc(lv.Extents, func(x Extent) bool { return x.PV == pv }) {
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

// ExtentsOn are the extents that a volume, with its hidden parts, has on a physical volume;
// "": on any.
func (g *Group) ExtentsOn(name, pv string) []Extent {
	var out []Extent
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

// DataOn are those of ExtentsOn that a user of the volume writes to: not the metadata of a
// mirror.
func (g *Group) DataOn(name, pv string) []Extent {
	data := Group{LVs: slices.DeleteFunc(slices.Clone(g.LVs), func(lv LV) bool { return lv.Parent == name && strings.Contains(lv.Name, "_rmeta_") })}
	return data.ExtentsOn(name, pv)
}

// Moved are the volumes that a move carries.
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

// AnyMove is the move under way, nil if there is none. There is one at most: we begin no other.
func (g *Group) AnyMove() *LV {
	i := slices.IndexFunc(g.LVs, func(lv LV) bool { return lv.MovesFrom != "" })
	if i < 0 {
		return nil
	}
	return &g.LVs[i]
}

// Taken is how many bytes of a physical volume are given to volumes.
func (g *Group) Taken(pv string) uint64 {
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
