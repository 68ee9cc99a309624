package lvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drivebay/drivebay"
)

// A group whose drive has gone for good in the middle of a move is one that no command
// of lvm can put right: "pvmove --abort" wants all drives, and "vgreduce --removemissing
// --force" stops at the volume that moves ("Can't remove locked logical volume", 2.03.16,
// tried). So what is whole is written down anew, and nothing else: lvm's own text of the
// group without the sections of what was lost (vgcfgbackup(8), vgcfgrestore(8)).

// Lost are the volumes that have something on a physical volume, or move from it; those
// of a pool that has, and the hidden parts of all of them.
func (g *Group) Lost(pv string) []string {
	lost := map[string]bool{}
	for {
		n := len(lost)
		for i := range g.LVs {
			lv := &g.LVs[i]
			on := slices.ContainsFunc(lv.Extents, func(x Extent) bool { return x.PV == pv }) || lv.MovesFrom == pv
			below := slices.ContainsFunc(lv.Segments, func(s Segment) bool {
				return slices.ContainsFunc(s.On, func(name string) bool { return lost[name] })
			})
			part := lost[lv.Parent] || slices.ContainsFunc(g.LVs, func(p LV) bool { return p.Parent == lv.Name && lost[p.Name] })
			if on || below || part || lost[lv.Pool] {
				lost[lv.Name] = true
			}
		}
		if len(lost) == n {
			break
		}
	}
	delete(lost, "")
	var out []string
	for i := range g.LVs {
		if lost[g.LVs[i].Name] {
			out = append(out, g.LVs[i].Name)
		}
	}
	return out
}

// Salvage has a group be without a physical volume that is missing, and without what
// was lost with that. Devices are those that are there. None of what is lost may be
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
	if err := ours(r, group); err != nil {
		return r, err
	}
	g := r.Group(group)
	if g == nil || !slices.Contains(g.Missing(), pv) {
		return r, nil
	}
	if len(g.Missing()) != 1 {
		return r, fmt.Errorf("volume group %s: %w: it misses %v", group, ErrMissingPV, g.Missing())
	}
	lost := g.Lost(pv)
	for _, name := range lost {
		if g.LV(name).Active {
			return r, fmt.Errorf("volume %s/%s: %w: it is active", group, name, drivebay.ErrBusy)
		}
	}
	if err := s.rewrite(ctx, g, devices, lost, pv); err != nil {
		return r, fmt.Errorf("volume group %s: without physical volume %s: %w", group, pv, err)
	}
	after, err := s.Read(ctx, devices)
	if err != nil {
		return r, err
	}
	return after, sameBut(g, after.Group(group), lost)
}

// rewrite gives a group the text that it has, but for what is lost.
func (s *System) rewrite(ctx context.Context, g *Group, devices, lost []string, pv string) error {
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
		command = append(command, "--force") // the pool's own books are as they were
	}
	_, err = s.run(ctx, devices, append(command, g.Name))
	return err
}

// sameBut says what of a group is not as it was.
func sameBut(was, is *Group, lost []string) error {
	if is == nil || len(is.Missing()) > 0 {
		return fmt.Errorf("volume group %s: %w: it is not whole", was.Name, drivebay.ErrRefused)
	}
	var errs []error
	for i := range was.LVs {
		a := &was.LVs[i]
		b := is.LV(a.Name)
		switch {
		case slices.Contains(lost, a.Name):
		case b == nil || b.UUID != a.UUID || b.Size != a.Size || !slices.Equal(b.Extents, a.Extents):
			errs = append(errs, fmt.Errorf("volume %s/%s: %w: it is not what it was", was.Name, a.Name, drivebay.ErrRefused))
		}
	}
	return errors.Join(errs...)
}

// block is a section of lvm's text: where it begins and ends, in lines.
type block struct {
	path       string // "t/logical_volumes/a"
	begin, end int
	id         string
}

// blocks are the sections of a text as lvm writes it: "name {" and "}" have lines of
// their own.
func blocks(lines []string) (out []block, err error) {
	var open []int
	for i, line := range lines {
		word := strings.TrimSpace(line)
		name, opens := strings.CutSuffix(word, " {")
		switch {
		case opens:
			path := name
			if len(open) > 0 {
				path = out[open[len(open)-1]].path + "/" + name
			}
			open = append(open, len(out))
			out = append(out, block{path: path, begin: i})
		case word == "}" && len(open) == 0:
			return nil, fmt.Errorf("%w: line %d closes what was not opened", drivebay.ErrRefused, i+1)
		case word == "}":
			out[open[len(open)-1]].end = i + 1
			open = open[:len(open)-1]
		case len(open) > 0:
			if id, is := strings.CutPrefix(word, "id = "); is {
				out[open[len(open)-1]].id = strings.Trim(id, `"`)
			}
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%w: %s is not closed", drivebay.ErrRefused, out[open[0]].path)
	}
	return out, nil
}

// without is the text of a group without some volumes and a physical volume. What is
// left may name none of them.
func without(text string, g *Group, lost []string, pv string) (string, error) {
	lines := strings.Split(text, "\n")
	if !slices.Contains(lines, fmt.Sprintf("\tseqno = %d", g.Seq)) {
		return "", fmt.Errorf("%w: its text is not of change %d", drivebay.ErrRefused, g.Seq)
	}
	all, err := blocks(lines)
	if err != nil {
		return "", err
	}
	var names []string
	cut := make([]bool, len(lines))
	for _, s := range all {
		parent, name := s.path[:max(0, strings.LastIndexByte(s.path, '/'))], s.path[strings.LastIndexByte(s.path, '/')+1:]
		gone := parent == g.Name+"/physical_volumes" && s.id == pv || parent == g.Name+"/logical_volumes" && slices.Contains(lost, name)
		if gone {
			names = append(names, name)
			for i := s.begin; i < s.end; i++ {
				cut[i] = true
			}
		}
	}
	if len(names) != len(lost)+1 {
		return "", fmt.Errorf("%w: its text has only %v of %v and of physical volume %s", drivebay.ErrRefused, names, lost, pv)
	}
	var b strings.Builder
	for i, line := range lines {
		if cut[i] {
			continue
		}
		for _, name := range names {
			if strings.Contains(line, `"`+name+`"`) {
				return "", fmt.Errorf("%w: what is left names %s: %q", drivebay.ErrRefused, name, strings.TrimSpace(line))
			}
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
