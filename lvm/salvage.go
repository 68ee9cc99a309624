package lvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/drivebay/drivebay"
)

// No LVM command can repair a group whose drive is lost for good in the middle of a move:
// "pvmove --abort" needs all drives, and "vgreduce --removemissing --force" stops at the
// volume that moves ("Can't remove locked logical volume", 2.03.16, tried). So Salvage
// restores the metadata of the intact volumes only: LVM's own text of the group without the
// sections of the lost volumes (vgcfgbackup(8), vgcfgrestore(8)). If the lost drive is the
// one that the volume moves from, the volume is lost; if it is the other one, the volume is
// complete on the drive that it moves from (see KeepFailedWrites).

// LostWith returns the volumes that have extents on a physical volume, or move from it; the
// volumes of a lost pool; and the hidden parts of all of them. It leaves out the parts of
// the move.
func (g *Group) LostWith(pv string) []string {
	move := g.moving()
	lost := map[string]bool{}
	for {
		n := len(lost)
		for i := range g.LVs {
			lv := &g.LVs[i]
			if slices.Contains(move, lv.Name) {
				continue
			}
			on := slices.ContainsFunc(lv.Extents, func(x Allocation) bool { return x.PV == pv })
			moves := slices.ContainsFunc(lv.Segments, func(s Segment) bool {
				return len(move) > 0 && slices.Contains(s.On, move[0]) && g.LV(move[0]).MovesFrom == pv
			})
			part := lost[lv.Parent] || slices.ContainsFunc(g.LVs, func(p LV) bool { return p.Parent == lv.Name && lost[p.Name] })
			if on || moves || part || lost[lv.Pool] {
				lost[lv.Name] = true
			}
		}
		if len(lost) == n {
			break
		}
	}
	var out []string
	for i := range g.LVs {
		if lost[g.LVs[i].Name] {
			out = append(out, g.LVs[i].Name)
		}
	}
	return out
}

// moving returns the hidden volumes of the move under way, the move first.
func (g *Group) moving() (names []string) {
	move := g.AnyMove()
	if move == nil {
		return nil
	}
	names = []string{move.Name}
	for i := range g.LVs {
		if g.LVs[i].Parent == move.Name {
			names = append(names, g.LVs[i].Name)
		}
	}
	return names
}

// Salvage removes a missing physical volume from a group (pv is "" if that is done), and the
// volumes that are lost with it. Devices are the present drives. No lost volume may be
// active: its devices would be left over.
func (s *System) Salvage(ctx context.Context, group string, devices []string, pv string) (*Report, error) {
	unlock, err := s.lock(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("volume group %s: %w", group, err)
	}
	defer unlock()
	r, err := s.Read(ctx, devices)
	if err != nil {
		return nil, err
	}
	if err := requireOurs(r, group); err != nil {
		return r, err
	}
	if g := r.Group(group); g != nil && slices.Contains(g.Missing(), pv) {
		if r, err = s.salvage(ctx, g, devices, pv); err != nil {
			return r, fmt.Errorf("volume group %s: remove lost physical volume %s: %w", group, pv, err)
		}
	}
	return r, s.removeStaleMoveDevices(ctx, r.Group(group), devices)
}

func (s *System) salvage(ctx context.Context, g *Group, devices []string, pv string) (*Report, error) {
	if len(g.Missing()) != 1 {
		return nil, fmt.Errorf("%w: %v are missing; Salvage removes only one", ErrMissingPV, g.Missing())
	}
	lost := g.LostWith(pv)
	for _, name := range lost {
		if g.LV(name).Active {
			return nil, fmt.Errorf("volume %s: %w: active", name, drivebay.ErrBusy)
		}
	}
	var err error
	if len(lost) == 0 && g.AnyMove() == nil {
		err = s.change(ctx, devices, []string{"vgreduce", "--removemissing", g.Name})
	} else {
		err = s.restoreMetadata(ctx, g, devices, lost, pv)
	}
	if err != nil {
		return nil, err
	}
	r, err := s.Read(ctx, devices)
	if err != nil {
		return nil, err
	}
	return r, verifyUnchanged(g, r.Group(g.Name), slices.Concat(lost, g.moving()))
}

// restoreMetadata restores the group's own metadata without the lost volumes.
func (s *System) restoreMetadata(ctx context.Context, g *Group, devices, lost []string, pv string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "drivebay-lvm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	was, is := filepath.Join(dir, "was"), filepath.Join(dir, "is")
	if _, err := s.run(ctx, devices, []string{"vgcfgbackup", "--file", was, g.Name}); err != nil {
		return err
	}
	text, err := os.ReadFile(was)
	if err != nil {
		return err
	}
	next, err := without(string(text), g, lost, pv)
	if err != nil {
		return err
	}
	if err := os.WriteFile(is, []byte(next), 0o600); err != nil {
		return err
	}
	command := []string{"vgcfgrestore", "--yes", "--file", is}
	if slices.ContainsFunc(g.LVs, func(lv LV) bool { return lv.Type == "thin-pool" && !slices.Contains(lost, lv.Name) }) {
		command = append(command, "--force") // the pool's metadata is unchanged
	}
	return s.change(ctx, devices, append(command, g.Name))
}

// verifyUnchanged returns an error for each volume, except those in gone, that the restore of a
// group changed. A volume that was moving must be on the extents of the first leg of the move.
func verifyUnchanged(was, is *Group, gone []string) error {
	if is == nil || len(is.Missing()) > 0 {
		return fmt.Errorf("volume group %s: %w: physical volumes are missing after the restore", was.Name, drivebay.ErrRefused)
	}
	var from []Allocation
	move := append(was.moving(), "")[0]
	if leg := was.LV(move + "_mimage_0"); leg != nil {
		from = leg.Extents
	}
	onSource := func(x Allocation) bool {
		return slices.ContainsFunc(from, func(f Allocation) bool {
			return f.PV == x.PV && f.Start <= x.Start && x.Start+x.Count <= f.Start+f.Count
		})
	}
	var errs []error
	for i := range was.LVs {
		a := &was.LVs[i]
		if slices.Contains(gone, a.Name) {
			continue
		}
		b := is.LV(a.Name)
		moved := slices.ContainsFunc(a.Segments, func(s Segment) bool { return move != "" && slices.Contains(s.On, move) })
		same := b != nil && b.UUID == a.UUID && b.Size == a.Size
		if moved {
			same = same && len(b.Extents) > 0 && !slices.ContainsFunc(b.Extents, func(x Allocation) bool { return !onSource(x) })
		} else {
			same = same && slices.Equal(a.Extents, b.Extents)
		}
		if !same {
			errs = append(errs, fmt.Errorf("volume %s/%s: %w: changed by the restore", was.Name, a.Name, drivebay.ErrRefused))
		}
	}
	return errors.Join(errs...)
}

// removeStaleMoveDevices removes the devices of a move that is no longer in the metadata. Before
// that it reloads the tables of the volumes above them. Programs that write to the volumes only
// wait for the reload.
func (s *System) removeStaleMoveDevices(ctx context.Context, g *Group, devices []string) error {
	if g == nil || g.AnyMove() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var left []string
	for _, name := range []string{"pvmove0", "pvmove0_mimage_0", "pvmove0_mimage_1"} { // top first
		switch _, err := s.table(ctx, g.Name, name); {
		case err == nil:
			left = append(left, name)
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	for i := range g.LVs {
		lv := &g.LVs[i]
		used := lv.Active || slices.ContainsFunc(g.LVs, func(x LV) bool { return x.Active && x.Pool == lv.Name })
		if len(left) == 0 || lv.Parent != "" || lv.Pool != "" || !used {
			continue
		}
		if err := s.change(ctx, devices, []string{"lvchange", "--refresh", g.Name + "/" + lv.Name}); err != nil {
			return err
		}
	}
	for _, name := range left {
		if _, err := s.runner.Run(ctx, "dmsetup", "remove", MapperName(g.Name, name)); err != nil {
			return fmt.Errorf("volume %s/%s: remove the device: %w", g.Name, name, err)
		}
	}
	return nil
}
